"""Universal functions of jax.numpy: elementwise functions with their reductions, accumulations and outer products."""
import math
import operator
import sys

from capibara import _core, _tracebacks
from capibara._modules import Library
from capibara._types import ShapeDtypeStruct
from capibara.jax._api import eval_shape
from capibara.jax.numpy._functions import vectorize

__all__ = ["ufunc", "frompyfunc"]

jnp = Library("numpy")


class ufunc:
    """An elementwise function that can also be reduced, accumulated and applied at indices."""

    def __init__(self, func, /, nin, nout, *, name=None, nargs=None, identity=None, call=None):
        self.__name__ = name or func.__name__
        self.__doc__ = getattr(func, "__doc__", None)
        self.__call = call or vectorize(func)
        # A ufunc may be a static argument of jit, so the properties by which it is compared are immutable.
        self.__properties = (func, self.__name__, identity, operator.index(nin), operator.index(nout), operator.index(nargs or nin))
        if call is not None:
            self.__wrapped__ = call

    _func = property(lambda self: self.__properties[0])
    identity = property(lambda self: self.__properties[2])
    nin = property(lambda self: self.__properties[3])
    nout = property(lambda self: self.__properties[4])
    nargs = property(lambda self: self.__properties[5])

    def __eq__(self, other):
        return isinstance(other, ufunc) and self.__properties == other.__properties

    def __hash__(self):
        return hash(self.__properties)

    def __repr__(self):
        return f"<jnp.ufunc '{self.__name__}'>"

    def __reduce__(self):
        """ufuncs of jax.numpy are pickled by name, others with their function."""
        if getattr(sys.modules["capibara.jax.numpy"], self.__name__, None) is self:
            return _of_name, (self.__name__,)
        func, name, identity, nin, nout, nargs = self.__properties
        return _of_function, (func, nin, nout, name, nargs, identity)

    @_tracebacks.is_boundary
    def __call__(self, *args, out=None, where=None):
        if out is not None:
            raise NotImplementedError(f"out argument of {self}")
        if where is not None:
            raise NotImplementedError(f"where argument of {self}")
        try:
            return self.__call(*args)
        except Exception as error:
            _tracebacks.filter_frames(error)
            raise

    def reduce(self, a, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=None):
        """Reduces an axis by the function."""
        self._require_binary("reduce", out)
        a = jnp.asarray(a)
        if where is not None:
            if self.identity is None and initial is None:
                raise ValueError(f"reduction operation {self.__name__!r} does not have an identity, so to use a where mask "
                                 "one has to specify 'initial'.")
            where = jnp.asarray(where)
            if where.dtype != bool:
                raise ValueError(f"where argument must have dtype=bool; got dtype={where.dtype}")
        known = _REDUCTIONS.get(self.__name__)
        if known is not None:
            options = {"axis": axis, "keepdims": keepdims, "where": where, "initial": initial}
            if known in ("sum", "prod"):
                return getattr(jnp, known)(a, dtype=dtype, **options)
            reduced = getattr(jnp, known)(a, **options)
            return reduced if dtype is None else reduced.astype(dtype)
        return self._reduce_in_order(a, axis, dtype, keepdims, initial, where)

    def accumulate(self, a, axis=0, dtype=None, out=None):
        """All partial reductions along an axis."""
        self._require_binary("accumulate", out)
        if axis is None or isinstance(axis, tuple):
            raise ValueError("accumulate does not allow multiple axes")
        if self.__name__ in _ACCUMULATIONS:
            return getattr(jnp, _ACCUMULATIONS[self.__name__])(a, axis=axis, dtype=dtype)
        a = jnp.asarray(a)
        a = a.astype(self._dtype_of(a) if dtype is None else dtype)
        if a.size == 0:
            return a
        moved = jnp.moveaxis(a, axis, 0)
        def step(carry, x):
            value = self(carry, x).astype(a.dtype)
            return value, value
        _, rest = _core.scan(step, moved[0], moved[1:], None, False, 1)
        return jnp.moveaxis(jnp.concatenate([moved[:1], rest], 0), 0, axis)

    def outer(self, A, B, /):
        """Applies the function to every pair of elements."""
        self._require_binary("outer", None)
        A, B = jnp.asarray(A), jnp.asarray(B)
        return self(A.reshape(A.shape + (1,) * B.ndim), B.reshape((1,) * A.ndim + B.shape))

    def at(self, a, indices, b=None, /, *, inplace=True):
        """Applies the function at indices, once for every occurrence of an index."""
        if inplace:
            raise NotImplementedError("JAX arrays are immutable: use inplace=False, and the result of ufunc.at")
        a = jnp.asarray(a)
        if b is None:
            return a.at[indices].apply(self)
        b = jnp.asarray(b)
        if self.__name__ in _UPDATES:
            if a.dtype != bool:
                return getattr(a.at[indices], _UPDATES[self.__name__])(b)
            if self.__name__ in ("add", "multiply"):
                return getattr(a.astype("int32").at[indices], _UPDATES[self.__name__])(b.astype(bool).astype("int32")).astype(bool)
        return self._apply_in_order(a, indices, b)

    def reduceat(self, a, indices, axis=0, dtype=None, out=None):
        """Reduces the segments that begin at indices, along an axis."""
        self._require_binary("reduceat", out)
        if axis is None or isinstance(axis, (tuple, list)):
            raise ValueError("reduceat requires a single integer axis.")
        a, indices = jnp.asarray(a, dtype=dtype), jnp.asarray(indices)
        if a.ndim == 0:
            raise ValueError(f"reduceat: a must have 1 or more dimension, got {a.shape=}")
        if indices.ndim != 1:
            raise ValueError(f"reduceat: indices must be one-dimensional, got {indices.shape=}")
        moved = jnp.moveaxis(a, axis, 0)
        begin = indices.astype("int32")
        end = jnp.append(begin, jnp.full(1, moved.shape[0], "int32"))[1:]
        across = (-1,) + (1,) * (moved.ndim - 1)
        def step(totals, place):
            i, row = place
            # A segment that ends before it begins consists of its first element.
            inside = ((i > begin) & (i < end)).reshape(across)
            rows = jnp.broadcast_to(row[None], totals.shape)
            return jnp.where(inside, self(totals, rows).astype(totals.dtype), totals), None
        places = (jnp.arange(moved.shape[0], dtype="int32"), moved)
        totals, _ = _core.scan(step, moved[begin], places, None, False, 1)
        return jnp.moveaxis(totals, 0, axis)

    def _require_binary(self, method, out):
        if self.nin != 2:
            raise ValueError(f"{method} only supported for binary ufuncs")
        if self.nout != 1:
            raise ValueError(f"{method} only supported for functions returning a single value")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.{method}()")

    def _dtype_of(self, a):
        """The result dtype of the function for two elements of an array."""
        one = ShapeDtypeStruct((), a.dtype)
        return eval_shape(self._func, one, one).dtype

    def _reduce_in_order(self, a, axis, dtype, keepdims, initial, where):
        if isinstance(axis, tuple) and len(axis) != 1:
            if self.identity is None:
                raise NotImplementedError(f"{self.__name__}.reduce: several axes need a function with an identity")
            axes = [i % a.ndim for i in axis]
        else:
            axes = list(range(a.ndim)) if axis is None else [operator.index(axis[0] if isinstance(axis, tuple) else axis)]
        dtype = self._dtype_of(a) if dtype is None else dtype
        if initial is None:
            initial = self.identity
        kept = tuple(size for i, size in enumerate(a.shape) if i not in [n % a.ndim for n in axes])
        count = math.prod(a.shape[i] for i in axes)
        rows = lambda x: jnp.moveaxis(x, axes, range(len(axes))).reshape((count,) + kept)
        values = rows(a).astype(dtype)
        if initial is None and values.shape[0] == 0:
            raise ValueError(f"zero-size array to reduction operation {self.__name__} which has no identity")
        start = values[0] if initial is None else jnp.broadcast_to(jnp.asarray(initial).astype(values.dtype), values.shape[1:])
        mask = None if where is None else rows(jnp.broadcast_to(where, a.shape))
        def step(total, row):
            value, use = row
            next_total = self(total, value).astype(total.dtype)
            return (next_total if use is None else jnp.where(use, next_total, total)), None
        total, _ = _core.scan(step, start, (values[1:] if initial is None else values, mask), None, False, 1)
        return jnp.expand_dims(total, tuple(axes)) if keepdims else total

    def _apply_in_order(self, a, indices, b):
        indices = indices if isinstance(indices, tuple) else (indices,)
        shape = jnp.broadcast_shapes(*[jnp.shape(i) for i in indices if not isinstance(i, slice)])
        if not shape:
            return a.at[indices].set(self(a[indices], b).astype(a.dtype))
        flat = tuple(None if isinstance(i, slice) else jnp.broadcast_to(jnp.asarray(i), shape).ravel() for i in indices)
        values = jnp.broadcast_to(b, shape + b.shape[len(shape):]).reshape((-1,) + b.shape[len(shape):])
        def step(carry, place):
            at, value = place
            index = tuple(i if isinstance(i, slice) else own for i, own in zip(indices, at))
            return carry.at[index].set(self(carry[index], value).astype(carry.dtype)), None
        return _core.scan(step, a, (flat, values), None, False, 1)[0]


def _of_name(name):
    return getattr(sys.modules["capibara.jax.numpy"], name)


def _of_function(func, nin, nout, name, nargs, identity):
    return ufunc(func, nin, nout, name=name, nargs=nargs, identity=identity)


def frompyfunc(func, /, nin, nout, *, identity=None):
    """A universal function from a function of scalars."""
    return ufunc(func, nin, nout, identity=identity)


_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any"}
_ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}
_UPDATES = {"add": "add", "subtract": "subtract", "multiply": "multiply", "maximum": "max", "minimum": "min"}
_IDENTITIES = {"add": 0, "multiply": 1, "logical_and": True, "logical_or": False, "logical_xor": False, "bitwise_and": -1,
               "bitwise_or": 0, "bitwise_xor": 0, "logaddexp": float("-inf"), "logaddexp2": float("-inf")}


def from_library(name, function):
    """A universal function from a function of the library."""
    return ufunc(function, function.nin, 1, name=name, identity=_IDENTITIES.get(name), call=function)


_tracebacks.guard(__name__)
