"""jax._src.lib.xla_client: shardings in XLA's form, and the classes of arrays and devices."""
from capibara._core import ArrayImpl  # noqa: F401
from capibara._modules import explain_missing
from capibara.jax._devices import Device  # noqa: F401
from capibara.jax._hlo_sharding import HloSharding, OpSharding  # noqa: F401

explain_missing(__name__)
