"""Pytrees: nested containers and registered classes whose leaves are values."""
import dataclasses
import functools
import operator
import typing

from capibara import _core, _lifting
from capibara._core import PyTreeDef  # noqa: F401
from capibara._modules import explain_missing
from capibara._tree_errors import prefix_errors
from capibara._tree_keys import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey  # noqa: F401

KeyEntry = typing.TypeVar("KeyEntry", bound=typing.Any)
KeyPath = tuple[KeyEntry, ...]


def tree_flatten(tree, is_leaf=None):
    """The leaves of a tree, and its structure."""
    return _lifting.whole(_core.tree_flatten, tree, is_leaf)


def tree_unflatten(treedef, leaves):
    """Builds a tree from a structure and leaves."""
    return treedef.unflatten(leaves)


def tree_leaves(tree, is_leaf=None):
    """The leaves of a tree."""
    return _lifting.whole(_core.tree_leaves, tree, is_leaf)


def tree_structure(tree, is_leaf=None):
    """The structure of a tree."""
    return _lifting.whole(_core.tree_structure, tree, is_leaf)


def tree_map(f, tree, *rest, is_leaf=None):
    """Applies a function to each leaf, and to the corresponding subtrees of the other trees."""
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(leaf) for leaf in leaves])
    others = [_match(treedef, tree, other, is_leaf) for other in rest]
    return treedef.unflatten([f(*values) for values in zip(leaves, *others)])


def _match(treedef, tree, other, is_leaf=None, name="tree_map tree"):
    try:
        return treedef.flatten_up_to(other)
    except ValueError:
        found = prefix_errors(tree, other, is_leaf)
        if not found:
            raise
    raise found[0](name)


def tree_flatten_with_path(tree, is_leaf=None, is_leaf_takes_path=False):
    """Pairs of key path and leaf, and the structure."""
    return _core.tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)


def tree_leaves_with_path(tree, is_leaf=None, is_leaf_takes_path=False):
    """Pairs of key path and leaf."""
    return _core.tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(f, tree, *rest, is_leaf=None, is_leaf_takes_path=False):
    """tree_map for a function that also takes the key path."""
    pairs, treedef = _core.tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [_match(treedef, tree, other, None if is_leaf_takes_path else is_leaf) for other in rest]
    return treedef.unflatten([f(path, leaf, *values) for (path, leaf), *values in zip(pairs, *others)])


def keystr(keys, *, simple=False, separator=""):
    """A key path as text."""
    if not simple:
        return separator.join(map(str, keys)) if separator else "".join(map(str, keys))
    return separator.join(str(_simple_key(key)) for key in keys)


def _simple_key(key):
    for name in ("idx", "key", "name"):
        if hasattr(key, name):
            return getattr(key, name)
    return str(key)


_no_initializer = object()


def tree_reduce(function, tree, initializer=_no_initializer, is_leaf=None):
    """The leaves combined from left to right."""
    leaves = _core.tree_leaves(tree, is_leaf)
    if initializer is _no_initializer:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(operation, tree, *, identity=_no_initializer, is_leaf=None):
    """The leaves combined pairwise by an associative operation."""
    leaves = _core.tree_leaves(tree, is_leaf)
    if not leaves:
        if identity is _no_initializer:
            raise ValueError("Must specify identity for parallel reduction of empty sequence.")
        return identity
    while len(leaves) > 1:
        pairs = [operation(a, b) for a, b in zip(leaves[::2], leaves[1::2])]
        leaves = pairs + ([leaves[-1]] if len(leaves) % 2 else [])
    return leaves[0]


def tree_all(tree, *, is_leaf=None):
    """True if every leaf is true."""
    return all(_core.tree_leaves(tree, is_leaf))


def tree_transpose(outer_treedef, inner_treedef, pytree_to_transpose):
    """Transposes a tree of trees: the inner structure becomes the outer one."""
    leaves, treedef = _core.tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    inner_size, outer_size = inner_treedef.num_leaves, outer_treedef.num_leaves
    if treedef.num_leaves != inner_size * outer_size:
        expected = outer_treedef.compose(inner_treedef)
        raise TypeError(f"Mismatch\n{treedef}\n != \n{expected}")
    rows = [leaves[i * inner_size:(i + 1) * inner_size] for i in range(outer_size)]
    return inner_treedef.unflatten([outer_treedef.unflatten(list(column)) for column in zip(*rows)])


