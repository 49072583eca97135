"""jax._src.lax.linalg: names of jax.lax.linalg, and LAPACK's QR factorization as it returns it."""
import types

from capibara._modules import explain_missing
from capibara._types import ShapeDtypeStruct
from capibara.jax import ffi, numpy
from capibara.jax.lax.linalg import *  # noqa: F403

# What jax calls before it uses LAPACK's handlers by name; here they are registered from the start.
_lapack = types.SimpleNamespace(initialize=lambda: None)


def geqrf(a):
    """R above the diagonal and Householder reflectors below it, and the factors of these: LAPACK's handler, called."""
    a = numpy.asarray(a)
    letter = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}.get(a.dtype.name)
    if letter is None or a.ndim < 2:
        raise TypeError(f"geqrf: expected matrices of float32, float64, complex64 or complex128, got {a.dtype}{list(a.shape)}")
    order = (*range(a.ndim - 2), a.ndim - 1, a.ndim - 2)
    factors = ShapeDtypeStruct((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    return ffi.ffi_call(f"lapack_{letter}geqrf_ffi", (a, factors), vmap_method="broadcast_all", input_output_aliases={0: 0},
                        input_layouts=[order], output_layouts=[order, None])(a)


explain_missing(__name__)
