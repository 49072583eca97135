"""jax's serialization of shardings for other hosts: nothing is sent here, so only the names for device lists exist."""
from capibara._modules import explain_missing
from capibara.jax._src import xla_bridge as xb  # noqa: F401

DeviceList = tuple  # of devices, in the order of a sharding

explain_missing(__name__)
