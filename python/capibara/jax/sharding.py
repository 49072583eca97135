"""jax.sharding: meshes, specifications and shardings."""
from capibara._modules import explain_missing
from capibara.jax._abstract_mesh import AbstractDevice, AbstractMesh, get_abstract_mesh, use_abstract_mesh  # noqa: F401
from capibara.jax._axes import ManualAxisType  # noqa: F401
from capibara.jax._explicit import auto_axes, explicit_axes, reshard  # noqa: F401
from capibara.jax._mesh import AxisType, Mesh, PartitionSpec, get_mesh, set_mesh  # noqa: F401
from capibara.jax._partition import partition  # noqa: F401
from capibara.jax._sharding import NamedSharding, Sharding, SingleDeviceSharding  # noqa: F401

explain_missing(__name__)
