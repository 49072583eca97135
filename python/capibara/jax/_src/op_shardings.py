"""jax._src.op_shardings: queries about shardings in XLA's form."""
from typing import Any

from capibara._modules import explain_missing
from capibara.jax._hlo_sharding import tile_slices


def is_hlo_sharding_replicated(hc: Any) -> bool:
    """True if every device holds the whole array."""
    return hc.num_devices() == 1 or hc.is_replicated()


def are_hlo_shardings_equal(hc1: Any, hc2: Any) -> bool:
    """True if both assign the same tile to each device."""
    return (is_hlo_sharding_replicated(hc1) and is_hlo_sharding_replicated(hc2)) or hc1 == hc2


def get_num_ways_dim_sharded(hlo_sharding: Any) -> tuple:
    """(number of tiles along each dimension, number of devices that hold each tile)."""
    return hlo_sharding.tiles()


def op_sharding_to_indices(op_sharding: Any, shape: Any, num_devices: int) -> tuple:
    """The slices that each device holds."""
    if is_hlo_sharding_replicated(op_sharding):
        return ((slice(None),) * len(shape),) * num_devices
    return tile_slices(op_sharding, shape)


explain_missing(__name__)
