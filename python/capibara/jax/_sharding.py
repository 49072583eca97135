"""How arrays lie on devices: meshes, specifications of dimensions, shardings, and moving arrays between them."""
import collections
import enum
import functools
import threading
from typing import NamedTuple

from capibara import _core, _tracebacks
from capibara._errors import ConcretizationTypeError
from capibara._tree_errors import prefix_errors
from capibara.jax import tree_util
from capibara.jax._devices import Device, _called, device_of, devices
from capibara.jax._devices import devices as _all_devices  # where `devices` is an argument


class AxisType(enum.Enum):
    """Who decides along an axis of a mesh: the compiler."""
    Auto = enum.auto()

    def __repr__(self):
        return self.name


class _Unconstrained:
    def __repr__(self):
        return "UNCONSTRAINED"


class PartitionSpec:
    """For each dimension of an array the mesh axes that split it: P('x', None, ('y', 'z'))."""

    UNCONSTRAINED = _Unconstrained()

    def __init__(self, *partitions):
        self._entries = tuple(_entry(one) for one in partitions)

    def __iter__(self):
        return iter(self._entries)

    def __len__(self):
        return len(self._entries)

    def __getitem__(self, index):
        return self._entries[index]

    def __add__(self, other):
        return PartitionSpec(*self._entries, *tuple(other))

    def __radd__(self, other):
        return PartitionSpec(*tuple(other), *self._entries)

    def __eq__(self, other):
        return isinstance(other, PartitionSpec) and self._entries == other._entries

    def __hash__(self):
        return hash(self._entries)

    def __repr__(self):
        return f"P({', '.join(map(repr, self._entries))}{',' if len(self._entries) == 1 else ''})"

    def index(self, value):
        return self._entries.index(value)

    def count(self, value):
        return self._entries.count(value)


P = PartitionSpec


def _entry(entry):
    if isinstance(entry, (tuple, list)):
        return entry[0] if len(entry) == 1 else tuple(entry) if entry else None
    if entry is None or isinstance(entry, (str, _Unconstrained)):
        return entry
    raise ValueError(f"PartitionSpec: an entry must be None, a name, a tuple of names or UNCONSTRAINED, got {entry!r}")


_open_meshes = threading.local()


class NamedAxes:
    """What meshes with and without devices share: axes with names and sizes."""

    @property
    def shape(self):
        return collections.OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self):
        return tuple(zip(self.axis_names, self.axis_sizes))


class Mesh(NamedAxes):
    """A grid of devices whose axes have names."""

    def __init__(self, devices, axis_names, axis_types=None):
        import numpy as np
        if not isinstance(devices, np.ndarray):
            listed = np.empty(np.shape(np.array(devices, dtype=object)), dtype=object)
            listed[...] = devices
            devices = listed
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        self.devices = devices.copy()
        self.devices.flags.writeable = False
        if devices.ndim != len(self.axis_names):
            raise ValueError(f"Mesh requires the ndim of its first argument (`devices`) to equal the length of its second argument "
                             f"(`axis_names`), but got devices.ndim == {devices.ndim} and len(axis_names) == {len(self.axis_names)}.")
        if len(set(self.axis_names)) != len(self.axis_names):
            raise ValueError(f"Mesh requires its axis_names to be distinct, got {self.axis_names}")
        self.axis_types = _axis_types(axis_types, len(self.axis_names))
        self._key = (self.axis_names, self.devices.shape, tuple(self.devices.flat))

    @property
    def axis_sizes(self):
        return self.devices.shape

    @property
    def size(self):
        return self.devices.size

    @property
    def empty(self):
        return self.devices.ndim == 0 or self.devices.size == 0

    @property
    def device_ids(self):
        import numpy as np
        return np.vectorize(lambda device: device.id, otypes=[int])(self.devices)

    @property
    def local_devices(self):
        return [device for device in self.devices.flat if device.process_index == devices()[0].client_process]

    @property
    def is_multi_process(self):
        return len(self.local_devices) != self.size

    def __enter__(self):
        _stack().append(self)
        return self

    def __exit__(self, *exception):
        _stack().pop()
        return False

    def __eq__(self, other):
        return isinstance(other, Mesh) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    def __str__(self):
        sizes = "".join(f"'{name}': {size}, " for name, size in self.shape_tuple)
        return f"Mesh({sizes}axis_types={self.axis_types})"

    def __repr__(self):
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, axis_types={self.axis_types})"


