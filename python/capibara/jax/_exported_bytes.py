"""Exported programs as bytes: a line of JSON with the types and trees of arguments and results, and the StableHLO text."""
import base64
import json

from capibara import _core
from capibara.jax._exported_values import type_name

_MARK = b"capibara exported program 1\n"
_nodes, _names = {}, {}  # by class; by the name in the bytes


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
    """How the nodes of a class that is a registered pytree are kept in exported programs."""
    if nodetype in _nodes or serialized_name in _names:
        return _register(nodetype, serialized_name)

    def rebuild(data, children):
        if from_children is not None:
            return from_children(data, children)
        leaf = _core.tree_flatten(0)[1]
        node = type(leaf).from_node_data_and_children(nodetype, (nodetype, data), [leaf] * len(children))
        return node.unflatten(children)
    return _register(nodetype, serialized_name, _flatten_one_level, serialize_auxdata, deserialize_auxdata, rebuild)


def register_namedtuple_serialization(nodetype, *, serialized_name):
    """How a class of named tuples is kept in exported programs."""
    if not (isinstance(nodetype, type) and issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")):
        raise ValueError(f"Use `register_pytree_node_serialization` for types other than `collections.namedtuple`, got {nodetype}")
    return _register(nodetype, serialized_name, lambda node: (tuple(node), None), lambda _: b"", lambda _: None,
                     lambda _, children: nodetype(*children))


def _flatten_one_level(node):
    children, structure = _core.tree_flatten(node, lambda other: other is not node)
    return children, structure.node_data()[1]


def _tree_to_json(node):
    if node is None:
        return None
    if isinstance(node, int):  # a leaf
        return 0
    kind = type(node)
    if kind in (tuple, list):
        return [kind.__name__, [_tree_to_json(child) for child in node]]
    if kind is dict:
        if not all(isinstance(key, str) for key in node):
            raise ValueError(f"only string keys of dictionaries can be serialized, got {list(node)}")
        return ["dict", {key: _tree_to_json(child) for key, child in node.items()}]
    if kind not in _nodes:
        raise ValueError(f"Cannot serialize PyTreeDef containing an unregistered type `{kind}`. Use "
                         "`export.register_pytree_node_serialization` or `export.register_namedtuple_serialization`.")
    name, flatten, write_data, *_ = _nodes[kind]
    children, data = flatten(node)
    return ["node", name, base64.b64encode(bytes(write_data(data))).decode(), [_tree_to_json(child) for child in children]]


def _tree_from_json(value):
    if value is None or value == 0:
        return value
    kind, *rest = value
    if kind == "dict":
        return {key: _tree_from_json(child) for key, child in rest[0].items()}
    if kind != "node":
        return {"tuple": tuple, "list": list}[kind](_tree_from_json(child) for child in rest[0])
    name, data, children = rest
    if name not in _names:
        raise ValueError(f"Cannot deserialize a PyTreeDef with the unregistered type `{name}`: register it by "
                         "`export.register_pytree_node_serialization` or `export.register_namedtuple_serialization`.")
    _, _, _, read_data, rebuild = _nodes[_names[name]]
    return rebuild(read_data(base64.b64decode(data)), [_tree_from_json(child) for child in children])


def _types_to_json(avals):
    return [[list(aval.shape), type_name(aval.dtype), bool(getattr(aval, "weak_type", False))] for aval in avals]


def _types_from_json(types):
    return tuple(_core.ShapedArray(tuple(shape), dtype, weak) for shape, dtype, weak in types)


def _tree(structure):
    return _tree_to_json(structure.unflatten(range(structure.num_leaves)))


def write(exported, vjp_order):
    """Bytes that `read` makes the same program of."""
    if exported.uses_global_constants:
        raise NotImplementedError(f"Exported.serialize: {exported.fun_name} was exported for symbolic sizes, which are traced when it is "
                                  "called; export it for known sizes to keep it as bytes")
    text = exported.mlir_module().encode()
    derivative = bytes(write(exported.vjp(), vjp_order - 1)) if vjp_order else b""
    facts = {"name": exported.fun_name, "in_tree": _tree(exported.in_tree), "in": _types_to_json(exported.in_avals),
             "out_tree": _tree(exported.out_tree), "out": _types_to_json(exported.out_avals), "platforms": exported.platforms,
             "disabled": list(exported.disabled_safety_checks), "kept": exported.module_kept_var_idx, "text": len(text),
             "derivative": len(derivative)}
    return bytearray(_MARK + json.dumps(facts).encode() + b"\n" + text + derivative)


def read(blob, make):
    """The exported program of these bytes, by the function that makes one of its parts."""
    blob = bytes(blob)
    if not blob.startswith(_MARK):
        raise ValueError("export.deserialize: these bytes are not an exported program of this library")
    head, _, rest = blob[len(_MARK):].partition(b"\n")
    facts = json.loads(head)
    if len(rest) != facts["text"] + facts["derivative"]:
        raise ValueError(f"export.deserialize: {len(rest)} bytes instead of {facts['text'] + facts['derivative']} after the header")
    derivative = rest[facts["text"]:]
    in_tree, out_tree = (_core.tree_flatten(_tree_from_json(facts[key]))[1] for key in ("in_tree", "out_tree"))
    return make(facts["name"], in_tree, _types_from_json(facts["in"]), out_tree, _types_from_json(facts["out"]),
                rest[:facts["text"]].decode(), tuple(facts["platforms"]), tuple(facts["disabled"]),
                tuple(facts.get("kept", range(len(facts["in"])))),
                get_vjp=(lambda _: read(derivative, make)) if derivative else None)
