"""What jax sends of shardings to other hosts: nothing is sent here, so that only the names of devices' lists are left."""
from capibara._modules import explain_missing
from capibara.jax._src import xla_bridge as xb  # noqa: F401

DeviceList = tuple  # of devices, in the order of a sharding

explain_missing(__name__)
