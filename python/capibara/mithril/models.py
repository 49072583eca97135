"""The models of the catalog, each as a function that makes one: Linear(64), Relu(), MLP(...). `dir()` lists them."""
from collections.abc import Callable
from typing import TYPE_CHECKING

from capibara import _core
from capibara._core.models import Model, TrainModel, from_specification, parse_json, to_specification
from capibara._core.models import custom_model as _custom_model

_catalog = {name: (signature, sentence) for name, signature, sentence, _ in _core.models.catalog()}


def _maker(name):
    signature, sentence = _catalog[name]

    def make(*args, **kwargs):
        return _core.models.make(name, *args, **kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{name}({signature})\n\n{sentence}"
    return make


if TYPE_CHECKING:  # the models of the catalog
    def __getattr__(name: str) -> Callable[..., Model]: ...

for _name in _catalog:
    globals()[_name] = _maker(_name)

__all__ = ["Model", "TrainModel", "from_json", "from_specification", "operation", "to_specification", *_catalog]


def operation(function: Callable[..., object], inputs: list[str] | None = None, name: str | None = None) -> Model:
    """A model of a function on arrays: its keys are `inputs` (by default the function's parameters) and `output`."""
    import inspect

    if inputs is None:
        inputs = list(inspect.signature(function).parameters)
        if len(inputs) == 1:
            inputs = ["input"]
    return _custom_model(name or getattr(function, "__name__", "function"), list(inputs), function)


def from_json(text: str) -> Model:
    """A model from the JSON text of its specification."""
    return from_specification(parse_json(text))
