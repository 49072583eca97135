"""Shardings given by an XLA description of the tiles."""
import functools

from capibara.jax._hlo_sharding import HloSharding, tile_slices
from capibara.jax._mesh import Mesh, PartitionSpec, grid_of
from capibara.jax._sdy_sharding import sdy_of_named
from capibara.jax._sharding import IndivisibleError, NamedSharding, Sharding, _own_kind


class GSPMDSharding(Sharding):
    """A list of devices, and XLA's description of the tiles that they hold."""

    def __init__(self, devices, op_sharding, *, memory_kind=None):
        self._device_list, self._memory_kind = tuple(devices), memory_kind
        self._hlo_sharding = op_sharding if isinstance(op_sharding, HloSharding) else HloSharding.from_proto(op_sharding)
        self._unconstrained = []
        if memory_kind is not None:
            _own_kind(self._device_list[0], memory_kind)  # raises if the device has no such memory

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
        """An equivalent sharding with the named axes of a mesh."""
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
        self.shard_shape(global_shape)  # raises if a dimension does not divide
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
