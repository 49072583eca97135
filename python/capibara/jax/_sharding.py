"""Placement of arrays on devices: shardings, the shards of an array, layouts."""
import collections
import functools
import weakref

from capibara import _core, _tracebacks
from capibara._errors import ConcretizationTypeError
from capibara._records import FrozenRecord
from capibara._shape_struct import PlacementRules, set_placement_rules
from capibara.jax._axes import AbstractMesh
from capibara.jax._devices import Device, _called, device_of, devices
from capibara.jax._hlo_sharding import hlo_of
from capibara.jax._layouts import AutoLayout, Layout
from capibara.jax._mesh import AxisType, Mesh, PartitionSpec, Unconstrained, current_mesh
from capibara.jax._sdy_sharding import sdy_of_named
from capibara.jax._spec_checks import DuplicateSpecError, IndivisibleError, check_once, check_rank, check_sums  # noqa: F401


class Sharding:
    """The placement of an array on devices."""

    @property
    def num_devices(self):
        return len(self.device_set)

    @property
    def addressable_devices(self):
        return {device for device in self.device_set if device.addressable}

    @property
    def is_fully_addressable(self):
        return all(device.addressable for device in self.device_set)

    @property
    def is_fully_replicated(self):
        return self._placement.replicated and not self._placement.unreduced

    @property
    def _device_assignment(self):
        return self._device_list

    @property
    def _addressable_device_assignment(self):
        return tuple(device for device in self._device_list if device.addressable)

    def shard_shape(self, global_shape):
        """The shape of each device's shard."""
        try:
            return self._placement.shard_shape(list(global_shape))
        except ValueError as error:
            raise (IndivisibleError(*error.args) if "implies that array axis" in str(error) else error) from None

    def _to_xla_hlo_sharding(self, num_dimensions):
        """XLA's form of the sharding, for arrays of this rank."""
        return hlo_of(self, num_dimensions)  # the same object for equal ones

    def _to_sdy_sharding(self, num_dimensions, modify_wrt_axis_types=False):
        """Shardy's form of it."""
        return sdy_of_named(self, num_dimensions)

    def devices_indices_map(self, global_shape):
        """{device: the slices of its shard}."""
        return dict(common_devices_indices_map(self, tuple(global_shape)))

    def addressable_devices_indices_map(self, global_shape):
        return {device: index for device, index in self.devices_indices_map(global_shape).items() if device.addressable}

    def check_compatible_aval(self, aval_shape):
        """Raises ValueError if this shape has too few dimensions."""
        check_rank(self, getattr(self, "spec", ()), aval_shape)

    def is_equivalent_to(self, other, ndim):
        """True if both shardings place an array of this rank identically."""
        if not isinstance(other, Sharding) or self._device_list != other._device_list or self.memory_kind != other.memory_kind:
            return False
        shape = [8 * 27 * 5 * 7 * max(1, self.num_devices)] * ndim
        return self.devices_indices_map(shape) == other.devices_indices_map(shape)


@functools.lru_cache(maxsize=4096)
def common_devices_indices_map(s, global_shape):
    """{device: the slices of its shard} for an array of this shape."""
    part = s.shard_shape(global_shape)
    return {device: _slices(s._placement.shard_offset(list(global_shape), i), part, global_shape)
            for i, device in enumerate(s._device_list)}


def _slices(offset, part, whole):
    return tuple(slice(None) if size == full else slice(begin, begin + size) for begin, size, full in zip(offset, part, whole))


