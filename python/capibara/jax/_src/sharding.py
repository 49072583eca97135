"""jax._src.sharding: what all shardings have."""
import functools

from capibara._modules import explain_missing
from capibara.jax._sharding import IndivisibleError, Sharding  # noqa: F401


@functools.lru_cache(maxsize=4096)
def common_devices_indices_map(s, global_shape):
    """{device: the slices of its part}."""
    return s.devices_indices_map(global_shape)


explain_missing(__name__)
