"""Shardings of the arguments and results of exported programs: as texts state them, in files, and on the devices of a call."""
import math
import re

from capibara import _core
from capibara._types import ShapeDtypeStruct
from capibara.jax._axes import AbstractDevice, AbstractMesh, AxisType
from capibara.jax._devices import devices
from capibara.jax._explicit import reshard
from capibara.jax._mesh import Mesh, PartitionSpec, current_mesh, grid_of
from capibara.jax._placing import device_put, with_sharding_constraint
from capibara.jax._sharding import NamedSharding
from capibara.jax.core import jaxprs_in_params

_ANNOTATION = re.compile(r"sdy\.sharding = #sdy\.sharding<@([\w$.]+), \[([^\]]*)\](?:, replicated=\{[^}]*\})?(?:, unreduced=\{([^}]*)\})?>")


def _of_text(text, kept, in_avals, out_avals):
    """What the main function of a text states for all arguments and for the results: one record each, None if the compiler decides."""
    head, _, rest = text.partition("func.func public @main(")
    meshes = {name: [(axis, int(size)) for axis, size in re.findall(r'"([^"]*)"=(\d+)', axes)]
              for name, axes in re.findall(r"sdy\.mesh @([\w$.]+) = <\[([^\]]*)\]", head)}
    ins, outs = [None] * len(in_avals), [None] * len(out_avals)
    if meshes:
        inputs, _, outputs = rest[:rest.index("{\n")].partition(") -> ")
        parts = re.split(r"(?=%arg\d+: )", inputs)[1:]
        for place, part in zip(kept, parts[len(parts) - len(kept):]):
            ins[place] = _stated(part, meshes, in_avals[place])
        for place, part in enumerate(re.split(r", (?=tensor<)", outputs)[-len(out_avals):] if out_avals else ()):
            outs[place] = _stated(part, meshes, out_avals[place])
    return tuple(ins), tuple(outs)


def _stated(part, meshes, aval):
    found = _ANNOTATION.search(part)
    mesh = found and meshes.get(found[1])
    if not mesh:
        return None
    types = getattr(getattr(aval, "sharding", None), "mesh", None)
    kinds = {} if types is None else {name: kind.value for name, kind in zip(types.axis_names, types.axis_types)}
    device = devices()[0]
    return {"axis_names": [name for name, _ in mesh], "axis_sizes": [size for _, size in mesh],
            "axis_types": [1 + kinds.get(name, AxisType.Auto.value) for name, _ in mesh], "device_kind": device.device_kind,
            "platform": device.platform, "cores": None, "dims": [re.findall(r'"([^"]*)"', dim) for dim in found[2].split("}")[:-1]],
            "reduced": [], "unreduced": re.findall(r'"([^"]*)"', found[3] or ""), "memory_kind": "device"}


def _of_types(leaves):
    """Records of the shardings of types on abstract meshes; None for other values."""
    return [_record(leaf.sharding, len(leaf.shape)) if isinstance(leaf, ShapeDtypeStruct) and isinstance(
        getattr(leaf.sharding, "mesh", None), AbstractMesh) and not leaf.sharding.mesh.empty else None for leaf in leaves]


def _record(sharding, rank):
    mesh, spec, device = sharding.mesh, sharding.spec, sharding.mesh.abstract_device or devices()[0]
    dims = [[entry] if isinstance(entry, str) else list(entry) if isinstance(entry, tuple) else [] for entry in spec]
    return {"axis_names": list(mesh.axis_names), "axis_sizes": list(mesh.axis_sizes),
            "axis_types": [1 + kind.value for kind in mesh.axis_types], "device_kind": device.device_kind, "platform": device.platform,
            "cores": None, "dims": dims + [[]] * (rank - len(dims)),
            "reduced": sorted(spec.reduced), "unreduced": sorted(spec.unreduced), "memory_kind": sharding.memory_kind or "device"}


