"""jax.Array: the class that arrays and traced arrays are instances of, which users name and libraries build on."""
from capibara import _core


class ArrayMeta(_core.ArrayMeta):
    """The class of jax.Array: whatever arrays have, it has."""

    def __getattr__(cls, name):
        if cls is not Array:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}", name=name, obj=cls)
        return getattr(_core.Array, name)

    def __setattr__(cls, name, value):
        """A method that a library gives to jax.Array is one of all arrays."""
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
    """An array of numbers, or what stands for one while a function is traced; jax.numpy makes them."""

    # What every class has is found here before it is looked for among the attributes of arrays.
    locals().update({name: vars(_core.Array)[name] for name in {*vars(object)} & {*vars(_core.Array)} - {"__doc__", "__new__"}})
    __hash__ = None

    def __new__(cls, *args, **kwargs):
        if cls is Array:
            raise TypeError("jax.Array: arrays are made by functions of jax.numpy, such as jax.numpy.array and jax.numpy.zeros")
        return super().__new__(cls)


type.__setattr__(Array, "__module__", "capibara.jax")
_core.set_array_class(Array)
