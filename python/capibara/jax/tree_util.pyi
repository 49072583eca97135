"""Types of pytrees: nested containers and registered classes whose leaves are values."""
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar, overload

from capibara._core import PyTreeDef as PyTreeDef
from capibara._stub_types import PyTree
from capibara._tree_keys import DictKey as DictKey
from capibara._tree_keys import FlattenedIndexKey as FlattenedIndexKey
from capibara._tree_keys import GetAttrKey as GetAttrKey
from capibara._tree_keys import SequenceKey as SequenceKey

_T = TypeVar("_T")
_C = TypeVar("_C", bound=type[Any])
KeyEntry = TypeVar("KeyEntry", bound=Any)
KeyPath: TypeAlias = tuple[Any, ...]
_IsLeaf: TypeAlias = Callable[[Any], bool]

def tree_flatten(tree: PyTree, is_leaf: _IsLeaf | None = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree, and its structure."""
def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> PyTree:
    """Builds a tree from a structure and leaves."""
def tree_leaves(tree: PyTree, is_leaf: _IsLeaf | None = None) -> list[Any]:
    """The leaves of a tree."""
def tree_structure(tree: PyTree, is_leaf: _IsLeaf | None = None) -> PyTreeDef:
    """The structure of a tree."""
def tree_map(f: Callable[..., Any], tree: PyTree, *rest: PyTree, is_leaf: _IsLeaf | None = None) -> PyTree:
    """Applies a function to each leaf, and to the corresponding subtrees of the other trees."""
def tree_flatten_with_path(
    tree: PyTree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Pairs of key path and leaf, and the structure."""
def tree_leaves_with_path(
    tree: PyTree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Pairs of key path and leaf."""
def tree_map_with_path(
    f: Callable[..., Any], tree: PyTree, *rest: PyTree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> PyTree:
    """tree_map for a function that also takes the key path."""
def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A key path as text."""
@overload
def tree_reduce(function: Callable[[_T, Any], _T], tree: PyTree, *, is_leaf: _IsLeaf | None = None) -> _T:
    """The leaves combined from left to right."""
@overload
def tree_reduce(function: Callable[[_T, Any], _T], tree: PyTree, initializer: _T, is_leaf: _IsLeaf | None = None) -> _T: ...
def tree_reduce_associative(operation: Callable[[_T, _T], _T], tree: PyTree, *, identity: _T = ..., is_leaf: _IsLeaf | None = None) -> _T:
    """The leaves combined pairwise by an associative operation."""
def tree_all(tree: PyTree, *, is_leaf: _IsLeaf | None = None) -> bool:
    """True if every leaf is true."""
def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: PyTree) -> PyTree:
    """Transposes a tree of trees: the inner structure becomes the outer one."""
def tree_broadcast(prefix_tree: PyTree, full_tree: PyTree, is_leaf: _IsLeaf | None = None) -> PyTree:
    """Broadcasts a prefix tree to the structure of a full one."""
def broadcast_prefix(prefix_tree: PyTree, full_tree: PyTree, is_leaf: _IsLeaf | None = None) -> list[Any]:
    """The leaves of a prefix tree, one for each leaf of the full tree."""
def broadcast_flattened_prefix_with_treedef(prefix_leaves: Iterable[Any], prefix_treedef: PyTreeDef, full_treedef: PyTreeDef) -> list[Any]:
    """broadcast_prefix for trees of which only the structures are known."""
def all_leaves(iterable: Iterable[Any], is_leaf: _IsLeaf | None = None) -> bool:
    """True if no element of an iterable is a container."""
def treedef_is_leaf(treedef: PyTreeDef) -> bool: ...
def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]: ...
def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef: ...
def is_tree_node(typ: type[Any]) -> bool:
    """True if values of a type are containers."""
def flatten_one_level(tree: PyTree) -> tuple[Any, Any]:
    """The children of a container and its auxiliary data."""
def flatten_one_level_with_keys(tree: PyTree) -> tuple[list[tuple[Any, Any]], Any]:
    """Pairs of key and child of a container, and its auxiliary data."""
def register_pytree_node(
    nodetype: type[_T], flatten_func: Callable[[_T], tuple[Iterable[Any], Any]], unflatten_func: Callable[[Any, Any], _T],
    flatten_with_keys_func: Callable[[_T], tuple[Iterable[tuple[Any, Any]], Any]] | None = None
) -> None:
    """Registers a class as a container, with functions to flatten and rebuild it."""
def register_pytree_with_keys(
    nodetype: type[_T], flatten_with_keys: Callable[[_T], tuple[Iterable[tuple[Any, Any]], Any]], unflatten_func: Callable[[Any, Any], _T],
    flatten_func: Callable[[_T], tuple[Iterable[Any], Any]] | None = None
) -> None:
    """register_pytree_node with keys for the children."""
def register_pytree_node_class(cls: _C) -> _C:
    """Registers a class with tree_flatten and tree_unflatten as a container."""
def register_pytree_with_keys_class(cls: _C) -> _C:
    """Registers a class with tree_flatten_with_keys and tree_unflatten as a container."""
@overload
def register_dataclass(
    nodetype: _C, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] | None = None, drop_fields: Sequence[str] = ()
) -> _C:
    """Registers a dataclass as a container; meta fields are static."""
@overload
def register_dataclass(
    nodetype: None = None, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] | None = None, drop_fields: Sequence[str] = ()
) -> Callable[[_C], _C]: ...
def register_static(cls: _C) -> _C:
    """Registers a class whose instances are static structure, without leaves."""
def register_custom_pytree(
    nodetype: _C, flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
    unflatten_func: Callable[[Any, Any], Any] | None = None, flatten_with_keys_func: Callable[[Any], Any] | None = None
) -> _C:
    """register_pytree_node, or for a class with tree_flatten and tree_unflatten register_pytree_node_class."""

class Partial(functools.partial[_T]):
    """functools.partial as a container: the function is structure, its arguments are leaves."""

    def __new__(cls, func: Callable[..., _T], *args: Any, **keywords: Any) -> Partial[_T]: ...

class _Registry:
    def flatten(self, tree: PyTree, is_leaf: _IsLeaf | None = None) -> tuple[list[Any], PyTreeDef]: ...
    def flatten_one_level(self, tree: PyTree) -> tuple[Any, Any] | None: ...

default_registry: _Registry