class NamedSharding(Sharding):
    """A mesh, and which of its axes split which dimension."""

    of_types = None  # the class of shardings in types, on an abstract mesh

    def __new__(cls, mesh, spec=None, *, memory_kind=None):
        return object.__new__(cls.of_types if cls is NamedSharding and isinstance(mesh, AbstractMesh) else cls)

    def __init__(self, mesh, spec, *, memory_kind=None):
        if not isinstance(mesh, Mesh):
            raise TypeError(f"NamedSharding: expected a Mesh, got {type(mesh).__name__}")
        if isinstance(spec, (tuple, list)):
            spec = PartitionSpec(*spec)
        if spec is None:
            raise TypeError("Unexpected None passed as spec for NamedSharding. Did you mean P()?")
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"Unexpected type {type(spec)} for NamedSharding spec, expected a PartitionSpec")
        self.mesh, self.spec, self._memory_kind = mesh, spec, memory_kind
        check_once("NamedSharding spec", spec)
        self._unconstrained = []
        for dimension, entry in enumerate(spec):
            if isinstance(entry, Unconstrained):
                self._unconstrained.append(dimension)
            names = (entry,) if isinstance(entry, str) else entry if isinstance(entry, tuple) else ()
            for name in names:
                if name not in mesh.axis_names:
                    raise ValueError(f"Resource axis: {name} of {spec} is not found in mesh: {mesh.axis_names}.")
        if self._unconstrained and AxisType.Auto not in mesh.axis_types:
            raise ValueError(f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`. Got mesh axis_types: "
                             f"{mesh.axis_types}")
        check_sums(mesh, spec)
        self._device_list = () if mesh.empty else tuple(mesh.devices.flat)
        if memory_kind is not None and self._device_list:
            _own_kind(self._device_list[0], memory_kind)

    @functools.cached_property
    def _placement(self):
        """The core's form of the sharding."""
        mesh, spec, first = self.mesh, self.spec, self._device_list[0]
        axes = [[entry] if isinstance(entry, str) else list(entry) if isinstance(entry, tuple) else [] for entry in spec]
        return _core.NamedSharding(getattr(first, "_placement_platform", first.platform), [device.id for device in self._device_list],
                                   list(mesh.axis_names), list(mesh.axis_sizes), axes, _own_kind(first, self._memory_kind),
                                   axis_types=[kind.value for kind in mesh.axis_types], unreduced=sorted(spec.unreduced),
                                   reduced=sorted(spec.reduced))

    @property
    def memory_kind(self):
        default = getattr(self._device_list[0], "default_memory", None) if self._device_list else None
        return self._memory_kind or (default().kind if default else None)

    @property
    def device_set(self):
        return set(self._device_list)

    def with_memory_kind(self, kind):
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def __eq__(self, other):
        return isinstance(other, NamedSharding) and (self.mesh, self.spec, self.memory_kind) == (other.mesh, other.spec, other.memory_kind)

    def __hash__(self):
        return hash((self.mesh, self.spec))

    def __reduce__(self):
        return functools.partial(NamedSharding, memory_kind=self._memory_kind), (self.mesh, self.spec)

    def __repr__(self):
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}, memory_kind={self.memory_kind})"


class SingleDeviceSharding(Sharding):
    """The sharding of an array on one device."""

    def __init__(self, device, *, memory_kind=None):
        self._device, self._memory_kind = device, memory_kind
        self._device_list = (device,)
        self._unconstrained = []
        self._placement = _core.NamedSharding(device._placement_platform, [device.id], [], [], [], _own_kind(device, memory_kind))

    @property
    def memory_kind(self):
        return self._memory_kind or self._device.default_memory().kind

    @property
    def device_set(self):
        return {self._device}

    def with_memory_kind(self, kind):
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def __eq__(self, other):
        return isinstance(other, SingleDeviceSharding) and (self._device, self.memory_kind) == (other._device, other.memory_kind)

    def __hash__(self):
        return hash((self._device, self.memory_kind))

    def __reduce__(self):
        return functools.partial(SingleDeviceSharding, memory_kind=self._memory_kind), (self._device,)

    def __repr__(self):
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"


def _own_kind(device, kind):
    """The memory kind, or an empty string for the device's default memory."""
    if kind is None or kind == device.default_memory().kind:
        return ""
    known = [memory.kind for memory in device.addressable_memories()]
    if kind not in known:
        raise ValueError(f"Could not find memory addressable by device {device.device_kind}. Device {device.device_kind} can address the "
                         f"following memory kinds: {', '.join(known)}. Got memory kind: {kind}")
    return kind


class Shard:
    """The shard of an array on one device."""

    def __init__(self, device, index, replica_id, data):
        self.device, self.index, self.replica_id, self.data = device, index, replica_id, data

    def __repr__(self):
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"


def sharding_of(array):
    """The sharding of an array."""
    placement = None if isinstance(array, _core.Tracer) else _core.array_placement(array)
    if placement is None:
        return SingleDeviceSharding(Device("cpu", 0) if isinstance(array, _core.Tracer) else device_of(array))
    return sharding_from(placement)


_known_shardings = weakref.WeakValueDictionary()


def sharding_from(placement):
    """Converts a placement of the core to a sharding: the same object for equal ones."""
    names, sizes = placement.axes
    key = (placement.platform, tuple(placement.devices), placement.memory_kind, tuple(names), tuple(sizes),
           tuple(map(tuple, placement.spec)), tuple(placement.axis_types), tuple(placement.unreduced), tuple(placement.reduced))
    found = _known_shardings.get(key)
    return _known_shardings.setdefault(key, _sharding_from(placement)) if found is None else found


def _sharding_from(placement):
    kind = placement.memory_kind or None
    if not placement.axes[0]:
        return SingleDeviceSharding(_devices_from(placement)[0], memory_kind=kind)
    spec = PartitionSpec(*(axes[0] if len(axes) == 1 else tuple(axes) if axes else None for axes in placement.spec))
    mesh = _mesh_from(placement)
    spec = spec.update(unreduced=frozenset(placement.unreduced), reduced=frozenset(placement.reduced))
    return NamedSharding(mesh, spec, memory_kind=kind)


def _devices_from(placement):
    known = {device.id: device for device in devices(_called(placement.platform))}
    return [known[number] for number in placement.devices]


def _mesh_from(placement):
    import numpy as np
    names, sizes = placement.axes
    grid = np.empty(len(placement.devices), dtype=object)
    grid[:] = _devices_from(placement)
    return Mesh(grid.reshape(sizes), names, tuple(AxisType(value) for value in placement.axis_types))


def mesh_parameter(placement, view):
    """The mesh of a shard_map equation; the core's view if its devices are not present."""
    try:
        return _mesh_from(placement)
    except (KeyError, RuntimeError, ValueError):
        return view


class _Specs(tuple):
    """The specs of an equation, with the core's view of them."""

    _opaque_view = None


def specs_parameter(rows, view):
    """in_specs and out_specs of a shard_map equation."""
    def entry(axes):
        return axes[0] if len(axes) == 1 else tuple(axes) or None
    specs = _Specs(PartitionSpec(*map(entry, dims), unreduced=frozenset(unreduced), reduced=frozenset(reduced))
                   for dims, unreduced, reduced in rows)
    specs._opaque_view = view
    return specs


def placement_parameter(placement, view):
    """The sharding that an equation requests; the core's view if devices of that platform are not present."""
    try:
        sharding = _sharding_from(placement)  # a new object, to hold the core's view
    except (KeyError, RuntimeError, ValueError):
        return view
    sharding._opaque_view = view
    return sharding


def shards_of(array):
    """The shards of an array on this process's devices."""
    if isinstance(array, _core.Tracer):
        raise ConcretizationTypeError(f"Abstract tracer value encountered where concrete value is expected: {array}")
    sharding = sharding_of(array)
    if sharding.num_devices == 1:
        return [Shard(next(iter(sharding.device_set)), (slice(None),) * array.ndim, 0, array)]
    seen = collections.Counter()
    parts = iter(_core.array_shards(array))
    first = _first_summands(sharding)
    shards = []
    for device, index in sharding.devices_indices_map(array.shape).items():
        key = repr(index)
        if device.addressable:
            part = next(parts)
            shards.append(Shard(device, index, seen[key], part if first is None or device in first else _nothing_like(part)))
        seen[key] += 1
    return shards


def _first_summands(sharding):
    """The devices that hold the values of an unreduced array, while the others hold zeros; None if nothing is unreduced."""
    spec = getattr(sharding, "spec", None)
    if spec is None or not spec.unreduced:
        return None
    mesh = sharding.mesh
    return set(mesh.devices[tuple(0 if name in spec.unreduced else slice(None) for name in mesh.axis_names)].flat
               if len(spec.unreduced) < len(mesh.axis_names) else [mesh.devices.flat[0]])


def _nothing_like(part):
    """Zeros with the type and placement of a shard."""
    import numpy as np
    placement = _core.array_placement(part)
    zeros = _core.put_array(np.zeros(part.shape, part.dtype))
    return zeros if placement is None else _core.device_put(zeros, placement)


class Format(FrozenRecord):
    """A layout and a sharding; None where unspecified. A leaf of pytrees."""

    __match_args__ = ("layout", "sharding")

    def __init__(self, layout=None, sharding=None):
        super().__init__(layout, sharding)
        if isinstance(self.layout, Layout) and self.sharding is None:
            raise ValueError(f"Sharding has to be concrete when layout is of type {type(self.layout)}. Please pass a "
                             "`jax.sharding.NamedSharding` or `jax.sharding.SingleDeviceSharding` to the sharding argument. Got sharding "
                             f"{self.sharding}")
        if not isinstance(self.layout, (Layout, AutoLayout, type(None))):
            raise TypeError("Invalid value received for the layout argument. Expected values are `None`, `Layout.AUTO` or an instance of "
                            f"`Layout`. Got {self.layout} of type {type(self.layout)}")
        if not isinstance(self.sharding, (Sharding, type(None))):
            raise TypeError("Invalid value received for the sharding argument. Expected values are `None` or an instance of "
                            f"`jax.Sharding`. Got {self.sharding} of type {type(self.sharding)}")


def _checked_struct(given, shape):
    """Checks a sharding passed for a type of this shape: (sharding or specification, layout)."""
    if not isinstance(given, (Sharding, Format, PartitionSpec)):
        raise ValueError("sharding should be an instance of `jax.sharding.Sharding`, `jax.sharding.PartitionSpec` or "
                         f"`jax.experimental.layout.Format`. Got {given} of type {type(given)}.")
    sharding, layout = (given.sharding, given.layout) if isinstance(given, Format) else (given, None)
    if layout is Layout.AUTO:
        raise TypeError(f"`Layout.AUTO` cannot be used in place of a device-local layout in a `ShapeDtypeStruct`. Got {given}")
    if isinstance(sharding, PartitionSpec):
        check_rank(sharding, sharding, shape)
    elif sharding is not None:
        sharding.check_compatible_aval(shape)
    return sharding, layout


def _struct_sharding(sharding):
    """The sharding of a type: a specification refers to the mesh of set_mesh."""
    if not isinstance(sharding, PartitionSpec):
        return sharding
    around = current_mesh()
    if around is None:
        raise TypeError("When specifying PartitionSpec to `ShapeDtypeStruct`, the context mesh cannot be empty. Please use `jax.set_mesh` "
                        "to set the mesh context.")
    return NamedSharding(around, sharding)


set_placement_rules(PlacementRules(_checked_struct, _struct_sharding, Format, Sharding))


def format_of(array):
    """The layout and sharding of an array: all arrays are row-major."""
    return Format(Layout(tuple(range(array.ndim))), array.sharding)


_tracebacks.guard(__name__)
