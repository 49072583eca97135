"""The models of the catalog as constructor functions: Linear(64), Relu(), MLP(...). `dir()` lists them."""
import ast as _ast
import inspect as _inspect
from collections.abc import Callable

from capibara import _core
from capibara._core.models import TBD as _TBD
from capibara._core.models import Model, TrainModel, from_specification, to_specification
from capibara._core.models import custom_model as _custom_model
from capibara._core.models import parse_json as _parse_json

_catalog = {name: (signature, sentence) for name, signature, sentence, _ in _core.models.catalog()}


def _signature(row):
    """The signature of a row, 'dimension=None, use_bias=True, input'. Inputs without a default may be omitted and connected later."""
    parameters, depth, start = [], 0, 0
    for i, letter in enumerate(row + ","):
        depth += (letter in "([") - (letter in ")]")
        if letter != "," or depth or not row[start:i].strip():
            continue
        name, _, default = row[start:i].strip().partition("=")
        value = _ast.literal_eval(default) if default else _TBD
        parameters.append(_inspect.Parameter(name, _inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value))
        start = i + 1
    for name in ("name", "shapes"):
        parameters.append(_inspect.Parameter(name, _inspect.Parameter.KEYWORD_ONLY, default=None))
    return _inspect.Signature(parameters)


def _maker(name):
    signature, sentence = _catalog[name]

    def make(*args, **kwargs):
        return _core.models.make(name, *args, **kwargs)

    make.__name__ = make.__qualname__ = name
    make.__signature__ = _signature(signature)
    make.__doc__ = f"{name}({signature})\n\n{sentence}"
    return make


for _name in _catalog:
    globals()[_name] = _maker(_name)

__all__ = ["Model", "TrainModel", "from_json", "from_specification", "operation", "to_specification", *_catalog]


def operation(function: Callable[..., object], inputs: list[str] | None = None, name: str | None = None) -> Model:
    """A model from a function on arrays: its keys are `inputs` (by default the function's parameters) and `output`."""
    if inputs is None:
        inputs = list(_inspect.signature(function).parameters)
        if len(inputs) == 1:
            inputs = ["input"]
    return _custom_model(name or getattr(function, "__name__", "function"), list(inputs), function)


def from_json(text: str) -> Model:
    """A model from the JSON text of its specification."""
    return from_specification(_parse_json(text))
