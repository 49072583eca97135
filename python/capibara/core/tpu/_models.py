"""The planner's input for a model: a preset's name, a dictionary of sizes, or any model that as_model takes."""
from capibara import _core, _tracebacks
from capibara.model import Model, as_model


def planned(model, operation):
    """A model in the form of the core's planner: a name, a dictionary of sizes, or a name with Model.sizes."""
    if isinstance(model, str) or isinstance(model, dict) and "layers" in model and "width" in model \
            and not hasattr(model["width"], "shape"):
        return model
    if model is None or isinstance(model, (bool, int, float, bytes)):
        raise TypeError(f"{operation}: a model is a preset's name, a dictionary with layers and width, or what capibara.as_model takes "
                        f"(argument 'model'), got {model!r}")
    made = model if isinstance(model, Model) else as_model(model, operation=operation)
    try:
        return made.name, made.sizes()
    except ValueError as error:
        raise TypeError(f"{operation}: {made.name} shows no sizes (argument 'model'): {error}; state `sizes`, or give a dictionary with "
                        "layers and width") from None


def describe(model, operation="plan"):
    """The sizes of a model and its number of parameters; `inferred` and `assumptions` tell which are guesses."""
    return _core.tpu.describe(planned(model, operation), operation)


def assumed(sizes):
    """The assumptions about a model as one text; empty if nothing was inferred."""
    return f"assumed: {'; '.join(sizes['assumptions'])}\n" if sizes["assumptions"] else ""


_tracebacks.guard(__name__)