def stated_in(text, records, kept, count):
    """A text with the shardings of its main function's arguments and results, which programs do not keep when they are read."""
    found = re.search(r"^module @\S+ (?:attributes \{.*\} )?\{\n(?s:.*?)func\.func public @main\((.*)\) -> (.*) \{\n", text)
    if found is None or not any(map(any, records)) or "sdy.sharding =" in found[0]:
        return text
    meshes = {axes: name for name, axes in re.findall(r"sdy\.mesh @([\w$.]+) = <\[([^\]]*)\]>", text)}
    known = len(meshes)

    def with_sharding(one, record):
        if record is None:
            return one
        axes = ", ".join(f'"{name}"={size}' for name, size in zip(record["axis_names"], record["axis_sizes"]))
        name = meshes.setdefault(axes, f"mesh_{len(meshes)}" if meshes else "mesh")
        dims = ", ".join("{" + ", ".join(f'"{axis}"' for axis in dim) + "}" for dim in record["dims"])
        sums = f", unreduced={{{', '.join(map(repr, record['unreduced']))}}}".replace("'", '"') if record["unreduced"] else ""
        sharding = f"sdy.sharding = #sdy.sharding<@{name}, [{dims}]{sums}>"
        return one.removesuffix("}") + f", {sharding}}}" if one.endswith("}") else f"{one} {{{sharding}}}"
    inputs = re.split(r", (?=%arg\d+: )", found[1])
    first = len(inputs) - len(kept)
    inputs[first:] = [with_sharding(one, records[0][place]) for one, place in zip(inputs[first:], kept)]
    outputs = re.split(r", (?=tensor<)", found[2][1:-1] if found[2].startswith("(") else found[2])
    outputs = [with_sharding(one, record) for one, record in zip(outputs, records[1])]
    head, body = text[:found.start(1)].split("\n", 1)
    if " attributes {" not in head:
        head = head.removesuffix("{") + f"attributes {{mhlo.num_partitions = {count} : i32, mhlo.num_replicas = 1 : i32}} {{"
    lines = "".join(f"  sdy.mesh @{name} = <[{axes}]>\n" for axes, name in list(meshes.items())[known:])
    return (f"{head}\n{lines}{body}{', '.join(inputs)}) -> ({', '.join(outputs)}) {{\n"
            f"{text[found.end():]}")


def named(record, mesh=None):
    """The sharding of a record, on a mesh with the same axes, by default an abstract one."""
    if record is None:
        return None
    kinds = tuple(AxisType(kind - 1) for kind in record["axis_types"])
    device = AbstractDevice(record["device_kind"], record["cores"], record["platform"]) if record["platform"] else None
    own = AbstractMesh(tuple(record["axis_sizes"]), tuple(record["axis_names"]), kinds, abstract_device=device)
    if mesh is not None and mesh.abstract_mesh != own:
        raise ValueError(f"NamedSharding new mesh {mesh} does not match the mesh used for export {own}.")
    spec = PartitionSpec(*(tuple(axes) or None for axes in record["dims"]), unreduced=frozenset(record["unreduced"]),
                         reduced=frozenset(record["reduced"]))
    return NamedSharding(own if mesh is None else mesh, spec, memory_kind=record["memory_kind"] or None)


def _on_devices(record, chosen):
    kinds = tuple(AxisType(kind - 1) for kind in record["axis_types"])
    return named(record, Mesh(grid_of(chosen, record["axis_sizes"]), record["axis_names"], kinds))


def on_devices(record, chosen):
    """The sharding of a record on these devices, by default the first ones, for programs that are traced again; None for None."""
    if record is None:
        return None
    count = math.prod(record["axis_sizes"])
    chosen = devices()[:count] if chosen is None else chosen
    return _on_devices(record, chosen) if len(chosen) == count else named(record)


def devices_of_call(leaves):
    """The devices on which a call runs: those of its committed arguments, otherwise of the mesh in use; None while a function is traced."""
    if any(isinstance(leaf, _core.Tracer) for leaf in leaves):
        return None
    found = [leaf.sharding._device_list for leaf in leaves if leaf._committed]
    if found:
        return list(max(found, key=len))
    mesh = current_mesh()
    return list(mesh.devices.flat) if mesh is not None and mesh.size else devices()[:1]


def place(leaves, records, chosen):
    """Arrays moved to the recorded shardings on the devices of a call."""
    def placed(leaf, record):
        if record is None:
            return leaf
        sharding = _on_devices(record, chosen)
        return leaf if leaf._committed and leaf.sharding.is_equivalent_to(sharding, leaf.ndim) else device_put(leaf, sharding)
    return [placed(leaf, record) for leaf, record in zip(leaves, records)]


def constrain(values, records):
    """Traced values with the recorded shardings, on whichever devices the program runs."""
    def constrained(value, record):
        if record is None:
            return value
        sharding = named(record)
        if AxisType.Explicit not in sharding.mesh.axis_types:
            return with_sharding_constraint(value, sharding)
        return value if value.aval.sharding == sharding else reshard(value, sharding)
    return [constrained(value, record) for value, record in zip(values, records)]


def shardings_of(text, kept, in_avals, out_avals, leaves):
    """Records of the shardings of arguments and results: of the text, and of types on abstract meshes, which it does not state."""
    ins, outs = _of_text(text, kept, in_avals, out_avals)
    known = _of_types(leaves) if len(leaves) == len(ins) else ins
    return tuple(own if stated is None and place in kept else stated for place, (stated, own) in enumerate(zip(ins, known))), outs


def devices_in(program, leaves, count):
    """The devices for which a function of several devices was traced; None if it names none."""
    if count == 1:
        return None
    named = [getattr(leaf, "sharding", None) for leaf in leaves if not isinstance(leaf, _core.Tracer)]
    named += [equation.params.get("sharding") for equation in all_equations(program.jaxpr)]
    for sharding in named:
        found = getattr(sharding, "_device_list", ())
        if len(found) == count:
            return tuple(found)
    return None


def all_equations(jaxpr):
    for equation in jaxpr.eqns:
        yield equation
        for part in jaxprs_in_params(equation.params):
            yield from all_equations(part)
