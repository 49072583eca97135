"""jax.experimental.compute_on: the compute unit for parts of a program. Here the host is the device, and runs all of them."""
import contextlib
from collections.abc import Callable, Iterator, Mapping

from capibara._modules import explain_missing
from capibara.jax import tree_util
from capibara.jax._api import device_put, jit
from capibara.jax.memory import Space


def _check_type(compute_type):
    if not isinstance(compute_type, str):
        raise TypeError("`compute_on`'s compute_type argument must be a string.")
    if compute_type not in ("device_host", "device", "tpu_sparsecore") and not compute_type.startswith("gpu_stream:"):
        raise ValueError(f"Invalid compute type {compute_type}. Current supported values are `device_host`, `device`, `tpu_sparsecore`, "
                         "and `gpu_stream:#`.")


@contextlib.contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """A context or decorator for computing on the host or another unit; the results are the same on all of them."""
    _check_type(compute_type)
    yield


def compute_on2(f: Callable | None = None, *, compute_type: str, out_memory_spaces: object,
                compiler_options: Mapping[str, object] | None = None) -> Callable:
    """A function computed on the host or another unit, with results in these memory spaces."""
    if f is None:
        return lambda g: compute_on2(g, compute_type=compute_type, out_memory_spaces=out_memory_spaces, compiler_options=compiler_options)
    _check_type(compute_type)
    computed = jit(f)

    def wrapped(*args):
        result = computed(*args)
        spaces = tree_util.broadcast_prefix(out_memory_spaces, result)
        leaves, structure = tree_util.tree_flatten(result)
        return structure.unflatten([device_put(leaf, space) if space is Space.Host else leaf for leaf, space in zip(leaves, spaces)])
    return wrapped


explain_missing(__name__)
