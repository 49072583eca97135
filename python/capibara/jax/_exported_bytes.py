"""Serializes exported programs in jax's format: a flatbuffer around a StableHLO artifact."""
import collections
import json

from capibara import _core
from capibara._symbolic_shapes import SymbolicScope, symbolic_shape
from capibara._types import ShapeDtypeStruct
from capibara.jax._exported_shardings import named
from capibara.jax._exported_values import damaged_texts, type_name

_EXPLICIT = 2  # the type of an axis in a file
_OLD_MARK = b"capibara exported program 1\n"
_LEAF, _NONE, _TUPLE, _LIST, _DICT, _CUSTOM = range(6)
_MEMORIES = {"MemorySpace.Device": 1, "MemorySpace.Host": 2, "MemorySpace.Any": 3}
_nodes, _names = {}, {}  # keyed by class; by serialized name


def _register(nodetype, serialized_name, *functions):
    if nodetype in _nodes:
        raise ValueError(f"Duplicate serialization registration for type `{nodetype}`. Previous registration was with "
                         f"serialized_name `{_nodes[nodetype][0]}`.")
    if serialized_name in _names:
        raise ValueError(f"Duplicate serialization registration for serialized_name `{serialized_name}`. Previous registration was for "
                         f"type `{_names[serialized_name]}`.")
    _nodes[nodetype] = (serialized_name, *functions)
    _names[serialized_name] = nodetype
    return nodetype


def register_pytree_node_serialization(nodetype, *, serialized_name, serialize_auxdata, deserialize_auxdata, from_children=None):
    """Registers the serialization of a registered pytree class in exported programs."""
    if nodetype in _nodes or serialized_name in _names:
        return _register(nodetype, serialized_name)

    if from_children is None and not _is_registered(nodetype):
        raise ValueError(f"If `from_children` is not present, you must call `jax.tree_util.register_pytree_node` for `{nodetype}` first.")

    def rebuild(data, children):
        if from_children is None:
            return _node(nodetype, data, children)
        return _core.tree_flatten(from_children(data, [child.unflatten(range(child.num_leaves)) for child in children]))[1]
    return _register(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, rebuild)


def _node(kind, data, children):
    """The structure of a node of this class."""
    return _core.PyTreeDef.from_node_data_and_children(kind, (kind, data), children)


def _is_registered(nodetype):
    mark = object()
    return _node(nodetype, mark, []).node_data()[1] is mark