def _stack():
    if not hasattr(_open_meshes, "stack"):
        _open_meshes.stack = []
    return _open_meshes.stack


def current_mesh():
    """The innermost mesh of `with mesh:` and `with set_mesh(mesh):` on this thread; None where there is none."""
    return _stack()[-1] if _stack() else None


class set_mesh:
    """Specifications without a mesh mean this one, while the context lasts."""

    def __init__(self, mesh):
        if not isinstance(mesh, Mesh):
            raise ValueError(f"Expected mesh of type `jax.sharding.Mesh`. Got {type(mesh)}")
        self._mesh = mesh

    def __enter__(self):
        return self._mesh.__enter__()

    def __exit__(self, *exception):
        return self._mesh.__exit__(*exception)


def _axis_types(given, count):
    types = (AxisType.Auto,) * count if given is None else tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if len(types) != count:
        raise ValueError(f"Number of axis names should match the number of axis_types. Got {count} names and axis_types={types}")
    for one in types:
        if one is not AxisType.Auto:
            raise NotImplementedError(f"Mesh: axis types are Auto, got {one!r}")
    return types


def make_mesh(axis_shapes, axis_names, axis_types=None, *, devices=None):
    """A mesh of the first devices. All axes are Auto: the compiler decides how values lie that nothing is said of."""
    import math

    import numpy as np
    axis_shapes, axis_names = tuple(axis_shapes), tuple(axis_names)
    if len(axis_shapes) != len(axis_names):
        raise ValueError(f"Number of axis names should match the number of axis_shapes. Got axis_names={axis_names} and axis_shapes={axis_shapes}")
    chosen = list(_all_devices() if devices is None else devices)
    count = math.prod(axis_shapes)
    if len(chosen) < count:
        raise ValueError(f"Number of devices {len(chosen)} must be >= the product of mesh_shape {axis_shapes}")
    grid = np.empty(count, dtype=object)
    grid[:] = chosen[:count]
    return Mesh(grid.reshape(axis_shapes), axis_names, axis_types)


class Sharding:
    """How an array lies on devices."""

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
        return self._placement.replicated

    def shard_shape(self, global_shape):
        """The shape of each device's part."""
        return self._placement.shard_shape(list(global_shape))

    def devices_indices_map(self, global_shape):
        """{device: the slices of its part}."""
        part = self.shard_shape(global_shape)
        return {device: _slices(self._placement.shard_offset(list(global_shape), i), part, global_shape)
                for i, device in enumerate(self._device_list)}

    def addressable_devices_indices_map(self, global_shape):
        return {device: index for device, index in self.devices_indices_map(global_shape).items() if device.addressable}

    def is_equivalent_to(self, other, ndim):
        """Whether an array of this rank lies the same way under both."""
        if not isinstance(other, Sharding) or self._device_list != other._device_list or self.memory_kind != other.memory_kind:
            return False
        shape = [8 * 27 * 5 * 7 * max(1, self.num_devices)] * ndim
        return self.devices_indices_map(shape) == other.devices_indices_map(shape)


def _slices(offset, part, whole):
    return tuple(slice(None) if size == full else slice(begin, begin + size) for begin, size, full in zip(offset, part, whole))


class DuplicateSpecError(Exception):
    """An axis of a mesh cannot split two dimensions."""


