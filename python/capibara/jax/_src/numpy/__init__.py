"""jax._src.numpy: functions of jax.numpy under jax's private names, if they take more than the public ones."""
from capibara._modules import explain_missing

explain_missing(__name__, later={"error": None, "hijax": None, "indexing": None})
