"""Shardings as XLA writes them: a grid of tiles and the devices that hold them, by number instead of by the names of a mesh."""
import dataclasses
import enum
import functools
import math

import numpy as np

from capibara.jax._mesh import Mesh, PartitionSpec, Unconstrained, grid_of
from capibara.jax._sharding import IndivisibleError, NamedSharding, Sharding, SingleDeviceSharding


class _Type(enum.IntEnum):
    """What a sharding, or one of the last dimensions of its grid, means. The numbers are those of XLA's messages."""
    REPLICATED = 0
    MAXIMAL = 1
    TUPLE = 2
    OTHER = 3
    MANUAL = 4
    UNKNOWN = 5
    UNREDUCED = 6

    def __repr__(self):
        return f"OpSharding_Type.{self.name}"


class OpSharding:
    """The fields of XLA's message for a sharding; HloSharding.from_proto reads them."""

    Type = _Type

    def __init__(self):
        self.type = _Type.REPLICATED
        self.replicate_on_last_tile_dim = False
        self.tile_assignment_dimensions, self.tile_assignment_devices = [], []
        self.iota_reshape_dims, self.iota_transpose_perm = [], []
        self.last_tile_dims, self.tuple_shardings = [], []

    def clone(self):
        copied = OpSharding()
        vars(copied).update({name: list(value) if isinstance(value, list) else value for name, value in vars(self).items()})
        return copied

    def __repr__(self):
        return "\n".join(f"{name}: {value}" for name, value in vars(self).items() if value)