class NamedSharding(Sharding):
    """A mesh, and which of its axes split which dimension."""

    def __init__(self, mesh, spec, *, memory_kind=None):
        if not isinstance(mesh, Mesh):
            raise TypeError(f"NamedSharding: expected a Mesh, got {type(mesh).__name__}")
        if isinstance(spec, (tuple, list)):
            spec = PartitionSpec(*spec)
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"Unexpected type {type(spec)} for NamedSharding spec, expected a PartitionSpec")
        self.mesh, self.spec, self._memory_kind = mesh, spec, memory_kind
        seen = set()
        axes = []
        self._unconstrained = []
        for dimension, entry in enumerate(spec):
            if isinstance(entry, _Unconstrained):
                self._unconstrained.append(dimension)
            names = (entry,) if isinstance(entry, str) else entry if isinstance(entry, tuple) else ()
            for name in names:
                if name not in mesh.axis_names:
                    raise ValueError(f"Resource axis: {name} of {spec} is not found in mesh: {mesh.axis_names}.")
                if name in seen:
                    raise DuplicateSpecError(f"A single NamedSharding spec specification can map every mesh axis to at most one positional "
                                             f"dimension, but {spec} has duplicate entries for `{name}`")
                seen.add(name)
            axes.append(list(names))
        self._device_list = tuple(mesh.devices.flat)
        self._placement = _core.Placement(self._device_list[0]._placement_platform, [device.id for device in self._device_list], list(mesh.axis_names),
                                          list(mesh.axis_sizes), axes, _own_kind(self._device_list[0], memory_kind))

    @property
    def memory_kind(self):
        return self._memory_kind or self._device_list[0].default_memory().kind

    @property
    def device_set(self):
        return set(self._device_list)

    def with_memory_kind(self, kind):
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def __eq__(self, other):
        return isinstance(other, NamedSharding) and (self.mesh, self.spec, self.memory_kind) == (other.mesh, other.spec, other.memory_kind)

    def __hash__(self):
        return hash((self.mesh, self.spec, self.memory_kind))

    def __repr__(self):
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}, memory_kind={self.memory_kind})"


class SingleDeviceSharding(Sharding):
    """The layout of an array that lies on one device."""

    def __init__(self, device, *, memory_kind=None):
        self._device, self._memory_kind = device, memory_kind
        self._device_list = (device,)
        self._unconstrained = []
        self._placement = _core.Placement(device._placement_platform, [device.id], [], [], [], _own_kind(device, memory_kind))

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
    """The empty text stands for the device's own memory."""
    if kind is None or kind == device.default_memory().kind:
        return ""
    known = [memory.kind for memory in device.addressable_memories()]
    if kind not in known:
        raise ValueError(f"Could not find memory addressable by device {device.device_kind}. Device {device.device_kind} can address the "
                         f"following memory kinds: {', '.join(known)}. Got memory kind: {kind}")
    return kind


class Shard:
    """The part of an array on one device."""

    def __init__(self, device, index, replica_id, data):
        self.device, self.index, self.replica_id, self.data = device, index, replica_id, data

    def __repr__(self):
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"


def sharding_of(array):
    """How an array lies."""
    placement = None if isinstance(array, _core.Tracer) else _core.array_placement(array)
    if placement is None:
        return SingleDeviceSharding(Device("cpu", 0) if isinstance(array, _core.Tracer) else device_of(array))
    return sharding_from(placement)


def sharding_from(placement):
    """The sharding of a placement of the core."""
    import numpy as np
    known = {device.id: device for device in devices(_called(placement.platform))}
    chosen = [known[number] for number in placement.devices]
    kind = placement.memory_kind or None
    names, sizes = placement.axes
    if not names:
        return SingleDeviceSharding(chosen[0], memory_kind=kind)
    grid = np.empty(len(chosen), dtype=object)
    grid[:] = chosen
    spec = PartitionSpec(*(axes[0] if len(axes) == 1 else tuple(axes) if axes else None for axes in placement.spec))
    return NamedSharding(Mesh(grid.reshape(sizes), names), spec, memory_kind=kind)


def shards_of(array):
    """The parts of an array on this process's devices."""
    if isinstance(array, _core.Tracer):
        raise ConcretizationTypeError(f"Abstract tracer value encountered where concrete value is expected: {array}")
    sharding = sharding_of(array)
    if sharding.num_devices == 1:
        return [Shard(next(iter(sharding.device_set)), (slice(None),) * array.ndim, 0, array)]
    seen = collections.Counter()
    parts = iter(_core.array_shards(array))
    shards = []
    for device, index in sharding.devices_indices_map(array.shape).items():
        key = repr(index)
        if device.addressable:
            shards.append(Shard(device, index, seen[key], next(parts)))
        seen[key] += 1
    return shards


class Layout(NamedTuple):
    """The order of dimensions in memory, the slowest first; tiles are for devices that have them."""

    major_to_minor: tuple
    tiling: tuple | None = None
    sub_byte_element_size_in_bits: int = 0


