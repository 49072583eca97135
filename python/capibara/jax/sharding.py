"""jax.sharding: meshes, specifications and shardings."""
from capibara._modules import explain_missing
from capibara.jax._abstract_mesh import AbstractMesh, get_abstract_mesh  # noqa: F401
from capibara.jax._sharding import (  # noqa: F401
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    set_mesh,
)

explain_missing(__name__)
