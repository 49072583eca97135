"""Types of capibara.jax.tree. Made by tools/python/make_stubs.py."""
from capibara.jax import tree_util as _tree_util

from typing import Any

def static(**kwargs: Any) -> Any: ...
all = _tree_util.tree_all
broadcast = _tree_util.tree_broadcast
flatten = _tree_util.tree_flatten
flatten_with_path = _tree_util.tree_flatten_with_path
leaves = _tree_util.tree_leaves
leaves_with_path = _tree_util.tree_leaves_with_path
map = _tree_util.tree_map
map_with_path = _tree_util.tree_map_with_path
reduce = _tree_util.tree_reduce
reduce_associative = _tree_util.tree_reduce_associative
structure = _tree_util.tree_structure
transpose = _tree_util.tree_transpose
unflatten = _tree_util.tree_unflatten
