"""jax._src.layout: the order of an array's dimensions in memory."""
from capibara._modules import explain_missing
from capibara.jax._sharding import Format, Layout  # noqa: F401

explain_missing(__name__)
