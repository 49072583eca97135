"""What the planner needs to know of a model: its sizes, from a preset's name, a description, or its parameters."""
import math
import re

import numpy as np

import capibara.jax as jax
from capibara import _core, _tracebacks

_TABLE = re.compile(r"embed|vocab|wte|lm_head|head", re.IGNORECASE)


def describe(model):
    """A preset's name, a dictionary with its sizes, or a tree of parameters (an object may have them as `params`) as sizes.

    Sizes that are read off parameters are a guess at their roles, which `inferred` says.
    """
    if isinstance(model, str):
        return next(row for row in _core.tpu.models() if row["name"] == model) if _is_preset(model) else _core.tpu.parameters(model)
    if isinstance(model, dict) and "layers" in model and "width" in model:
        return {"name": "model", **model}
    parameters = getattr(model, "params", model)
    leaves = [(jax.tree_util.keystr(path), np.shape(leaf)) for path, leaf in jax.tree_util.tree_leaves_with_path(parameters)
              if hasattr(leaf, "shape")]
    if not any(len(shape) >= 2 for _, shape in leaves):
        raise TypeError(f"plan: a model is a preset's name, a dictionary with layers and width, or a tree of parameters, got {type(model)}")
    return _from_parameters(leaves)


def _is_preset(name):
    _core.tpu.parameters(name)  # raises with the nearest name
    return True


def _from_parameters(leaves):
    matrices = [(path, shape[-2:], math.prod(shape[:-2])) for path, shape in leaves if len(shape) >= 2]
    sides = [side for _, shape, count in matrices for side in shape for _ in range(count)]
    width = max(set(sides), key=lambda side: (sides.count(side), -side))
    tables = [shape for path, shape, _ in matrices if _TABLE.search(path) and width in shape]
    vocab = max((max(shape) for shape in tables), default=width)
    inner = [(shape, count) for path, shape, count in matrices if not _TABLE.search(path)]
    hidden = max((side for shape, _ in inner for side in shape), default=width)
    total = sum(math.prod(shape) for _, shape in leaves)
    in_layers = max(total - sum(math.prod(shape) for shape in tables), 1)
    layers = max(1, round(in_layers / (4 * width * width + 2 * width * hidden)))
    head_size = next(size for size in (128, 64, 32, 16, 8, 4, 2, 1) if width % size == 0)
    return {"name": "model", "layers": layers, "width": width, "heads": width // head_size, "kv_heads": width // head_size,
            "head_size": head_size, "hidden": hidden, "vocab": vocab, "gated": False, "tied": len(tables) < 2, "inferred": True,
            "parameters": total}


_tracebacks.guard(__name__)
