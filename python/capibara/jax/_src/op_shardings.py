"""jax._src.op_shardings: questions about shardings in XLA's form."""
from typing import Any

from capibara._modules import explain_missing
from capibara.jax._hlo_sharding import tile_slices


def is_hlo_sharding_replicated(hc: Any) -> bool:
    """Whether every device has all of the array."""
    return hc.num_devices() == 1 or hc.is_replicated()


def are_hlo_shardings_equal(hc1: Any, hc2: Any) -> bool:
    """Whether both give each device the same part."""
    return (is_hlo_sharding_replicated(hc1) and is_hlo_sharding_replicated(hc2)) or hc1 == hc2


def get_num_ways_dim_sharded(hlo_sharding: Any) -> tuple:
    """(the number of parts of each dimension, how many devices hold each part)."""
    return hlo_sharding.tiles()


def op_sharding_to_indices(op_sharding: Any, shape: Any, num_devices: int) -> tuple:
    """The slices that each device has."""
    if is_hlo_sharding_replicated(op_sharding):
        return ((slice(None),) * len(shape),) * num_devices
    return tile_slices(op_sharding, shape)


explain_missing(__name__)
