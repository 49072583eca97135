"""jax._src.named_sharding: shardings by the names of a mesh's axes."""
from capibara._modules import explain_missing
from capibara.jax._sdy_sharding import SdyArray, SdyDim  # noqa: F401
from capibara.jax._sharding import DuplicateSpecError, NamedSharding  # noqa: F401

explain_missing(__name__)
