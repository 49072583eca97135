"""jax.experimental.sparse.api: sparse arrays of zeros and with ones on a diagonal, and conversion to dense arrays."""
import operator
from collections.abc import Sequence
from typing import Any

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara._modules import explain_missing
from capibara.jax import Array
from capibara.jax.core import Primitive, ShapedArray
from capibara.jax.experimental.sparse._base import JAXSparse
from capibara.jax.experimental.sparse.bcoo import BCOO
from capibara.jax.experimental.sparse.bcsr import BCSR
from capibara.jax.experimental.sparse.coo import COO
from capibara.jax.experimental.sparse.csr import CSC, CSR
from capibara.jax.interpreters import ad
from capibara.jax.typing import ArrayLike, DTypeLike

# Converts a value that sparsify may replace by a sparse array to a dense one: bind(*buffers, tree=their tree).
todense_p = Primitive("todense")


def _dense(*buffers, tree):
    array = jax.tree_util.tree_unflatten(tree, buffers)
    return array.todense() if isinstance(array, JAXSparse) else array


def _type(*types, tree):
    array = jax.tree_util.tree_unflatten(tree, types)
    return ShapedArray(array.shape, types[0].dtype, getattr(types[0], "weak_type", False))


def _jvp(primals, tangents, *, tree):
    # Linear in the values, the first buffer.
    tangent = ad.instantiate_zeros(tangents[0])
    return todense_p.bind(*primals, tree=tree), todense_p.bind(tangent, *primals[1:], tree=tree)


def _transpose(cotangent, *buffers, tree):
    data = buffers[0].aval
    struct = jax.ShapeDtypeStruct(data.shape, data.dtype)
    values, = jax.linear_transpose(lambda values: _dense(values, *buffers[1:], tree=tree), struct)(cotangent)
    return values, *(None for _ in buffers[1:])


def _batch(buffers, dims, *, tree):
    return jax.vmap(lambda *buffers: _dense(*buffers, tree=tree), in_axes=tuple(dims))(*buffers), 0


todense_p.def_impl(_dense)
todense_p.def_abstract_eval(_type)
todense_p.def_jvp(_jvp)
todense_p.def_transpose(_transpose)
todense_p.def_batch(_batch)
todense_p.def_lowering(_dense)


def todense(arr: JAXSparse | ArrayLike) -> Array:
    """A sparse array as a dense one; others unchanged."""
    if isinstance(arr, JAXSparse):
        return arr.todense()
    if isinstance(arr, jax.core.Tracer):  # it may represent a sparse array
        return todense_p.bind(arr, tree=jax.tree_util.tree_structure(arr))
    return jnp.asarray(arr)


_FORMATS = {"bcsr": BCSR, "bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}


def _class_of(sparse_format, formats):
    if sparse_format not in formats:
        raise ValueError(f"sparse_format={sparse_format!r} not recognized; must be one of {list(formats)}")
    return formats[sparse_format]


def empty(shape: Sequence[int], dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32", sparse_format: str = "bcoo",
          **kwds: Any) -> JAXSparse:
    """A sparse array of zeros; other options are those of the format's layout (nse, n_batch, n_dense)."""
    return _class_of(sparse_format, _FORMATS)._empty(tuple(shape), dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
        sparse_format: str = "bcoo", **kwds: Any) -> JAXSparse:
    """A sparse matrix with ones on the diagonal k."""
    N, M, k = (jax.core.concrete_or_error(operator.index, value) for value in (N, N if M is None else M, k))
    formats = {name: kind for name, kind in _FORMATS.items() if name != "bcsr"}
    return _class_of(sparse_format, formats)._eye(N, M, k, dtype=dtype, index_dtype=index_dtype, **kwds)


explain_missing(__name__)
