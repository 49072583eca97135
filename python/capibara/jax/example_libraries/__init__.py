"""jax.example_libraries: small libraries of optimisers and layers, using only public functions."""
from capibara._modules import explain_missing

explain_missing(__name__, later={"optimizers": None, "stax": None})
