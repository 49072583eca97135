"""What the planner needs to know of a model: its sizes, from a preset's name, a description, or the model itself."""
import numpy as np

from capibara import _core, _tracebacks
from capibara.core.tpu._errors import TPUError
from capibara.model import Model, as_model

_PLANNED = {"layers": "layers", "width": "width", "heads": "heads", "kv_heads": "key_heads", "head_size": "head_size", "hidden": "hidden",
            "vocab": "vocabulary", "gated": "gated", "tied": "tied", "experts": "experts", "active": "experts_per_token"}


def describe(model, operation="plan"):
    """A preset's name, a dictionary with its sizes, or any model that as_model takes, as sizes.

    Where the model does not state them they are a guess at the roles of its parameters: `inferred` says so, `assumptions` how.
    """
    if isinstance(model, str):
        try:
            _core.tpu.parameters(model)
        except ValueError as error:  # it has the nearest name
            raise TPUError(f"{operation}: {str(error).removeprefix('tpu: ')} (argument 'model'), got {model!r}") from None
        return next(row for row in _core.tpu.models() if row["name"] == model)
    if isinstance(model, dict) and "layers" in model and "width" in model and not hasattr(model["width"], "shape"):
        for name, value in model.items():
            if name in _PLANNED and (not isinstance(value, (int, np.integer)) or value < 0):
                raise TypeError(f"{operation}: expected a number as {name!r} of the sizes (argument 'model'), got {value!r}")
        return {"name": "model", **model}
    return sizes_of(model, operation)


def sizes_of(model, operation):
    """The sizes of a model as the planner names them; TypeError where it has none."""
    if model is None or isinstance(model, (bool, int, float, bytes)):
        raise TypeError(f"{operation}: a model is a preset's name, a dictionary with layers and width, or what capibara.as_model takes "
                        f"(argument 'model'), got {model!r}")
    made = model if isinstance(model, Model) else as_model(model, operation=operation)
    try:
        sizes = made.sizes()
    except ValueError as error:
        raise TypeError(f"{operation}: {made.name} shows no sizes (argument 'model'): {error}; state `sizes`, or give a dictionary with "
                        "layers and width") from None
    planned = {"name": made.name, **{ours: sizes[theirs] for ours, theirs in _PLANNED.items() if sizes[theirs]}}
    if planned.get("experts"):
        planned["kind"] = "moe"
    stated = {"parameters": sizes["parameters"], "inferred": sizes["inferred"], "assumptions": list(sizes["assumptions"])}
    missing = [name for name in ("layers", "width") if not planned.get(name)]
    if missing:
        raise TypeError(f"{operation}: the sizes of {made.name} have no {missing[0]} (argument 'model'), got {sizes}")
    width = planned["width"]
    heads = planned.get("heads") or max(width // 64, 1)
    for name, value in (("heads", heads), ("head_size", max(width // heads, 1)), ("hidden", 4 * width), ("vocab", width)):
        if name not in planned:
            planned[name] = value
            stated["inferred"] = True
            stated["assumptions"].append(f"{name} {value}: not stated")
    planned.setdefault("kv_heads", planned["heads"])
    return {**planned, "gated": bool(sizes["gated"]), "tied": bool(sizes["tied"]), **stated}


def request_of(sizes):
    """The sizes that the planner reads."""
    return {name: value for name, value in sizes.items() if name not in ("assumptions", "inferred", "parameters")}


def assumed(sizes, *more):
    """What was inferred of a model and assumed besides, as one text; empty where nothing was."""
    texts = [*(sizes.get("assumptions", ()) if isinstance(sizes, dict) else ()), *more]
    if not texts:
        return ""
    return "assumed: " + "; ".join(texts) + "\n"


def require_numbers(operation, **numbers):
    """TPUError where one that is given is no positive number."""
    for name, value in numbers.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0):
            raise TPUError(f"{operation}: {name} is a positive number, got {value!r}")


_tracebacks.guard(__name__)