class HloSharding:
    """Which tile of an array each device holds. `grid` has one dimension per dimension of the array, and then one per group of
    devices that hold the same tile (`subgroups`: replicated, manual or unreduced)."""

    def __init__(self, kind, grid=None, subgroups=(), iota=None):
        self._kind, self._grid, self._subgroups, self._iota = kind, grid, tuple(subgroups), iota

    @staticmethod
    def replicate():
        return HloSharding(_Type.REPLICATED)

    @staticmethod
    def manual():
        return HloSharding(_Type.MANUAL)

    @staticmethod
    def unknown():
        return HloSharding(_Type.UNKNOWN)

    @staticmethod
    def unreduced():
        return HloSharding(_Type.UNREDUCED)

    @staticmethod
    def iota_tile(dims, reshape_dims=(), transpose_perm=(), subgroup_types=()):
        """The devices counted along a grid of `reshape_dims`, transposed, and cut into a grid of `dims`."""
        count = math.prod(dims)
        if not dims:
            raise ValueError("`dims` should not be empty.")
        shape, order = list(reshape_dims) or [count], list(transpose_perm) or list(range(len(reshape_dims) or 1))
        return _with_subgroups(np.arange(count).reshape(shape).transpose(order).reshape(dims), subgroup_types, (shape, order))

    @staticmethod
    def subgroup_with_device_ordering(tile_assignment, subgroup_types=()):
        return _with_subgroups(np.asarray(tile_assignment), subgroup_types)

    @staticmethod
    def from_proto(proto):
        if proto.type is _Type.TUPLE:
            return HloSharding(_Type.TUPLE, subgroups=map(HloSharding.from_proto, proto.tuple_shardings))
        if proto.type is not _Type.OTHER and proto.type is not _Type.MAXIMAL:
            return HloSharding(proto.type)
        dims, groups = proto.tile_assignment_dimensions, list(proto.last_tile_dims)
        if proto.type is _Type.MAXIMAL:
            return HloSharding(_Type.MAXIMAL, np.array(proto.tile_assignment_devices))
        if proto.replicate_on_last_tile_dim:
            groups = [_Type.REPLICATED]
        if proto.iota_reshape_dims:
            return HloSharding.iota_tile(dims, proto.iota_reshape_dims, proto.iota_transpose_perm, groups)
        return _with_subgroups(np.array(proto.tile_assignment_devices).reshape(dims), groups)

    def to_proto(self):
        proto = OpSharding()
        proto.type = self._kind
        if self._grid is None:
            return proto
        proto.tile_assignment_dimensions = list(self._grid.shape)
        if self._iota is not None:
            proto.iota_reshape_dims, proto.iota_transpose_perm = map(list, self._iota)
        else:
            proto.tile_assignment_devices = self.tile_assignment_devices()
        proto.replicate_on_last_tile_dim = self.replicate_on_last_tile_dim()
        proto.last_tile_dims = self.subgroup_types()
        return proto

    def is_replicated(self):
        return self._kind is _Type.REPLICATED

    def is_manual(self):
        return self._kind is _Type.MANUAL

    def is_unknown(self):
        return self._kind is _Type.UNKNOWN

    def is_unreduced(self):
        return self._kind is _Type.UNREDUCED

    def is_tiled(self):
        return self._kind is _Type.OTHER

    def is_maximal(self):
        return self._kind in (_Type.REPLICATED, _Type.MAXIMAL)

    def is_tile_assignment_iota(self):
        return self._iota is not None

    def num_devices(self):
        return 0 if self._grid is None else self._grid.size

    def num_dimensions(self):
        return 1 if self._grid is None else self._grid.ndim

    def replicate_on_last_tile_dim(self):
        return self._subgroups == (_Type.REPLICATED,)

    def subgroup_types(self):
        return [] if self.replicate_on_last_tile_dim() else list(self._subgroups)

    def tile_assignment_dimensions(self):
        return [0] if self._grid is None else list(self._grid.shape)

    def tile_assignment_devices(self):
        return [] if self._grid is None else [int(device) for device in self._grid.flat]

    def tiles(self):
        """(the number of parts of each dimension, how many devices hold each part)."""
        if self._grid is None or self._kind is _Type.MAXIMAL:
            return [], 1
        split = self._grid.ndim - len(self._subgroups)
        replicas = (size for size, kind in zip(self._grid.shape[split:], self._subgroups) if kind is _Type.REPLICATED)
        return list(self._grid.shape[:split]), math.prod(replicas)

    def get_axis_sizes(self):
        """The sizes of the axes of the smallest mesh whose axes are not cut."""
        return [] if self._iota is None else self.axes_of_dimensions()[0]

    def axes_of_dimensions(self):
        """(the sizes of the axes of the smallest mesh whose axes are not cut, of each dimension of the grid the numbers of its axes)."""
        shape, order = self._iota
        left = [[axis, shape[axis]] for axis in order]
        pieces, of_dims = [], []
        for size in self._grid.shape:
            own = []
            while size > 1:
                part = math.gcd(size, left[0][1])
                own.append(len(pieces))
                pieces.append((left[0][0], part))
                left[0][1] //= part
                size //= part
                if left[0][1] == 1:
                    left.pop(0)
            of_dims.append(own)
        in_order = sorted(range(len(pieces)), key=lambda piece: pieces[piece][0])
        return [pieces[piece][1] for piece in in_order], [[in_order.index(piece) for piece in own] for own in of_dims]

    def __eq__(self, other):
        return isinstance(other, HloSharding) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    @property
    def _key(self):
        return self._kind, tuple(self.tile_assignment_dimensions()), tuple(self.tile_assignment_devices()), self._subgroups

    def __repr__(self):
        if self._kind is _Type.TUPLE:
            return "{" + ", ".join(map(repr, self._subgroups)) + "}"
        if self._grid is None:
            return "{" + self._kind.name.lower() + "}"
        if self._kind is _Type.MAXIMAL:
            return f"{{maximal device={self._grid[0]}}}"
        devices = _listed(self.tile_assignment_devices())
        if self._iota is not None:
            shape, order = self._iota
            devices = f"<=[{_listed(shape)}]" + ("" if order == sorted(order) else f"T({_listed(order)})")
        groups = "" if not self._subgroups else " last_tile_dims={" + ", ".join(kind.name.lower() for kind in self._subgroups) + "}"
        if self.replicate_on_last_tile_dim():
            groups = " last_tile_dim_replicate"
        return f"{{devices=[{_listed(self._grid.shape)}]{devices}{groups}}}"


def _listed(numbers):
    return ",".join(map(str, numbers))


def _with_subgroups(grid, subgroups, iota=None):
    """One dimension for each kind of subgroup, replicated ones last; where nothing else splits, the sharding of that kind."""
    split = grid.ndim - len(subgroups)
    kinds = sorted(set(subgroups), key=lambda kind: (kind is _Type.REPLICATED, kind))
    members = [[split + place for place, own in enumerate(subgroups) if own is kind] for kind in kinds]
    sizes = [math.prod(grid.shape[place] for place in places) for places in members]
    if subgroups and math.prod(grid.shape[:split]) == 1 and sum(size > 1 for size in sizes) <= 1:
        return HloSharding(kinds[sizes.index(max(sizes))])
    order = [*range(split), *(place for places in members for place in places)]
    if iota is not None and order != sorted(order):
        axes = _axes_of_dimensions(grid.shape, *iota)
        iota = None if axes is None else (iota[0], [axis for place in order for axis in axes[place]])
    grid = grid.transpose(order).reshape([*grid.shape[:split], *sizes])
    if kinds[-1:] == [_Type.REPLICATED] and sizes[-1] == 1:
        grid, kinds = grid.reshape(grid.shape[:-1]), kinds[:-1]
    return HloSharding(_Type.OTHER, grid, kinds, _merged(iota))


