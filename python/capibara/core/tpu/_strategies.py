"""Splits the parameters of a model over a mesh, by the core's tables of name patterns or by the user's rules."""
import dataclasses

import capibara.jax as jax
from capibara import _core, _tracebacks
from capibara.jax.sharding import NamedSharding, PartitionSpec
from capibara.model import as_model


@dataclasses.dataclass(frozen=True)
class Rule:
    """Parameters whose path matches `pattern` split their last dimensions over the axes of `dimensions`.

    `pattern` is an ECMAScript regular expression, without lookbehind and flags. With "largest" instead of the dimensions, the largest
    dimension that the axis divides is split. Axes that the mesh does not have, or that do not divide the dimension, are left out.
    """

    pattern: str
    dimensions: tuple | str
    axis: str = ""  # for "largest"
    why: str = ""

    def spec(self, shape, mesh):
        """The specification of a parameter of this shape."""
        leaves = [("", jax.ShapeDtypeStruct(shape, "float32"))]
        return _sharding("Rule.spec", leaves, mesh, None, [dataclasses.replace(self, pattern="")])[0][0]

    def _plain(self):
        largest = self.dimensions == "largest"
        return self.pattern, [] if largest else [axis or "" for axis in self.dimensions], self.axis if largest else "", self.why


def strategies():
    """{name: its rules}; the first matching rule applies."""
    return {name: tuple(Rule(pattern, "largest" if axis else tuple(one or None for one in dimensions), axis, why)
                        for pattern, dimensions, axis, why in rules) for name, rules in _core.tpu.strategies().items()}


def require_mesh(operation, mesh):
    """Raises TypeError if `mesh` is not a Mesh."""
    if not hasattr(mesh, "axis_names") or not hasattr(mesh, "shape"):
        raise TypeError(f"{operation}: expected a Mesh (argument 'mesh'), got {mesh!r}")


def spec_of(dimensions):
    """Converts the core's specification, a list of axes for each dimension."""
    return PartitionSpec(*(axes[0] if len(axes) == 1 else tuple(axes) or None for axes in dimensions))


def _sharding(operation, leaves, mesh, strategy, rules):
    """(spec of each of [(name, array)], table as text)."""
    require_mesh(operation, mesh)
    if rules is not None and (not isinstance(rules, (list, tuple)) or not all(isinstance(rule, Rule) for rule in rules)):
        raise TypeError(f"{operation}: expected a list of Rule (argument 'rules'), got {rules!r}")
    specs, text = _core.tpu.sharding(operation, leaves, list(mesh.axis_names), [mesh.shape[axis] for axis in mesh.axis_names], strategy,
                                     None if rules is None else [rule._plain() for rule in rules])
    return [spec_of(spec) for spec in specs], text


def _named_leaves(tree):
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), leaf) for path, leaf in leaves], structure


def _is_array(leaf):
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def shard_model(model, mesh, strategy="fsdp", rules=None):
    """The model with its parameters split over the mesh: "fsdp", "megatron" or "expert", or by `rules`, a list of Rule.

    A tree of arrays returns a tree, in which leaves that are not arrays stay unchanged. Any other model that as_model takes returns a
    Model with placed `params`; a LanguageModel needs as_model(model, params). `sharding_table` shows the placement in advance.
    """
    tree = _tree_of("shard_model", model)
    made = None if tree is not None else as_model(model, operation="shard_model")
    if made is not None and made.params is None:
        raise TypeError(f"shard_model: {made.name} has no parameters yet (argument 'model'): as_model(model, params), with params made by "
                        "its init(key)")
    leaves, structure = _named_leaves(tree if made is None else made.params)
    specs = iter(_sharding("shard_model", [row for row in leaves if _is_array(row[1])], mesh, strategy, rules)[0])
    placed = jax.tree_util.tree_unflatten(structure, [
        jax.device_put(leaf, NamedSharding(mesh, next(specs))) if _is_array(leaf) else leaf for _, leaf in leaves])
    return placed if made is None else made.with_params(placed)


def _tree_of(operation, model):
    """The model if it is a tree with arrays, otherwise None."""
    if isinstance(model, (dict, list, tuple)) and not ({"apply", "loss"} & set(model) if isinstance(model, dict) else set()):
        leaves = jax.tree_util.tree_leaves(model)
        if any(_is_array(leaf) for leaf in leaves):
            return model
        raise TypeError(f"{operation}: expected a model or a tree with arrays (argument 'model'), got {type(model).__name__} "
                        "without an array")
    return None


def sharding_table(model, mesh, strategy="fsdp", rules=None):
    """A text with one line for each parameter: its shape, its specification, the bytes on each device and the reason."""
    tree = _tree_of("sharding_table", model)
    if tree is None:
        made = as_model(model, operation="sharding_table")
        leaves = [(name.replace(".", "/"), leaf) for name, leaf in made.types().items()]
    else:
        leaves = [row for row in _named_leaves(tree)[0] if _is_array(row[1])]
    return _sharding("sharding_table", leaves, mesh, strategy, rules)[1]


_tracebacks.guard(__name__)
