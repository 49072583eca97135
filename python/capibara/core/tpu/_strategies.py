"""How the parameters of a model are split over a mesh: tables of patterns on their names, which can be printed and replaced."""
import dataclasses
import math
import re

import numpy as np

import capibara.jax as jax
from capibara import _tracebacks
from capibara.jax.sharding import NamedSharding, PartitionSpec
from capibara.model import as_model


@dataclasses.dataclass(frozen=True)
class Rule:
    """Parameters whose path matches `pattern` split their last dimensions over the axes of `dimensions`.

    "largest" in place of the dimensions: the largest dimension that the axis divides is split. Axes that the mesh does not have,
    or that do not divide the dimension, are left out.
    """

    pattern: str
    dimensions: tuple | str
    axis: str = ""  # of "largest"
    why: str = ""

    def spec(self, shape, mesh):
        entries = [None] * len(shape)
        if self.dimensions == "largest":
            fits = [d for d in range(len(shape)) if _divides(mesh, self.axis, shape[d])]
            if fits:
                entries[max(fits, key=lambda d: (shape[d], -d))] = self.axis
        else:
            last = min(len(shape), len(self.dimensions))
            for d, axis in zip(range(len(shape) - last, len(shape)), self.dimensions[len(self.dimensions) - last:]):
                entries[d] = axis if axis and _divides(mesh, axis, shape[d]) else None
        return PartitionSpec(*entries)


def _divides(mesh, axis, size):
    return axis in mesh.axis_names and mesh.shape[axis] > 1 and size % mesh.shape[axis] == 0


_WIDENS = r"(^|/)(q|k|v|qkv|query|key|value|up|gate|wi|w1|w3|fc1|c_fc|in_proj|c_attn)(_proj)?(/|$)"
_NARROWS = r"(^|/)(o|out|down|wo|w2|fc2|c_proj|out_proj)(_proj)?(/|$)"
_WHOLE = Rule("", (), why="everything else is whole on every device")
_MEGATRON = (
    Rule(_WIDENS + r"(.*/)?(b|bias)$", ("model",), why="a bias beside split columns"),
    Rule(_WIDENS, (None, "model"), why="columns: each device computes some of the outputs"),
    Rule(_NARROWS + r"(.*/)?(b|bias)$", (), why="added once, after the sum"),
    Rule(_NARROWS, ("model", None), why="rows: each device sums over some of the inputs"),
    Rule(r"embed|(^|/)(wte|lm_head)(/|$)", ("model", None), why="some of the vocabulary on each device"),
)
_STRATEGIES = {
    "fsdp": (Rule("", "largest", "data", why="every parameter in parts, gathered where it is used"),),
    "megatron": (*_MEGATRON, _WHOLE),
    "expert": (Rule(r"expert", ("expert", None, None), why="some of the experts on each device"), *_MEGATRON, _WHOLE),
}


def strategies():
    """{name: its rules}; the first rule whose pattern matches counts."""
    return dict(_STRATEGIES)


def _rules(operation, strategy, rules):
    if rules is not None:
        if not isinstance(rules, (list, tuple)) or not all(isinstance(rule, Rule) for rule in rules):
            raise TypeError(f"{operation}: expected a list of Rule (argument 'rules'), got {rules!r}")
        return (*rules, _WHOLE)
    if not isinstance(strategy, str) or strategy not in _STRATEGIES:
        raise ValueError(f"{operation}: strategy must be one of {', '.join(_STRATEGIES)}, got {strategy!r}; rules= takes a table of "
                         "your own")
    return _STRATEGIES[strategy]


def _model_of(operation, model):
    made = as_model(model, operation=operation)
    if made.params is None:
        raise TypeError(f"{operation}: {made.name} has no parameters yet (argument 'model'): as_model(model, params), with params made by "
                        "its init(key)")
    return made


def _require_mesh(operation, mesh):
    if not hasattr(mesh, "axis_names") or not hasattr(mesh, "shape"):
        raise TypeError(f"{operation}: expected a Mesh (argument 'mesh'), got {mesh!r}")


def _named_leaves(tree):
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), leaf) for path, leaf in leaves], structure


def _is_array(leaf):
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def _chosen(name, leaf, mesh, rules):
    rule = next(rule for rule in rules if re.search(rule.pattern, name))
    return rule, rule.spec(np.shape(leaf), mesh)


def shard_model(model, mesh, strategy="fsdp", rules=None):
    """The model with its parameters split over the mesh: "fsdp", "megatron" or "expert", or as `rules`, a list of Rule, say.

    A tree of arrays gives such a tree, in which leaves that are no arrays stay as they are. Any other model that as_model takes gives a
    Model with placed `params`; a LanguageModel needs as_model(model, params). `sharding_table` shows beforehand what goes where.
    """
    _require_mesh("shard_model", mesh)
    table = _rules("shard_model", strategy, rules)
    tree = _tree_of("shard_model", model)
    leaves, structure = _named_leaves(tree if tree is not None else _model_of("shard_model", model).params)
    placed = [jax.device_put(leaf, NamedSharding(mesh, _chosen(name, leaf, mesh, table)[1])) if _is_array(leaf) else leaf
              for name, leaf in leaves]
    placed = jax.tree_util.tree_unflatten(structure, placed)
    return placed if tree is not None else _model_of("shard_model", model).with_params(placed)


def _tree_of(operation, model):
    """A tree that holds arrays, or None where the model is something else."""
    if isinstance(model, (dict, list, tuple)) and not ({"apply", "loss"} & set(model) if isinstance(model, dict) else set()):
        leaves = jax.tree_util.tree_leaves(model)
        if any(_is_array(leaf) for leaf in leaves):
            return model
        raise TypeError(f"{operation}: expected a model or a tree with arrays (argument 'model'), got {type(model).__name__} "
                        "without an array")
    return None


def sharding_table(model, mesh, strategy="fsdp", rules=None):
    """A text with one line for each parameter: its shape, its specification, the bytes on each device and why."""
    _require_mesh("sharding_table", mesh)
    table = _rules("sharding_table", strategy, rules)
    tree = _tree_of("sharding_table", model)
    if tree is None:
        made = as_model(model, operation="sharding_table")
        by_name = [(name.replace(".", "/"), leaf) for name, leaf in made.types().items()]
        leaves = by_name if made.params is None else _named_leaves(made.params)[0]
    else:
        leaves = _named_leaves(tree)[0]
    lines, total = [("parameter", "shape", "spec", "bytes/device", "why")], 0
    for name, leaf in leaves:
        if not _is_array(leaf):
            continue
        rule, spec = _chosen(name, leaf, mesh, table)
        parts = math.prod(mesh.shape[axis] for axis in spec if axis)
        size = math.prod(leaf.shape) * np.dtype(leaf.dtype).itemsize // parts
        total += size
        why = rule.why if parts > 1 else "whole on every device"
        lines.append((name, "x".join(map(str, leaf.shape)) or "()", str(spec), f"{size:,}", why))
    lines.append(("all", "", "", f"{total:,}", ""))
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "\n".join("  ".join([*(cell.ljust(width) for cell, width in zip(line, widths)), line[4]]).rstrip() for line in lines)


_tracebacks.guard(__name__)
