"""capibara.jax: the interface of jax 0.10.2 on capibara's core."""
from capibara import _core
from capibara._core import Array, Ref  # noqa: F401
from capibara._dtypes import float0  # noqa: F401
from capibara._modules import explain_missing as _explain_missing
from capibara._types import ShapeDtypeStruct  # noqa: F401
from capibara.jax._api import (  # noqa: F401
    block_until_ready,
    checkpoint,
    clear_caches,
    device_get,
    device_put,
    ensure_compile_time_eval,
    eval_shape,
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    linear_transpose,
    linearize,
    make_jaxpr,
    named_call,
    named_scope,
    pure_callback,
    remat,
    typeof,
    value_and_grad,
    vjp,
    vmap,
)
from capibara.jax._config import config
from capibara.jax._config import scope as _scope
from capibara.jax._devices import (  # noqa: F401
    Device,
    default_backend,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
)
from capibara.jax._install import check_compatibility, install  # noqa: F401
from capibara.jax.custom_derivatives import closure_convert, custom_gradient, custom_jvp, custom_vjp  # noqa: F401
from capibara.jax.version import __version__, __version_info__  # noqa: F401

from capibara.jax import (  # noqa: F401
    ad_checkpoint,
    api_util,
    checkpoint_policies,
    core,
    custom_batching,
    custom_derivatives,
    debug,
    dlpack,
    dtypes,
    errors,
    experimental,
    extend,
    flatten_util,
    image,
    interpreters,
    lax,
    nn,
    numpy,
    ops,
    profiler,
    random,
    scipy,
    stages,
    tree,
    tree_util,
    typing,
    version,
)

enable_x64 = _scope("enable_x64", True)
disable_jit = _scope("disable_jit", True)
debug_nans = _scope("debug_nans", True)
debug_infs = _scope("debug_infs", True)
log_compiles = _scope("log_compiles", True)
checking_leaks = check_tracer_leaks = _scope("check_tracer_leaks", True)
numpy_dtype_promotion = _scope("numpy_dtype_promotion")
numpy_rank_promotion = _scope("numpy_rank_promotion")
default_matmul_precision = _scope("default_matmul_precision")
default_prng_impl = _scope("default_prng_impl")
threefry_partitionable = _scope("threefry_partitionable", True)


def new_ref(init_val):
    """A mutable array with an initial value."""
    return _core.new_ref(init_val)


def freeze(ref):
    """The last value of a mutable array, which must not be used afterwards."""
    return _core.freeze_ref(ref)


def effects_barrier():
    """Waits until all side effects have happened."""
    _core.effects_barrier()


def live_arrays(platform=None):
    """The arrays that Python holds."""
    import gc
    return [x for x in gc.get_objects() if isinstance(x, _core.ArrayImpl)]


from capibara.jax._array import complete as _complete  # noqa: E402

_complete()
_explain_missing(__name__)
