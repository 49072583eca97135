"""jax.experimental.array_serialization: arrays in files and object stores, by TensorStore."""
from capibara._modules import explain_missing

explain_missing(__name__, later={"serialization": None})