class Format(NamedTuple):
    """A layout and a sharding; None for what is left open."""

    layout: Layout | None = None
    sharding: object = None


def _require_row_major(layout, operation):
    if layout is None:
        return
    if tuple(layout.major_to_minor) != tuple(range(len(layout.major_to_minor))) or layout.tiling or layout.sub_byte_element_size_in_bits:
        raise NotImplementedError(f"{operation}: arrays are row-major and not tiled, got {layout}")


def resolve(target, operation):
    """The sharding that a device, a sharding, or a specification inside a mesh's context means; None stays None."""
    if isinstance(target, Format):
        _require_row_major(target.layout, operation)
        target = target.sharding
    if target is None or isinstance(target, Sharding):
        return target
    if isinstance(target, Device):
        return SingleDeviceSharding(target)
    if isinstance(target, PartitionSpec):
        mesh = current_mesh()
        if mesh is None:
            raise RuntimeError(f"{operation} requires a non-empty mesh in context if you are passing `PartitionSpec`s to shardings. You can "
                               "define a context mesh via `jax.set_mesh(mesh)`. Alternatively, provide `Sharding`s to shardings and then the "
                               "mesh context manager is not required.")
        return NamedSharding(mesh, target)
    raise ValueError(f"{operation}: Received invalid value {target!r}; expected a Device, a Sharding or a PartitionSpec")


def _is_target(value):
    return value is None or isinstance(value, (Sharding, PartitionSpec, Device, Format))


def spread(targets, tree, operation):
    """One target for each leaf of a tree, of a tree prefix of targets."""
    leaves, structure = tree_util.tree_flatten(targets, is_leaf=_is_target)
    try:
        below = structure.flatten_up_to(tree)
    except (ValueError, TypeError):
        found = [str(make(operation)) for make in prefix_errors(targets, tree, _is_target)]
        raise ValueError(f"{operation} specification must be a tree prefix of the corresponding value, got specification {targets!r}.\n"
                         f"Mismatch details ({len(found)} found):\n" + "\n".join(found)) from None
    spread_out = []
    for target, subtree in zip(leaves, below):
        spread_out += [target] * len(_core.tree_leaves(subtree))
    return spread_out


def constrain(tree, targets, operation, border):
    """Every leaf of a tree under its constraint."""
    leaves, structure = _core.tree_flatten(tree)
    constrained = []
    for leaf, target in zip(leaves, spread(targets, tree, operation)):
        sharding = resolve(target, operation)
        if sharding is not None:
            array = _core.as_array(leaf)
            check_fits(sharding, array.shape, operation)
            leaf = _core.sharding_constraint(array, sharding._placement, sharding._unconstrained, border)
        constrained.append(leaf)
    return structure.unflatten(constrained)


def check_fits(sharding, shape, operation):
    """Raises where an array of this shape cannot lie so."""
    if isinstance(sharding, NamedSharding) and len(sharding.spec) > len(shape):
        raise ValueError(f"One of {operation} args is incompatible with its sharding annotation {sharding}: Sharding {sharding} is only valid for "
                         f"values of rank at least {len(sharding.spec)}, but was applied to a value of rank {len(shape)}.")
    sharding.shard_shape(shape)


def with_sharding_constraint(x, shardings):
    """The value of x, lying as the shardings say while a compiled program runs."""
    return constrain(x, shardings, "with_sharding_constraint", 0)


def device_put(x, device, may_alias=None, donate=False):
    """Every leaf of a tree as an array on devices: on the default one, on a device, or as a sharding says.

    `may_alias` and `donate` are trees of flags like `device`: False gives each leaf memory of its own, and the source of a
    donated leaf is deleted where the result does not share its memory.
    """
    leaves, structure = _core.tree_flatten(x)
    targets = [None] * len(leaves) if device is None else spread(device, x, "device_put device")
    donated, shares = _flags(donate, x, leaves), _flags(may_alias, x, leaves)
    results = []
    for leaf, target, given, may_share in zip(leaves, targets, donated, shares):
        if given and may_share:
            raise ValueError("may_alias and donate cannot be True at the same time.")
        sharding = resolve(target, "device_put")
        if may_share is not False and not given and _is_placed(leaf, sharding):
            results.append(leaf)
            continue
        result = _put(leaf, sharding)
        if not isinstance(result, (_core.Tracer, _core.Ref)):
            shared = isinstance(leaf, _core.Array) and _core.shares_memory(leaf, result)
            if may_share is False and shared:
                result = _core.copied(result)
            elif given and not shared and isinstance(leaf, _core.Array):
                leaf.delete()
        results.append(result)
    return structure.unflatten(results)


