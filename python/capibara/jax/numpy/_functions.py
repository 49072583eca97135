"""Functions of jax.numpy that take Python functions or registered primitives."""
import functools
import re

from capibara import _core, _tracebacks

__all__ = ["vectorize", "custom_op", "ufunc", "frompyfunc"]


def _parse_signature(signature):
    groups = signature.replace(" ", "").split("->")
    if len(groups) != 2:
        raise ValueError(f"not a valid gufunc signature: {signature}")
    pattern = r"\(([^()]*)\)"
    sides = []
    for side in groups:
        if not re.fullmatch(rf"{pattern}(?:,{pattern})*", side):
            raise ValueError(f"not a valid gufunc signature: {signature}")
        sides.append([tuple(filter(None, names.split(","))) for names in re.findall(pattern, side)])
    return sides


def vectorize(pyfunc, *, excluded=frozenset(), signature=None):
    """A function of small arrays as one that broadcasts, by vmap."""
    from capibara.jax._api import vmap
    jnp = _module()
    if any(not isinstance(item, (str, int)) for item in excluded):
        raise TypeError(f"jax.numpy.vectorize can only exclude integer or string arguments, but excluded={excluded!r}")
    if any(isinstance(item, int) and item < 0 for item in excluded):
        raise ValueError(f"excluded={excluded!r} contains negative numbers")

    @_tracebacks.boundary
    @functools.wraps(pyfunc)
    def wrapped(*args, **kwargs):
        fixed = {i: a for i, a in enumerate(args) if i in excluded or a is None}
        moving = [jnp.asarray(a) for i, a in enumerate(args) if i not in fixed]
        names = {k: v for k, v in kwargs.items() if k not in excluded}
        if names:
            raise NotImplementedError("vectorize: keyword arguments must be named in `excluded`")

        def call(*values):
            values = iter(values)
            result = pyfunc(*[fixed[i] if i in fixed else next(values) for i in range(len(args))], **kwargs)
            if signature is not None:
                outputs = result if isinstance(result, tuple) else (result,)
                if len(outputs) != len(core[1]):
                    raise TypeError(f"wrong number of outputs: expected {len(core[1])}, got {len(outputs)}")
                for output, dims in zip(outputs, core[1]):
                    if jnp.ndim(output) != len(dims):
                        raise ValueError(f"output shape {jnp.shape(output)} does not match core dimensions {dims}")
            return result

        core = _parse_signature(signature) if signature is not None else ([()] * len(moving), None)
        if len(core[0]) != len(moving):
            raise TypeError(f"wrong number of positional arguments: expected {len(core[0])}, got {len(moving)}")
        sizes, loops = {}, []
        for value, dims in zip(moving, core[0]):
            if value.ndim < len(dims):
                raise ValueError(f"vectorized function with signature {signature!r}: argument with shape {value.shape} "
                                 f"does not have enough dimensions for all core dimensions {dims}")
            own = value.shape[value.ndim - len(dims):]
            for name, size in zip(dims, own):
                if sizes.setdefault(name, size) != size:
                    raise ValueError(f"inconsistent size for core dimension {name!r}: {sizes[name]} vs {size}")
            loops.append(value.shape[:value.ndim - len(dims)])
        shape = jnp.broadcast_shapes(*loops) if loops else ()
        function = call
        # Sizes of one are dropped and broadcast by vmap's None, the others mapped from the right.
        squeezed = []
        axes_of = []
        for value, loop in zip(moving, loops):
            axes = tuple(i for i, size in enumerate(loop) if size == 1 and shape[len(shape) - len(loop) + i] != 1)
            squeezed.append(jnp.squeeze(value, axes) if axes else value)
            axes_of.append([len(shape) - len(loop) + i for i in range(len(loop)) if i not in axes])
        for axis in reversed(range(len(shape))):
            in_axes = tuple(0 if axis in own else None for own in axes_of)
            if all(a is None for a in in_axes):
                function = _repeat(function, shape[axis], jnp)
            else:
                function = vmap(function, in_axes=in_axes)
        return function(*squeezed)

    return wrapped


def _repeat(function, size, jnp):
    def repeated(*args):
        leaves, tree = _core.tree_flatten(function(*args))
        return tree.unflatten([jnp.broadcast_to(leaf, (size,) + jnp.shape(leaf)) for leaf in leaves])
    return repeated


def _module():
    import capibara.jax.numpy as module
    return module


