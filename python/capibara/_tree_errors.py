"""Errors that describe where a tree is not a prefix of another one."""
import difflib
import textwrap

from capibara import _core


def keystr(path):
    return "".join(map(str, path))


def prefix_errors(prefix_tree, full_tree, is_leaf=None):
    """One function per mismatch of the trees: takes the name of the argument and returns the error."""
    return list(_differences((), prefix_tree, full_tree, is_leaf))


def _differences(path, prefix, full, is_leaf):
    level = None if is_leaf is not None and is_leaf(prefix) else _core.tree_level(prefix)
    if level is None:
        return
    if type(prefix) is not type(full):
        yield _error("different types", path, lambda name: (
            f"At that key path, the prefix pytree {name} has a subtree of type\n    {type(prefix)}\n"
            f"but at the same key path the full pytree has a subtree of different type\n    {type(full)}."))
        return
    children, keys, data = level
    other_children, other_keys, other_data = _core.tree_level(full)
    if len(children) != len(other_children):
        yield _length_error(path, prefix, keys, other_keys)
        return
    if data != other_data:
        yield _data_error(path, prefix, _shown(prefix, data), _shown(prefix, other_data))
        return
    for key, child, other in zip(keys, children, other_children):
        yield from _differences((*path, key), child, other, is_leaf)


def _error(what, path, details):
    return lambda name: ValueError(f"pytree structure error: {what} at key path\n    {name}{keystr(path)}\n{details(name)}")


def _length_error(path, prefix, keys, other_keys):
    kind = type(prefix).__name__
    if isinstance(prefix, (list, tuple)):
        return _error(f"different lengths of {kind}", path, lambda name: (
            f"At that key path, the prefix pytree {name} has a subtree of type {kind} of length {len(keys)}, but the full pytree "
            f"has a subtree of the same type but of length {len(other_keys)}."))
    names, others = [str(_plain(k)) for k in keys], [str(_plain(k)) for k in other_keys]
    different = sorted(set(names) ^ set(others))
    return _error("different numbers of pytree children", path, lambda name: (
        f"At that key path, the prefix pytree {name} has a subtree of type\n    {type(prefix)}\n"
        f"with {len(names)} child keys\n    {' '.join(names)}\n"
        f"but at the same key path the full pytree has a subtree of the same type but with {len(others)} child keys\n    {' '.join(others)}"
        + (f"\nso the symmetric difference on key sets is\n    {' '.join(different)}" if different else "")))


def _data_error(path, prefix, data, other_data):
    lines = "\n".join(line for line in difflib.ndiff([data], [other_data]))
    return _error("different pytree metadata", path, lambda name: (
        f"At that key path, the prefix pytree {name} has a subtree of type\n    {type(prefix)}\nwith metadata\n    {data}\n"
        f"but at the same key path the full pytree has a subtree of the same type but with metadata\n    {other_data}\n"
        f"so the diff in the metadata at these pytree nodes is\n{textwrap.indent(lines, '    ')}"))


def _shown(tree, data):
    """The metadata of a node as text; the keys of a dict are shown as a tuple."""
    return str(tuple(data) if type(tree) is dict else data)


def _plain(key):
    """The value of a key: the key of a dict, an index, the name of an attribute."""
    for name in ("key", "idx", "name"):
        if hasattr(key, name):
            return getattr(key, name)
    return key
