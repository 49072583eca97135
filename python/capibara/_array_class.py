"""jax.Array: the public class of arrays and traced arrays, which libraries may extend."""
from capibara import _core


class ArrayMeta(_core.ArrayMeta):
    """The metaclass of jax.Array: attributes of arrays are attributes of the class."""

    def __getattr__(cls, name):
        if cls is not Array:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}", name=name, obj=cls)
        return getattr(_core.Array, name)

    def __setattr__(cls, name, value):
        """A method that a library adds to jax.Array becomes a method of all arrays."""
        if cls is Array:
            setattr(_core.Array, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(cls, name):
        if cls is Array:
            delattr(_core.Array, name)
        else:
            super().__delattr__(name)

    def __dir__(cls):
        return sorted({*super().__dir__(), *(dir(_core.Array) if cls is Array else ())})


class Array(metaclass=ArrayMeta):
    """An array of numbers, or a tracer of one; created by functions of jax.numpy."""

    # Attributes that every class has are found here before the metaclass looks up those of arrays.
    locals().update({name: vars(_core.Array)[name] for name in {*vars(object)} & {*vars(_core.Array)} - {"__doc__", "__new__"}})
    __hash__ = None

    def __new__(cls, *args, **kwargs):
        if cls is Array:
            raise TypeError("jax.Array: arrays are made by functions of jax.numpy, such as jax.numpy.array and jax.numpy.zeros")
        return super().__new__(cls)


type.__setattr__(Array, "__module__", "capibara.jax")
_core.set_array_class(Array)
