"""Functions of jax.numpy that take Python functions or registered primitives, or read an array one element at a time."""
import functools
import re

from capibara import _core, _tracebacks
from capibara._modules import Library
from capibara.jax._api import vmap

__all__ = ["vectorize", "custom_op", "split", "array_split", "hsplit", "vsplit", "dsplit"]

jnp = Library("numpy")


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
    """Makes a function of core dimensions broadcast over other dimensions, by vmap."""
    if any(not isinstance(item, (str, int)) for item in excluded):
        raise TypeError(f"jax.numpy.vectorize can only exclude integer or string arguments, but excluded={excluded!r}")
    if any(isinstance(item, int) and item < 0 for item in excluded):
        raise ValueError(f"excluded={excluded!r} contains negative numbers")

    @_tracebacks.boundary
    @functools.wraps(pyfunc)
    def wrapped(*args, **kwargs):
        missing = {i for i, a in enumerate(args) if a is None and i not in excluded}
        if missing and signature is not None:
            raise ValueError(f"vectorize: Cannot pass None at locations {missing} with {signature=}")
        static = {i: a for i, a in enumerate(args) if i in excluded or a is None}
        dynamic = [jnp.asarray(a) for i, a in enumerate(args) if i not in static]
        names = {k: v for k, v in kwargs.items() if k not in excluded}
        if names:
            raise NotImplementedError("vectorize: keyword arguments must be named in `excluded`")

        def call(*values):
            values = iter(values)
            result = pyfunc(*[static[i] if i in static else next(values) for i in range(len(args))], **kwargs)
            if signature is not None:
                if len(core[1]) > 1 and not isinstance(result, tuple):
                    raise TypeError(f"vectorize with {signature=}: output must be a tuple, got {result}")
                outputs = result if isinstance(result, tuple) else (result,)
                if len(outputs) != len(core[1]):
                    raise TypeError(f"vectorize with {signature=}: wrong number of output arguments: expected {len(core[1])}, got {len(outputs)}")
                own_sizes = dict(sizes)
                for output, dims in zip(outputs, core[1]):
                    if jnp.ndim(output) != len(dims):
                        raise ValueError(f"output shape {jnp.shape(output)} does not match core dimensions {dims}")
                    _take_sizes(own_sizes, dims, jnp.shape(output))
            return result

        core = _parse_signature(signature) if signature is not None else ([()] * len(dynamic), None)
        if len(core[0]) != len(dynamic):
            raise TypeError(f"wrong number of positional arguments: expected {len(core[0])}, got {len(dynamic)}")
        sizes, loops = {}, []
        for value, dims in zip(dynamic, core[0]):
            if value.ndim < len(dims):
                raise ValueError(f"vectorized function with signature {signature!r}: input with shape {value.shape} "
                                 f"does not have enough dimensions for all core dimensions {dims}")
            _take_sizes(sizes, dims, value.shape[value.ndim - len(dims):])
            loops.append(value.shape[:value.ndim - len(dims)])
        _check_ranks(loops, dynamic)
        shape = jnp.broadcast_shapes(*loops) if loops else ()
        function = call
        # Dimensions of size one are dropped and broadcast by vmap's None, the others are mapped from the right.
        squeezed = []
        axes_of = []
        for value, loop in zip(dynamic, loops):
            axes = tuple(i for i, size in enumerate(loop) if size == 1 and shape[len(shape) - len(loop) + i] != 1)
            squeezed.append(jnp.squeeze(value, axes) if axes else value)
            axes_of.append([len(shape) - len(loop) + i for i in range(len(loop)) if i not in axes])
        for axis in reversed(range(len(shape))):
            in_axes = tuple(0 if axis in own else None for own in axes_of)
            if all(a is None for a in in_axes):
                function = _repeat(function, shape[axis])
            else:
                function = vmap(function, in_axes=in_axes)
        return function(*squeezed)

    return wrapped


def _take_sizes(sizes, dims, shape):
    """Records the sizes of core dimensions; each name has one size."""
    for name, size in zip(dims, shape):
        if sizes.setdefault(name, size) != size:
            raise ValueError(f"inconsistent size for core dimension {name!r}: {sizes[name]} vs {size}")


def _check_ranks(loops, dynamic):
    """Checks the operands' loop dimensions according to numpy_rank_promotion."""
    mode = _core.config_values()["numpy_rank_promotion"]
    if mode == "allow" or len({len(loop) for loop in loops if loop}) < 2:
        return
    text = f"operands with shapes {[value.shape for value in dynamic]} require rank promotion, which jax_numpy_rank_promotion={mode!r} "
    if mode == "raise":
        raise ValueError(f"vectorize: {text}does not allow")
    import warnings
    warnings.warn(f"vectorize: {text}warns of", UserWarning, stacklevel=3)


def _repeat(function, size):
    def repeated(*args):
        leaves, tree = _core.tree_flatten(function(*args))
        return tree.unflatten([jnp.broadcast_to(leaf, (size,) + jnp.shape(leaf)) for leaf in leaves])
    return repeated


def custom_op(x, *operands, optimization=None, **parameters):
    """Applies a registered user primitive to arrays.

    `optimization` names the primitive, as given to `core.custom_prim` or `core.Primitive`; without it x is returned
    unchanged. Other operands and parameters are passed to the primitive.
    """
    if optimization is None:
        return jnp.asarray(x)
    from capibara.jax.core import find_user_primitive
    return find_user_primitive(optimization).bind(x, *operands, **parameters)


def _split(name):
    function = getattr(jnp, name)

    @functools.wraps(function)
    def split(ary, indices_or_sections, *args, **kwargs):
        if isinstance(indices_or_sections, _core.Array) and indices_or_sections.ndim:
            indices_or_sections = list(indices_or_sections)  # reads from an array, whose values are unknown inside jit
        return function(ary, indices_or_sections, *args, **kwargs)
    return split


split, array_split, hsplit, vsplit, dsplit = (_split(name) for name in ("split", "array_split", "hsplit", "vsplit", "dsplit"))

_tracebacks.guard(__name__)
