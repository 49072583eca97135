"""XLA's form of shardings: a grid of tiles and the numbers of the devices that hold them, without named mesh axes."""
import enum
import functools
import math

from capibara.jax._mesh import Unconstrained


class _Type(enum.IntEnum):
    """The kind of a sharding, or of one of the last dimensions of its grid. The values are those of XLA's protocol buffers."""
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
    """The fields of XLA's OpSharding message; HloSharding.from_proto reads them."""

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
        """The devices numbered along a grid of `reshape_dims`, transposed, and reshaped to a grid of `dims`."""
        import numpy as np
        count = math.prod(dims)
        if not dims:
            raise ValueError("`dims` should not be empty.")
        shape, order = list(reshape_dims) or [count], list(transpose_perm) or list(range(len(reshape_dims) or 1))
        return _with_subgroups(np.arange(count).reshape(shape).transpose(order).reshape(dims), subgroup_types, (shape, order))

    @staticmethod
    def subgroup_with_device_ordering(tile_assignment, subgroup_types=()):
        import numpy as np
        return _with_subgroups(np.asarray(tile_assignment), subgroup_types)

    @staticmethod
    def from_proto(proto):
        import numpy as np
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
        """(number of tiles along each dimension, number of devices that hold each tile)."""
        if self._grid is None or self._kind is _Type.MAXIMAL:
            return [], 1
        split = self._grid.ndim - len(self._subgroups)
        replicas = (size for size, kind in zip(self._grid.shape[split:], self._subgroups) if kind is _Type.REPLICATED)
        return list(self._grid.shape[:split]), math.prod(replicas)

    def get_axis_sizes(self):
        """The axis sizes of the smallest mesh whose axes need not be split."""
        return [] if self._iota is None else self.axes_of_dimensions()[0]

    def axes_of_dimensions(self):
        """(axis sizes of the smallest mesh whose axes need not be split, axis numbers for each dimension of the grid)."""
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
    """Merges subgroups to one dimension per kind, replicated last; if nothing else is split, returns the sharding of that kind."""
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
    """The axes that make up each dimension of a grid; None if a dimension is part of an axis."""
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
    """The same device order with as few dimensions as possible: dimensions that stay adjacent are merged."""
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
    """The slices of each device's tile of an array."""
    import numpy as np
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


def hlo_of(sharding, rank):
    """XLA's form of any sharding: one without a mesh is on one device."""
    return hlo_of_named(sharding, rank) if hasattr(sharding, "mesh") else HloSharding.replicate()