class ufunc:
    """A universal function: elementwise, with reductions, accumulations and outer products of its own."""

    def __init__(self, func, nin, nout, *, name=None, nargs=None, identity=None, call=None):
        self._func = func
        self._call = call or vectorize(func)
        self.nin, self.nout, self.nargs, self.identity = nin, nout, nin + nout, identity
        self.__name__ = name or getattr(func, "__name__", "ufunc")
        self.__doc__ = getattr(func, "__doc__", None)
        if call is not None:
            self.__wrapped__ = call

    @_tracebacks.is_boundary
    def __call__(self, *args, out=None, where=None):
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}")
        if where is not None:
            raise NotImplementedError(f"where argument of {self.__name__}")
        try:
            return self._call(*args)
        except Exception as error:
            _tracebacks.filter_frames(error)
            raise

    def __repr__(self):
        return f"<jnp.ufunc '{self.__name__}'>"

    def reduce(self, a, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=None):
        """The function applied along an axis."""
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.reduce()")
        if self.nin != 2 or self.nout != 1:
            raise ValueError("reduce only supported for binary ufuncs with a single output")
        known = _REDUCTIONS.get(self.__name__)
        if known is None and where is not None:
            raise NotImplementedError(f"where argument of {self.__name__}.reduce()")
        if known is not None:
            return _reduce_by(getattr(_module(), known), a, axis, dtype, keepdims, initial, where)
        return _reduce(self, a, axis, dtype, keepdims, initial)

    def accumulate(self, a, axis=0, dtype=None, out=None):
        """All partial reductions along an axis."""
        if self.nin != 2 or self.nout != 1:
            raise ValueError("accumulate only supported for binary ufuncs with a single output")
        return _accumulate(self, a, axis, dtype)

    def outer(self, A, B, /):
        """The function of every pair of elements."""
        if self.nin != 2:
            raise ValueError("outer only supported for binary ufuncs")
        return _outer(self, A, B)

    def at(self, a, indices, b=None, /, *, inplace=True):
        """The function applied at indices, once for every time one is named."""
        if inplace:
            raise NotImplementedError("JAX arrays are immutable: use inplace=False, and the result of ufunc.at")
        target = _module().asarray(a).at[indices]
        if b is None:
            return target.apply(self)
        known = {"add": "add", "subtract": "subtract", "multiply": "multiply", "maximum": "max", "minimum": "min"}
        if self.__name__ in known:
            return getattr(target, known[self.__name__])(b)
        return _at(self, a, indices, b)


_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any"}


def _reduce_by(function, a, axis, dtype, keepdims, initial, where):
    options = {"axis": axis, "keepdims": keepdims, "where": where}
    if dtype is not None:
        options["dtype"] = dtype
    if initial is not None:
        options["initial"] = initial
    return function(a, **{name: value for name, value in options.items() if name == "axis" or value is not None})


def _at(function, a, indices, b):
    jnp = _module()
    a, indices = jnp.asarray(a), jnp.asarray(indices)
    b = jnp.broadcast_to(jnp.asarray(b), indices.shape + a.shape[1:])
    def step(carry, place):
        i, value = place
        return carry.at[i].set(jnp.asarray(function(carry[i], value), carry.dtype)), None
    pairs = (indices.ravel(), b.reshape((-1,) + a.shape[1:]))
    return _core.scan(step, a, pairs, None, False, 1)[0]


def _reduce(function, a, axis, dtype, keepdims, initial):
    jnp = _module()
    a = jnp.asarray(a, dtype=dtype)
    if axis is None:
        a, axis = a.ravel(), 0
    moved = jnp.moveaxis(a, axis, 0)
    if initial is None and moved.shape[0] == 0:
        raise ValueError("zero-size array to reduction operation which has no identity")
    start = moved[0] if initial is None else jnp.broadcast_to(jnp.asarray(initial, moved.dtype), moved.shape[1:])
    rest = moved[1:] if initial is None else moved
    total, _ = _core.scan(lambda carry, x: (jnp.asarray(function(carry, x), moved.dtype), None), start, rest, None, False, 1)
    return jnp.expand_dims(total, axis) if keepdims else total


def _accumulate(function, a, axis, dtype):
    jnp = _module()
    a = jnp.asarray(a, dtype=dtype)
    moved = jnp.moveaxis(a, axis, 0)
    if moved.shape[0] == 0:
        return a
    def step(carry, x):
        value = jnp.asarray(function(carry, x), moved.dtype)
        return value, value
    _, rest = _core.scan(step, moved[0], moved[1:], None, False, 1)
    return jnp.moveaxis(jnp.concatenate([moved[:1], rest], 0), 0, axis)


def _outer(function, A, B):
    jnp = _module()
    A, B = jnp.asarray(A), jnp.asarray(B)
    return function(A.reshape(A.shape + (1,) * B.ndim), B)


def frompyfunc(func, /, nin, nout, *, identity=None):
    """A universal function from a function of scalars."""
    return ufunc(func, nin, nout, identity=identity)


def custom_op(x, *operands, optimization=None, **parameters):
    """Applies a registered user primitive to arrays.

    `optimization` names the primitive, as given to `core.custom_prim` or `core.Primitive`; without it x is returned
    unchanged. Further operands and parameters are handed to the primitive.
    """
    if optimization is None:
        return _module().asarray(x)
    from capibara.jax.core import find_user_primitive
    return find_user_primitive(optimization).bind(x, *operands, **parameters)


_tracebacks.guard(__name__)