def tree_broadcast(prefix_tree, full_tree, is_leaf=None):
    """Broadcasts a prefix tree to the structure of a full one."""
    treedef = tree_structure(full_tree, is_leaf)
    return treedef.unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def broadcast_prefix(prefix_tree, full_tree, is_leaf=None):
    """The leaves of a prefix tree, one for each leaf of the full tree."""
    leaves, treedef = _core.tree_flatten(prefix_tree, is_leaf)
    parts = _match(treedef, prefix_tree, full_tree, is_leaf, "broadcast_prefix prefix_tree")
    result = []
    for leaf, part in zip(leaves, parts):
        result += [leaf] * len(_core.tree_leaves(part, is_leaf))
    return result


def broadcast_flattened_prefix_with_treedef(prefix_leaves, prefix_treedef, full_treedef):
    """broadcast_prefix for trees of which only the structures are known."""
    leaves, result = iter(prefix_leaves), []

    def visit(prefix, full):
        if prefix.node_data() is None:
            result.extend([next(leaves)] * full.num_leaves)
            return
        children, others = prefix.children(), full.children()
        if prefix.node_data() != full.node_data() or len(children) != len(others):
            raise ValueError(f"broadcast_flattened_prefix_with_treedef: {prefix} is not a prefix of {full}")
        for child, other in zip(children, others):
            visit(child, other)

    visit(prefix_treedef, full_treedef)
    return result


def all_leaves(iterable, is_leaf=None):
    """True if no element of an iterable is a container."""
    return all(len(leaves := _core.tree_leaves(x, is_leaf)) == 1 and leaves[0] is x for x in iterable)


def treedef_is_leaf(treedef):
    return treedef.num_nodes == 1


def treedef_children(treedef):
    return treedef.children()


def treedef_tuple(treedefs):
    return _core.tuple_tree(list(treedefs))


def is_tree_node(typ):
    """True if values of a type are containers."""
    return _core.is_node_type(typ)


def flatten_one_level(tree):
    """The children of a container and its auxiliary data."""
    level = _core.tree_level(tree)
    if level is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    return level[0], _level_data(tree, level)


def flatten_one_level_with_keys(tree):
    """Pairs of key and child of a container, and its auxiliary data."""
    level = _core.tree_level(tree)
    if level is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    return list(zip(level[1], level[0])), _level_data(tree, level)


def _level_data(tree, level):
    """The auxiliary data of a container; the keys of a dict as a tuple, which is hashable."""
    return tuple(level[2]) if type(tree) is dict else level[2]


def register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func=None):
    """Registers a class as a container, with functions to flatten and rebuild it."""
    _core.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_with_keys(nodetype, flatten_with_keys, unflatten_func, flatten_func=None):
    """register_pytree_node with keys for the children."""
    if flatten_func is None:
        def flatten_func(tree):
            pairs, data = flatten_with_keys(tree)
            return tuple(child for _, child in pairs), data
    register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls):
    """Registers a class with tree_flatten and tree_unflatten as a container."""
    register_pytree_node(cls, operator.methodcaller("tree_flatten"), cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls):
    """Registers a class with tree_flatten_with_keys and tree_unflatten as a container."""
    flatten = operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(cls, operator.methodcaller("tree_flatten_with_keys"), cls.tree_unflatten, flatten)
    return cls


def register_dataclass(nodetype=None, data_fields=None, meta_fields=None, drop_fields=()):
    """Registers a dataclass as a container; meta fields are static."""
    if nodetype is None:
        return functools.partial(register_dataclass, data_fields=data_fields, meta_fields=meta_fields, drop_fields=drop_fields)
    if data_fields is None or meta_fields is None:
        if (data_fields is None) != (meta_fields is None):
            raise TypeError("register_dataclass: data_fields and meta_fields must both be specified when either is specified. "
                            f"Got {data_fields=} {meta_fields=}.")
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(f"register_dataclass: data_fields and meta_fields are required when nodetype is not a dataclass. Got {nodetype=}.")
        fields = [f for f in dataclasses.fields(nodetype) if f.init and f.name not in drop_fields]
        data_fields = [f.name for f in fields if not f.metadata.get("static", False)]
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
    elif dataclasses.is_dataclass(nodetype):
        _check_fields({f.name for f in dataclasses.fields(nodetype) if f.init}, data_fields, meta_fields, drop_fields)
    if overlap := {*data_fields} & {*meta_fields}:
        raise ValueError(f"data_fields and meta_fields must not overlap. Overlapping fields: {overlap}.")
    _core.register_dataclass_node(nodetype, list(data_fields), list(meta_fields))
    return nodetype


