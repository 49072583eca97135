"""capibara.jax: the interface of jax 0.10.2 on capibara's core."""
from capibara import _core
from capibara._array_class import Array  # noqa: F401
from capibara._core import Ref  # noqa: F401
from capibara._modules import explain_missing as _explain_missing
from capibara._types import ShapeDtypeStruct, Slice as _Slice  # noqa: F401
from capibara.jax._api import (  # noqa: F401
    block_until_ready,
    checkpoint,
    clear_caches,
    copy_to_host_async,
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
from capibara.jax import _pickling  # noqa: F401
from capibara.jax._config import config, default_device  # noqa: F401
from capibara.jax._config import flag_scope as _flag_scope
from capibara.jax._user_context import make_user_context  # noqa: F401
from capibara.jax._config import scope as _scope
from capibara.jax._device_memory import device_memory_allocated, device_memory_peak  # noqa: F401
from capibara.jax._devices import (  # noqa: F401
    Device,
    default_backend,
    device_count,
    devices,
    live_arrays,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
)
from capibara.jax._install import check_compatibility, install  # noqa: F401
from capibara.jax._key_reuse import scope as _key_reuse_scope
from capibara.jax.custom_derivatives import closure_convert, custom_gradient, custom_jvp, custom_vjp  # noqa: F401
from capibara.jax.version import __version__, __version_info__  # noqa: F401

# Modules that are imported on first use: most programs need few of them, and NumPy is slow to import.
_MODULES = (
    "ad", "ad_checkpoint", "api_util", "checkpoint_policies", "core", "custom_batching", "custom_derivatives", "debug", "dlpack",
    "distributed", "dtypes", "errors", "experimental", "export", "extend", "ffi", "flatten_util", "image", "interpreters", "lax", "lib",
    "memory", "monitoring", "nn", "numpy", "ops",
    "profiler", "profiling", "random", "ref", "scipy", "sharding", "stages", "tpu_v4", "tree", "tree_util", "typing", "version",
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
no_tracing = _scope("no_tracing", True)
enable_checks = _scope("enable_checks", True)
enable_custom_prng = _scope("enable_custom_prng", True)
softmax_custom_jvp = _scope("softmax_custom_jvp", True)
legacy_prng_key = _scope("legacy_prng_key")
allow_f16_reductions = _flag_scope("jax_allow_f16_reductions", True)
array_garbage_collection_guard = _flag_scope("jax_array_garbage_collection_guard")
auto_pcast = _flag_scope("jax_auto_pcast", True)
explain_cache_misses = _flag_scope("jax_explain_cache_misses", True)
no_execution = _flag_scope("jax_no_execution", True)
remove_size_one_mesh_axis_from_type = _flag_scope("jax_remove_size_one_mesh_axis_from_type", True)
thread_guard = _flag_scope("jax_thread_guard", True)


def fwd_and_bwd(fun, argnums, has_aux=False, jitted=True):
    """A function's forward pass, which also returns the residuals for the backward pass, and the backward pass."""
    single = isinstance(argnums, int)

    def fwd(*args, **kwargs):
        chosen = (argnums,) if single else tuple(argnums)

        def of_chosen(*values):
            full = list(args)
            for position, value in zip(chosen, values):
                full[position] = value
            return fun(*full, **kwargs)

        value, pullback, *aux = vjp(of_chosen, *[args[i] for i in chosen], has_aux=has_aux)
        return (value, aux[0], pullback) if has_aux else (value, pullback)

    def bwd(pullback, cotangent):
        cotangents = pullback(cotangent)
        return cotangents[0] if single else cotangents

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


def debug_key_reuse(new_val=True):
    """A context that enables or disables the check for key reuse on this thread."""
    return _key_reuse_scope(new_val)


def print_environment_info(return_string=False):
    """Prints or returns the information about the machine that a bug report should contain."""
    import os
    import platform
    import sys
    import numpy as np
    version_of_python = sys.version.replace("\n", " ")
    kind = devices()[0].device_kind
    lines = [f"jax:    {__version__}", f"capibara: {_core.version()}", f"numpy:  {np.__version__}", f"python: {version_of_python}",
             f"device info: {kind}-{device_count()}, {local_device_count()} local devices\"", f"process_count: {process_count()}",
             f"platform: {platform.uname()}"]
    lines += [f"{name}={value}" for name, value in os.environ.items() if name.startswith(("JAX_", "XLA_"))]
    if return_string:
        return "\n".join(lines)
    print("\n".join(lines))


def ds(start, size=None, stride=None):
    """A window of `size` elements from `start`, which may be traced: x[jax.ds(i, 2)] is x[i:i+2]."""
    if start is None:
        return slice(None)
    if stride is not None and not isinstance(stride, int):
        raise ValueError(f"ds: the stride must be a Python integer, got {stride!r}")
    if size is None:
        start, size = 0, start
    return _Slice(start, size, 1 if stride is None else stride)


def effects_barrier():
    """Waits for all side effects to complete."""
    _core.effects_barrier()


from capibara.jax._array import complete as _complete  # noqa: E402
from capibara._notebook import complete as _complete_notebook  # noqa: E402
from capibara.jax._stage_methods import complete as _complete_stages  # noqa: E402

_complete()
_complete_notebook()
_complete_stages()
_core.register_node(_Slice, _Slice.tree_flatten, _Slice.tree_unflatten)
_MESH, _SHARDING = ("P", "make_mesh", "set_mesh"), ("NamedSharding", "Shard")
_PLACING = ("make_array_from_callback", "make_array_from_process_local_data", "make_array_from_single_device_arrays")
_GUARDS = ("transfer_guard", "transfer_guard_host_to_device", "transfer_guard_device_to_device", "transfer_guard_device_to_host")
_explain_missing(__name__, later={
    "float0": "capibara._dtypes", **dict.fromkeys(_MODULES), **dict.fromkeys(_MESH, "capibara.jax._mesh"),
    **dict.fromkeys(_SHARDING, "capibara.jax._sharding"), **dict.fromkeys(_PLACING, "capibara.jax._joining"),
    **dict.fromkeys(_GUARDS, "capibara.jax._transfer_guards"), "pjit": "capibara.jax._partition", "pmap": "capibara.jax._pmap",
    "shard_map": "capibara.jax._shard_map", "smap": "capibara.jax._shard_map", "reshard": "capibara.jax._explicit",
    **dict.fromkeys(("new_ref", "empty_ref", "freeze", "free_ref"), "capibara.jax.ref")},
    gone=dict.fromkeys(("device_put_replicated", "device_put_sharded"), "use jax.device_put with a sharding instead."))