def _axes_of_dimensions(dims, shape, order):
    """Which axes make up each dimension of a grid; None where a dimension is a part of an axis."""
    left, found = [axis for axis in order if shape[axis] > 1], []
    for size in dims:
        own = []
        while math.prod(shape[axis] for axis in own) < size:
            own.append(left.pop(0))
        if math.prod(shape[axis] for axis in own) != size:
            return None
        found.append(own)
    return found


def _merged(iota):
    """The same order of devices with as few dimensions as possible: dimensions that stay neighbours are one."""
    if iota is None:
        return None
    shape, order = iota
    kept = [place for place in order if shape[place] > 1]
    if not kept:
        return [1], [0]
    runs = []
    for place in kept:
        between = runs and all(shape[skipped] == 1 for skipped in range(runs[-1][-1] + 1, place))
        if runs and place > runs[-1][-1] and between:
            runs[-1].append(place)
        else:
            runs.append([place])
    ordered = sorted(runs)
    return [math.prod(shape[place] for place in run) for run in ordered], [ordered.index(run) for run in runs]


def tile_slices(sharding, shape):
    """Of each device, the slices of its tile of an array."""
    counts, found = sharding.tiles()[0], {}
    for place, device in np.ndenumerate(sharding._grid):
        found[int(device)] = tuple(slice(None) if count == 1 else slice(at * size // count, (at + 1) * size // count)
                                   for at, count, size in zip(place, counts, shape))
    return tuple(found[number] for number in range(len(found)))


@functools.lru_cache(maxsize=4096)
def hlo_of_named(sharding, rank):
    """XLA's form of a mesh and a specification, for arrays of this rank."""
    mesh, spec = sharding.mesh, sharding.spec
    kinds = {name: _Type.MANUAL for name in mesh.manual_axes} | {name: _Type.UNREDUCED for name in spec.unreduced}
    sizes = {name: size for name, size in mesh.shape_tuple if size > 1}
    positions = {name: place for place, name in enumerate(sizes)}
    dims, order = [1] * rank, []
    for dim, entry in enumerate(spec):
        for name in () if entry is None or isinstance(entry, Unconstrained) else entry if isinstance(entry, tuple) else (entry,):
            if name in sizes:
                dims[dim] *= sizes[name]
                order.append(positions[name])
    free = [name for name in sizes if positions[name] not in order]
    if len(free) == len(sizes) and not any(name in kinds for name in sizes):
        return HloSharding.replicate()
    subgroups = []
    for kind in sorted({kinds.get(name, _Type.REPLICATED) for name in free}):
        own = [name for name in free if kinds.get(name, _Type.REPLICATED) is kind]
        subgroups.append(kind)
        dims.append(math.prod(sizes[name] for name in own))
        order += [positions[name] for name in own]
    return HloSharding.iota_tile(dims, list(sizes.values()), order, subgroups)


@dataclasses.dataclass(frozen=True)
class SdyDim:
    """The axes that split a dimension; an open one may be split further."""
    axes: tuple
    is_open: bool

    def _text(self):
        return "{" + ", ".join([*map(repr, self.axes), *(["?"] if self.is_open else [])]) + "}"

    def __repr__(self):
        return f"SdyDim({self._text()})"


@dataclasses.dataclass(frozen=True)
class SdyArray:
    """A sharding as Shardy writes it."""
    mesh_shape: tuple | None
    dim_shardings: tuple
    logical_device_ids: tuple | None = None
    replicated_axes: frozenset = frozenset()
    unreduced_axes: frozenset = frozenset()

    def __repr__(self):
        devices = "" if self.logical_device_ids is None else f", device_ids={self.logical_device_ids}"
        replicated = f", replicated_axes={self.replicated_axes}" if self.replicated_axes else ""
        return f"SdyArray([{', '.join(dim._text() for dim in self.dim_shardings)}]{devices}{replicated})"


def sdy_of_named(sharding, rank):
    """Shardy's form of a mesh and a specification, for arrays of this rank."""
    dims = [SdyDim(() if entry is None or isinstance(entry, Unconstrained) else entry if isinstance(entry, tuple) else (entry,),
                   isinstance(entry, Unconstrained)) for entry in sharding.spec]
    return SdyArray(sharding.mesh.shape_tuple, (*dims, *[SdyDim((), False)] * (rank - len(dims))), unreduced_axes=sharding.spec.unreduced)


class GSPMDSharding(Sharding):
    """A list of devices, and XLA's description of the parts that they hold."""

    def __init__(self, devices, op_sharding, *, memory_kind=None):
        self._device_list, self._memory_kind = tuple(devices), memory_kind
        self._hlo_sharding = op_sharding if isinstance(op_sharding, HloSharding) else HloSharding.from_proto(op_sharding)
        self._unconstrained = []

    @classmethod
    def get_replicated(cls, device_assignment, *, memory_kind=None):
        return cls(device_assignment, HloSharding.replicate(), memory_kind=memory_kind)

    @property
    def memory_kind(self):
        return self._memory_kind or self._device_list[0].default_memory().kind

    @property
    def device_set(self):
        return set(self._device_list)

    @property
    def is_fully_replicated(self):
        return self._hlo_sharding.num_devices() == 1 or self._hlo_sharding.is_replicated()

    def with_memory_kind(self, kind):
        return GSPMDSharding(self._device_list, self._hlo_sharding, memory_kind=kind)

    def _to_xla_hlo_sharding(self, num_dimensions):
        return self._hlo_sharding

    def _to_sdy_sharding(self, num_dimensions):
        return sdy_of_named(self._named, num_dimensions)

    @functools.cached_property
    def _named(self):
        """The same by the names of a mesh."""
        hlo, devices = self._hlo_sharding, self._device_list
        if hlo.is_replicated():
            sizes, of_dims = [len(devices)], []
        elif not hlo.is_tiled() or not hlo.is_tile_assignment_iota():
            raise TypeError(f"Cannot convert GSPMDSharding {hlo} into SdyArray.")
        else:
            sizes, of_dims = hlo.axes_of_dimensions()
            of_dims = of_dims[:len(hlo.tiles()[0])]
        names = [f"_axis_{place}" for place in range(len(sizes))]
        spec = PartitionSpec(*(tuple(names[place] for place in own) for own in of_dims))
        return NamedSharding(Mesh(grid_of(devices, sizes), names), spec, memory_kind=self._memory_kind)

    @property
    def _placement(self):
        return self._named._placement

    def shard_shape(self, global_shape):
        """The shape of each device's part."""
        parts = [1] * len(global_shape) if self.is_fully_replicated else self._hlo_sharding.tiles()[0]
        if len(parts) != len(global_shape):
            raise ValueError(f"Sharding {self} is only valid for values of rank {len(parts)}, but was applied to a value of rank "
                             f"{len(global_shape)}")
        for dim, (size, count) in enumerate(zip(global_shape, parts)):
            if size % count:
                raise IndivisibleError(f"Sharding {self} implies that array axis {dim} is partitioned {count} times, but the dimension "
                                       f"size is {size} (full shape: {tuple(global_shape)}, per-dimension tiling factors: {parts} should "
                                       "evenly divide the shape)")
        return tuple(size // count for size, count in zip(global_shape, parts))

    def devices_indices_map(self, global_shape):
        """{device: the slices of its part}."""
        self.shard_shape(global_shape)  # raises where a dimension does not divide
        if self.is_fully_replicated:
            return dict.fromkeys(self._device_list, (slice(None),) * len(global_shape))
        return dict(zip(self._device_list, tile_slices(self._hlo_sharding, global_shape)))

    def __eq__(self, other):
        return isinstance(other, GSPMDSharding) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    @property
    def _key(self):
        hlo = HloSharding.replicate() if self.is_fully_replicated else self._hlo_sharding
        return self._device_list, hlo, self.memory_kind

    def __repr__(self):
        return f"GSPMDSharding({self._hlo_sharding!r}, memory_kind={self.memory_kind})"


def hlo_of(sharding, rank):
    """XLA's form of any sharding."""
    if isinstance(sharding, SingleDeviceSharding):
        return HloSharding.replicate()
    return hlo_of_named(sharding, rank)
