"""jax._src.sharding_impls: the kinds of shardings."""
import functools

from capibara._modules import explain_missing
from capibara.jax._hlo_sharding import GSPMDSharding, hlo_of_named  # noqa: F401
from capibara.jax._mesh import PartitionSpec, set_mesh  # noqa: F401
from capibara.jax._placing import UNSPECIFIED, UnspecifiedValue  # noqa: F401
from capibara.jax._sharding import DuplicateSpecError, NamedSharding, Sharding, SingleDeviceSharding  # noqa: F401


def make_single_device_sharding(device, *, memory_kind=None):
    """The sharding of arrays on one device."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


@functools.lru_cache(maxsize=4096)
def named_sharding_to_xla_hlo_sharding(self, num_dimensions):
    """XLA's form of a mesh and a specification."""
    return hlo_of_named(self, num_dimensions)


def array_mapping_to_axis_resources(array_mapping):
    """The specification that says the same as {axis: dimension}."""
    if not array_mapping:
        return PartitionSpec()
    entries = [()] * (max(array_mapping.values()) + 1)
    for name, dim in array_mapping.items():
        entries[dim] += (name,)
    return PartitionSpec(*entries)


explain_missing(__name__)
