"""jax._src.sharding_impls: the kinds of shardings."""
from capibara._modules import explain_missing
from capibara.jax._gspmd_sharding import GSPMDSharding  # noqa: F401
from capibara.jax._hlo_sharding import hlo_of_named as named_sharding_to_xla_hlo_sharding  # noqa: F401
from capibara.jax._mesh import PartitionSpec, set_mesh  # noqa: F401
from capibara.jax._placing import UNSPECIFIED, UnspecifiedValue  # noqa: F401
from capibara.jax._sharding import DuplicateSpecError, NamedSharding, Sharding, SingleDeviceSharding  # noqa: F401


def make_single_device_sharding(device, *, memory_kind=None):
    """The sharding of arrays on one device."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


class NonUniformShardingError(ValueError):
    """The processes' parts of a dimension are neither equal nor disjoint."""


def get_process_index_and_count(tensor_sharding, dim, ndims):
    """(index of this process's part of a dimension, number of parts): processes may share a part."""
    placement, own = tensor_sharding._placement, {}
    shape = [placement.parts(axis) for axis in range(ndims)]
    for device, index in tensor_sharding.devices_indices_map(shape).items():
        own.setdefault(device.process_index, set()).add(index[dim].indices(shape[dim])[0])
    groups = sorted({tuple(sorted(places)) for places in own.values()})
    if len({len(group) for group in groups}) > 1 or sum(map(len, groups)) != shape[dim]:
        raise NonUniformShardingError(f"{tensor_sharding} is not uniform along dimension {dim}: processes have {groups} of {shape[dim]}")
    this = next(iter(tensor_sharding.device_set)).client.process_index()
    return groups.index(tuple(sorted(own[this]))), len(groups)


def local_to_global_shape(sharding, local_shape):
    """The global shape of an array from the shape of each process's part; None for dimensions that this does not determine."""
    shape = []
    for dim, size in enumerate(local_shape):
        try:
            shape.append(size * get_process_index_and_count(sharding, dim, len(local_shape))[1])
        except NonUniformShardingError:
            shape.append(None)
    return tuple(shape)


def array_mapping_to_axis_resources(array_mapping):
    """The specification equivalent to {axis: dimension}."""
    if not array_mapping:
        return PartitionSpec()
    entries = [()] * (max(array_mapping.values()) + 1)
    for name, dim in array_mapping.items():
        entries[dim] += (name,)
    return PartitionSpec(*entries)


explain_missing(__name__)
