"""jax._src.partition_spec: which axes of a mesh split which dimension."""
from capibara._modules import explain_missing
from capibara.jax._mesh import P, PartitionSpec  # noqa: F401

explain_missing(__name__)