def register_namedtuple_serialization(nodetype, *, serialized_name):
    """Registers the serialization of a named tuple class in exported programs."""
    if not (isinstance(nodetype, type) and issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")):
        raise ValueError(f"Use `register_pytree_node_serialization` for types other than `collections.namedtuple`, got {nodetype}")
    def rebuild(names, children):
        if sorted(names) != sorted(nodetype._fields):
            raise ValueError(f"Cannot deserialize `{serialized_name}`: it was written with the fields {names}, {nodetype} has "
                             f"{nodetype._fields}")
        named = dict(zip(names, children))
        return _node(nodetype, None, [named[field] for field in nodetype._fields])
    return _register(nodetype, serialized_name, lambda _: json.dumps(nodetype._fields).encode(), lambda data: json.loads(data.decode()),
                     rebuild)


def _write_keys(keys):
    if not all(isinstance(key, str) for key in keys):
        raise NotImplementedError("Serialization of collections.OrderedDict is supported only when the keys are strings. Found keys: "
                                  f"{tuple(keys)}.")
    return json.dumps(list(keys)).encode()


_register(collections.OrderedDict, "collections.OrderedDict", _write_keys, lambda data: json.loads(data.decode()),
          lambda keys, children: _node(collections.OrderedDict, tuple(keys), children))


def _write_tree(structure):
    """(kind, children, keys of a dict, name and data of a registered class)"""
    node = structure.node_data()

    def made(kind, names=(), custom="", data=b""):
        return kind, [_write_tree(child) for child in structure.children()], list(names), custom, data
    if node is None:
        return made(_LEAF)
    kind, data = node
    if kind is type(None):
        return made(_NONE)
    if kind in (tuple, list):
        return made(_TUPLE if kind is tuple else _LIST)
    if kind is dict:
        if not all(isinstance(key, str) for key in data):
            wrong = next(key for key in data if not isinstance(key, str))
            raise TypeError("Serialization is supported only for dictionaries with string keys. Found key "
                            f"{wrong!r} of type {type(wrong)}.")
        return made(_DICT, data)
    if kind not in _nodes:
        raise ValueError(f"Cannot serialize PyTreeDef containing an unregistered type `{kind}`. Use "
                         "`export.register_pytree_node_serialization` or `export.register_namedtuple_serialization`.")
    name, write_data, *_ = _nodes[kind]
    return made(_CUSTOM, custom=name, data=bytes(write_data(data)))


def _read_tree(facts):
    kind, children, names, custom, data = facts
    if kind == _LEAF:
        return _core.tree_flatten(0)[1]
    children = [_read_tree(child) for child in children]
    if kind != _CUSTOM:
        return _node({_NONE: type(None), _TUPLE: tuple, _LIST: list, _DICT: dict}[kind], names if kind == _DICT else None, children)
    if custom not in _names:
        raise ValueError(f"Cannot deserialize a PyTreeDef with the unregistered type `{custom}`: register it by "
                         "`export.register_pytree_node_serialization` or `export.register_namedtuple_serialization`.")
    _, _, read_data, rebuild = _nodes[_names[custom]]
    return rebuild(read_data(data), children)


def _write_types(avals):
    return [(list(aval.shape), type_name(aval.dtype), _MEMORIES.get(str(getattr(aval, "memory_space", "")), 1)) for aval in avals]


def _read_types(types, scope, shardings):
    def read(shape, dtype, sharding):
        if any(isinstance(size, str) for size in shape):
            return ShapeDtypeStruct(symbolic_shape(f"({', '.join(shape)},)", scope=scope), _core.ShapedArray((), dtype).dtype)
        explicit = sharding is not None and _EXPLICIT in sharding["axis_types"]
        return _core.ShapedArray(tuple(shape), dtype, sharding=named(sharding) if explicit else None)
    return tuple(read(shape, dtype, sharding) for (shape, dtype, _), sharding in zip(types, shardings))


def _facts(exported, vjp_order):
    ins, outs = exported._records()
    return {"name": exported.fun_name, "in_tree": _write_tree(exported.in_tree), "out_tree": _write_tree(exported.out_tree),
            "in": _write_types(exported.in_avals), "out": _write_types(exported.out_avals), "devices": exported.nr_devices,
            "in_shardings": list(ins), "out_shardings": list(outs), "platforms": list(exported.platforms),
            "ordered_effects": [str(effect) for effect in exported.ordered_effects],
            "unordered_effects": [str(effect) for effect in exported.unordered_effects],
            "disabled": [str(check) for check in exported.disabled_safety_checks], "module": exported.mlir_module_serialized,
            "convention": exported.calling_convention_version, "kept": list(exported.module_kept_var_idx),
            "global_constants": exported.uses_global_constants,
            "vjp": _facts(exported.vjp(), vjp_order - 1) if vjp_order else None}


def write(exported, vjp_order):
    """Serializes a program to bytes that `read` and jax can deserialize."""
    return bytearray(_core.write_exported(_facts(exported, vjp_order)))


def read(blob, make):
    """Deserializes an exported program; `make` constructs it from its parts."""
    blob = bytes(blob)
    if blob.startswith(_OLD_MARK):
        raise ValueError("export.deserialize: these bytes are of an older version of this library, which had a format of its own; export "
                         "the function again")
    with damaged_texts():
        facts = _core.read_exported(blob)
    return _made(facts, make)


def _made(facts, make):
    in_tree, out_tree = _read_tree(facts["in_tree"]), _read_tree(facts["out_tree"])
    derivative, scope = facts["vjp"], SymbolicScope()
    ins, outs = facts["in_shardings"], facts["out_shardings"]
    return make(facts["name"], in_tree, _read_types(facts["in"], scope, ins), out_tree, _read_types(facts["out"], scope, outs), None,
                tuple(facts["platforms"]), tuple(facts["disabled"]), tuple(facts["kept"]), artifact=facts["module"],
                nr_devices=facts["devices"], convention=facts["convention"], shardings=(ins, outs),
                effects=(tuple(facts["ordered_effects"]), tuple(facts["unordered_effects"])),
                get_vjp=(lambda _: _made(derivative, make)) if derivative else None)
