"""jax.experimental: experimental features of jax."""
from capibara._lifting import current_state as cur_qdd  # noqa: F401
from capibara._modules import explain_missing
from capibara.jax._api import io_callback  # noqa: F401
from capibara.jax._config import scope as _scope

enable_x64 = _scope("enable_x64", True)
disable_x64 = lambda: _scope("enable_x64", True)(False)  # noqa: E731

explain_missing(__name__, later=dict.fromkeys((
    "array_serialization", "colocated_python", "compute_on", "hijax", "jet", "key_reuse", "layout", "mesh_utils", "multihost_utils", "ode",
    "pjit", "random", "rnn", "roofline", "serialize_executable", "shard_alike", "shard_map", "sparse", "topologies", "xla_metadata")))
