"""jax.experimental.shard_alike: gives values the same sharding."""
from typing import Any

from capibara import _core
from capibara._modules import explain_missing
from capibara.jax import device_put, lax, tree_util


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """Both trees, whose leaves get the same shardings unless constrained otherwise."""
    leaves, tree = tree_util.tree_flatten(x)
    others, other_tree = tree_util.tree_flatten(y)
    if tree != other_tree:
        raise ValueError(f"Trees should be equal. Got x_tree: {tree}, y_tree: {other_tree}")
    pairs = []
    for one, other in zip(map(_core.as_array, leaves), map(_core.as_array, others)):
        if one.shape != other.shape:
            raise ValueError(f"The leaves shapes of `x` and `y` should match. Got `x` leaf shape: {one.shape} and `y` leaf shape: "
                             f"{other.shape}.")
        pairs.append(_pair(one, other))
    return tree.unflatten([one for one, _ in pairs]), tree.unflatten([other for _, other in pairs])


def _pair(one, other):
    if not isinstance(one, _core.Tracer) and not isinstance(other, _core.Tracer):
        return (one, device_put(other, one.sharding)) if one.committed or not other.committed else (device_put(one, other.sharding), other)
    # A select has the sharding of its operands and passes its own on to them; here the predicate is a constant.
    return _choice(one, other), _choice(other, one)


def _choice(taken, left):
    return lax.select(_core.as_array(True), taken, lax.stop_gradient(left).astype(taken.dtype))


explain_missing(__name__)
