"""jax.experimental.sparse.transform: applies functions of arrays to sparse ones, equation by equation of their traced programs."""
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import Array
from capibara.jax.experimental.sparse._rules import evaluate
from capibara.jax.experimental.sparse._shapes import bcoo_update_layout
from capibara.jax.experimental.sparse.bcoo import BCOO
from capibara.jax.experimental.sparse.bcsr import BCSR

_tracing = threading.local()


def _is_sparse(value):
    return isinstance(value, (BCOO, BCSR))


class _TracerClass(type):
    """Makes values of functions traced with sparsify(f, use_tracer=True) instances."""

    def __instancecheck__(cls, value):
        return isinstance(value, jax.core.Tracer) and any(trace is _core.tracer_trace(value) for trace in getattr(_tracing, "traces", ()))


class SparseTracer(metaclass=_TracerClass):
    """The class of values inside functions made with sparsify(f, use_tracer=True): tracers that may represent sparse arrays."""


class SparsifyValue(NamedTuple):
    """An array as the indices of its buffers in a SparsifyEnv; a dense one only has data."""

    shape: tuple[int, ...]
    data_ref: int | None
    indices_ref: int | None = None
    indptr_ref: int | None = None
    indices_sorted: bool | None = False
    unique_indices: bool | None = False

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def is_sparse(self) -> bool:
        """True if it has coordinates."""
        return self.indices_ref is not None

    def is_dense(self) -> bool:
        """True if it has no coordinates."""
        return self.indices_ref is None

    def is_bcoo(self) -> bool:
        """True if it represents a BCOO."""
        return self.is_sparse() and self.indptr_ref is None

    def is_bcsr(self) -> bool:
        """True if it represents a BCSR."""
        return self.is_sparse() and self.indptr_ref is not None


class SparsifyEnv:
    """Buffers that sparse arrays may share: arrays that share a buffer of coordinates are known to have the same coordinates."""

    def __init__(self, bufs: Sequence[Array] = ()) -> None:
        self._buffers = list(bufs)

    def _push(self, buffer):
        buffer = jnp.asarray(buffer)
        self._buffers.append(buffer)
        return len(self._buffers) - 1

    def _buffer(self, number, name):
        if number is None:
            raise RuntimeError(f"SparsifyEnv: the value has no {name}")
        return self._buffers[number]

    def data(self, spvalue: SparsifyValue) -> Array:
        """The values of an array."""
        return self._buffer(spvalue.data_ref, "data")

    def indices(self, spvalue: SparsifyValue) -> Array:
        """The coordinates of an array, or its columns."""
        return self._buffer(spvalue.indices_ref, "indices")

    def indptr(self, spvalue: SparsifyValue) -> Array:
        """The row pointers of an array."""
        return self._buffer(spvalue.indptr_ref, "indptr")

    def dense(self, data: Any) -> SparsifyValue:
        """A dense array with a new buffer."""
        return SparsifyValue(np.shape(data), self._push(data))

    def sparse(self, shape: tuple[int, ...], data: Any = None, indices: Any = None, indptr: Any = None, *, data_ref: int | None = None,
               indices_ref: int | None = None, indptr_ref: int | None = None, indices_sorted: bool = False,
               unique_indices: bool = False) -> SparsifyValue:
        """A sparse array with new buffers, or with existing ones."""
        numbers = []
        for name, buffer, number in (("data", data, data_ref), ("indices", indices, indices_ref), ("indptr", indptr, indptr_ref)):
            if buffer is not None and number is not None:
                raise ValueError(f"SparsifyEnv.sparse: both {name} and {name}_ref are given")
            if buffer is None and (number is not None and number >= len(self._buffers) or number is None and name != "indptr"):
                raise ValueError(f"SparsifyEnv.sparse: {name}_ref={number} is not one of the {len(self._buffers)} buffers")
            numbers.append(number if buffer is None else self._push(buffer))
        return SparsifyValue(shape, *numbers, indices_sorted=indices_sorted, unique_indices=unique_indices)


def arrays_to_spvalues(spenv: SparsifyEnv, args: Any) -> Any:
    """Converts a tree of dense and sparse arrays to values of an environment."""
    def convert(array):
        if not _is_sparse(array):
            return spenv.dense(array)
        return spenv.sparse(array.shape, *array._bufs, indices_sorted=array.indices_sorted, unique_indices=array.unique_indices)
    return jax.tree_util.tree_map(convert, args, is_leaf=_is_sparse)


