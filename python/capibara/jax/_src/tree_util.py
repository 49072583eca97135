"""jax._src.tree_util: names of jax.tree_util."""
from capibara._modules import explain_missing
from capibara.jax.tree_util import *  # noqa: F401,F403
from capibara.jax.tree_util import is_tree_node, tree_structure


def treedef_is_strict_leaf(treedef):
    """True if a structure is a single leaf without a container."""
    return treedef == tree_structure(0)


class _Registry:
    """The registry of container classes: named tuples are containers because they are tuples."""

    def __contains__(self, kind):
        return is_tree_node(kind) and (kind is tuple or not issubclass(kind, tuple))


_registry = _Registry()

explain_missing(__name__)
