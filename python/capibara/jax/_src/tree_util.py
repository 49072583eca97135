"""jax._src.tree_util: names of jax.tree_util."""
from capibara._modules import explain_missing
from capibara.jax.tree_util import *  # noqa: F401,F403
from capibara.jax.tree_util import is_tree_node, tree_structure


def treedef_is_strict_leaf(treedef):
    """Whether a structure is one leaf, and no container around it."""
    return treedef == tree_structure(0)


class _Registry:
    """Which classes are containers by themselves: named tuples are by being tuples."""

    def __contains__(self, kind):
        return is_tree_node(kind) and (kind is tuple or not issubclass(kind, tuple))


_registry = _Registry()

explain_missing(__name__)