def _is_placed(leaf, sharding):
    """Whether a leaf is an array that is where it is to be put."""
    if not isinstance(leaf, _core.ArrayImpl):
        return False
    return sharding is None or (leaf.committed and leaf.sharding == sharding)


def _flags(given, tree, leaves):
    """One flag of a tree prefix for each leaf; None: not said."""
    if given is None or isinstance(given, bool):
        return [given] * len(leaves)
    flags, structure = tree_util.tree_flatten(given)
    return [flag for flag, below in zip(flags, structure.flatten_up_to(tree)) for _ in _core.tree_leaves(below)]


def _put(leaf, sharding):
    array = _core.put_array(leaf)
    if sharding is None or isinstance(array, _core.Ref):
        return array
    if isinstance(sharding, SingleDeviceSharding) and sharding._device not in devices(_called(sharding._device.platform)):
        raise ValueError(f"no such device: {sharding._device!r}; there are {devices()}")
    check_fits(sharding, array.shape, "device_put")
    if isinstance(array, _core.Tracer):
        return _core.sharding_constraint(array, sharding._placement, sharding._unconstrained, 0)
    return _core.device_put(array, sharding._placement)


def bordered(fun, in_shardings, out_shardings, static_argnums):
    """The function with demands on how its arguments and results lie."""

    def with_borders(*args, **kwargs):
        if in_shardings is not None:
            if kwargs:
                raise ValueError("pjit does not support kwargs when in_shardings is specified.")
            fixed = {position % len(args) for position in static_argnums} if args else set()
            moving = tuple(value for i, value in enumerate(args) if i not in fixed)
            if isinstance(in_shardings, (tuple, list)) and len(in_shardings) != len(moving):
                raise ValueError("pjit in_shardings specification must be a tree prefix of the positional arguments tuple. In particular, pjit "
                                 "in_shardings must either be a Sharding, a PartitionSpec, or a tuple of length equal to the number of positional "
                                 f"arguments. But pjit in_shardings is the wrong length: got a tuple or list of length {len(in_shardings)} for an "
                                 f"args tuple of length {len(moving)}.")
            targets = tuple(in_shardings) if isinstance(in_shardings, list) else in_shardings
            moving = iter(constrain(moving, targets, "pjit in_shardings", 1))
            args = tuple(value if i in fixed else next(moving) for i, value in enumerate(args))
        result = fun(*args, **kwargs)
        return result if out_shardings is None else constrain(result, out_shardings, "pjit out_shardings", 2)

    return with_borders


def make_array_from_callback(shape, sharding, data_callback, dtype=None):
    """An array whose part on each device is what the callback returns for its slices."""
    import numpy as np
    parts = {}
    shards = []
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        key = repr(index)
        if key not in parts:
            parts[key] = _core.put_array(np.asarray(data_callback(index), dtype=dtype))
        shards.append(_put(parts[key], SingleDeviceSharding(device)))
    return make_array_from_single_device_arrays(shape, sharding, shards)


def make_array_from_single_device_arrays(shape, sharding, arrays, *, dtype=None):
    """One array of parts that are on its devices. `dtype` is needed where this process has no part, and is that of the parts."""
    for array in arrays:
        if dtype is not None and array.dtype != dtype:
            raise ValueError(f"make_array_from_single_device_arrays: expected parts of dtype {dtype}, got {array.dtype}")
    if isinstance(sharding, SingleDeviceSharding):
        return arrays[0]
    by_device = {device_of(array): array for array in arrays}
    missing = [device for device in sharding._device_list if device.addressable and device not in by_device]
    if missing:
        raise ValueError(f"make_array_from_single_device_arrays: there is no part on {missing}")
    return _core.join_shards(list(shape), sharding._placement, [by_device[device] for device in sharding._device_list if device.addressable])


_tracebacks.guard(__name__)