def spvalues_to_arrays(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """The inverse of arrays_to_spvalues."""
    def convert(value):
        if value.is_dense():
            return spenv.data(value)
        known = {"shape": value.shape, "indices_sorted": value.indices_sorted, "unique_indices": value.unique_indices}
        if value.is_bcoo():
            return BCOO((spenv.data(value), spenv.indices(value)), **known)
        return BCSR((spenv.data(value), spenv.indices(value), spenv.indptr(value)), **known)
    return jax.tree_util.tree_map(convert, spvalues, is_leaf=lambda value: isinstance(value, SparsifyValue))


def _run(f, args, kwargs, traced=False):
    """Runs a function of arrays on sparse ones: (results, their structure). It is traced with dense arrays of the same types."""
    leaves, structure = jax.tree_util.tree_flatten((args, kwargs), is_leaf=_is_sparse)
    leaves = [leaf if _is_sparse(leaf) else jnp.asarray(leaf) for leaf in leaves]

    def of_leaves(*leaves):
        args, kwargs = jax.tree_util.tree_unflatten(structure, leaves)
        if not traced:
            return f(*args, **kwargs)
        _tracing.traces = (*getattr(_tracing, "traces", ()), _core.current_trace())
        try:
            return f(*args, **kwargs)
        finally:
            _tracing.traces = _tracing.traces[:-1]

    types = [_core.ShapedArray(leaf.shape, leaf.dtype, leaf.data.aval.weak_type) if _is_sparse(leaf) else leaf for leaf in leaves]
    types = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=leaf.weak_type) if isinstance(leaf, _core.ShapedArray) else leaf
             for leaf in types]
    program, shapes = jax.make_jaxpr(of_leaves, return_shape=True)(*types)
    return evaluate(program.jaxpr, program.consts, leaves), jax.tree_util.tree_structure(shapes)


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Makes a function of arrays accept sparse arrays too; results are sparse if the operations preserve sparsity.

    use_tracer: values inside the function are instances of SparseTracer; tracing is the same.
    """
    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        results, structure = _run(f, args, kwargs, use_tracer)
        return jax.tree_util.tree_unflatten(structure, results)
    return wrapped


def sparsify_raw(f: Callable[..., Any]) -> Callable[..., Any]:
    """sparsify for values of an environment: f(env, *values) is (flat values of the results, their structure)."""
    def wrapped(spenv, *spvalues, **params):
        args = spvalues_to_arrays(spenv, spvalues)
        results, structure = _run(functools.partial(f, **params) if params else f, args, {})
        return arrays_to_spvalues(spenv, results), structure
    return wrapped


def _swapped(function):
    return lambda x, y: function(y, x)


def _take(array, index):
    return sparsify(lambda x: x[index])(array)


def _iterate(array):
    if not array.ndim:
        raise TypeError("iteration over a 0-d sparse array")
    return iter([array[i] for i in range(array.shape[0])])


_BINARY = {"matmul": jnp.matmul, "mul": jnp.multiply, "truediv": jnp.divide, "add": jnp.add, "sub": jnp.subtract}
_METHODS: dict[str, Any] = {
    "astype": lambda self, *args, **kwargs: sparsify(lambda x: x.astype(*args, **kwargs))(self),
    "reshape": lambda self, *args, **kwargs: sparsify(lambda x: x.reshape(*args, **kwargs))(self),
    "sum": lambda self, *args, **kwargs: sparsify(lambda x: x.sum(*args, **kwargs))(self),
    "__abs__": sparsify(jnp.abs), "__neg__": sparsify(jnp.negative), "__pos__": sparsify(jnp.positive),
    **{f"__{name}__": sparsify(function) for name, function in _BINARY.items()},
    **{f"__r{name}__": sparsify(_swapped(function)) for name, function in _BINARY.items()},
    "__pow__": lambda x, y: sparsify(lambda x: x**y)(x),
    "__getitem__": _take, "__iter__": _iterate,
    "update_layout": bcoo_update_layout,
    "__gt__": sparsify(jnp.greater), "__ge__": sparsify(jnp.greater_equal), "__lt__": sparsify(jnp.less),
    "__le__": sparsify(jnp.less_equal), "__eq__": sparsify(jnp.equal), "__ne__": sparsify(jnp.not_equal)}
for _name, _method in _METHODS.items():
    setattr(BCOO, _name, _method)
for _name in ("astype", "__neg__", "__matmul__", "__rmatmul__", "__getitem__"):
    setattr(BCSR, _name, _METHODS[_name])
explain_missing(__name__)
