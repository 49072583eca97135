"""jax._src.sharding: what all shardings have."""
from capibara._modules import explain_missing
from capibara.jax._sharding import IndivisibleError, Sharding, common_devices_indices_map  # noqa: F401

explain_missing(__name__)
