"""Objects of jax.experimental.colocated_python: created by the first method call, freed with their wrapper."""
import functools
from typing import Any

from capibara._modules import explain_missing
from capibara.jax.experimental.colocated_python.func import ColocatedFunction

_KEPT_BACK = ("__init__", "__del__", "__reduce__", "__reduce_ex__")


def wrap_class(cls: type) -> type:
    """A class with another class's methods, which run on the host of their arguments."""

    class Wrapped:
        @functools.wraps(cls.__init__)
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            made: list[Any] = []

            def instance() -> Any:
                if not made:
                    made.append(cls(*args, **kwargs))
                return made[0]

            for name in dir(cls):
                method = getattr(cls, name)
                if name.startswith("__") or name in _KEPT_BACK or not callable(method):
                    continue

                def call(*own: Any, _name: str = name, **named: Any) -> Any:
                    return getattr(instance(), _name)(*own, **named)

                setattr(self, name, ColocatedFunction(functools.wraps(method)(call)))

    Wrapped.__name__, Wrapped.__qualname__, Wrapped.__doc__ = cls.__name__, cls.__qualname__, cls.__doc__
    return Wrapped


explain_missing(__name__)