def _check_fields(known, data_fields, meta_fields, drop_fields):
    named = {*data_fields, *meta_fields}
    rule = "data_fields and meta_fields must include all dataclass fields with ``init=True`` and only them."
    if missing := known - named - {*drop_fields}:
        raise ValueError(f"{rule} Missing fields: {missing}. Add them to drop_fields to suppress this error.")
    if unexpected := named - known:
        raise ValueError(f"{rule} Unexpected fields: {unexpected}.")


def register_static(cls):
    """Registers a class whose instances are static structure, without leaves."""
    register_pytree_node(cls, lambda value: ((), value), lambda value, _: value)
    return cls


def register_custom_pytree(nodetype, flatten_func=None, unflatten_func=None, flatten_with_keys_func=None):
    """register_pytree_node; without functions, chosen by class: tree_flatten and tree_unflatten if it has them, the fields of a
    dataclass, otherwise each object's attributes: their values are the children; strings, functions and classes are structure."""
    if flatten_func is None and unflatten_func is None:
        if not isinstance(nodetype, type):
            raise TypeError(f"register_custom_pytree: expected a class (argument 'nodetype'), got {type(nodetype).__name__}")
        if hasattr(nodetype, "tree_flatten") and hasattr(nodetype, "tree_unflatten"):
            return register_pytree_node_class(nodetype)
        if "__dataclass_fields__" in nodetype.__dict__:
            return register_dataclass(nodetype)
        return _register_by_attributes(nodetype)
    if flatten_func is None or unflatten_func is None:
        raise TypeError("register_custom_pytree: flatten_func and unflatten_func come together; without both, the class says how")
    register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)
    return nodetype


def _register_by_attributes(cls):
    if getattr(cls, "__slots__", None):
        raise TypeError(f"register_custom_pytree: {cls.__name__} keeps its attributes in slots; give it tree_flatten and tree_unflatten")

    def split(value):
        static = {name: one for name, one in value.__dict__.items()
                  if isinstance(one, (str, bytes, type)) or callable(one) and _core.tree_level(one) is None}
        names = tuple(sorted(value.__dict__.keys() - static.keys()))
        return names, (names, tuple(sorted(static.items())))

    def flatten_with_keys(value):
        names, data = split(value)
        return [(GetAttrKey(name), value.__dict__[name]) for name in names], data

    def flatten(value):
        names, data = split(value)
        return [value.__dict__[name] for name in names], data

    def unflatten(data, children):
        made = object.__new__(cls)
        made.__dict__.update(zip(data[0], children))
        made.__dict__.update(data[1])
        return made

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys)
    return cls


class _PartialFunction:
    """Wraps a functools.partial inside a Partial, which would otherwise flatten it and make its arguments leaves."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **keywords):
        return self.function(*args, **keywords)

    def __hash__(self):
        return hash(self.function)

    def __eq__(self, other):
        return self.function == (other.function if isinstance(other, _PartialFunction) else other)

    def __repr__(self):
        return repr(self.function)


class Partial(functools.partial):
    """functools.partial as a container: the function is structure, its arguments are leaves."""

    def __new__(cls, func, *args, **keywords):
        if isinstance(func, functools.partial):
            func = _PartialFunction(func)
        return super().__new__(cls, func, *args, **keywords)


register_pytree_node(
    Partial,
    lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda func, children: Partial(func, *children[0], **children[1]))

class _Registry:
    """jax's registry of node types, with the methods that libraries use."""

    def flatten(self, tree, is_leaf=None):
        return _core.tree_flatten(tree, is_leaf)

    def flatten_one_level(self, tree):
        level = _core.tree_level(tree)
        if level is None:
            return None
        children, data = level[0], level[2]
        return (tuple(children), tuple(data)) if isinstance(tree, dict) else (children, data)


default_registry = _Registry()
explain_missing(__name__)
