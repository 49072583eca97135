"""jax.example_libraries: small libraries of optimisers and layers, over public functions alone."""
from capibara._modules import explain_missing

explain_missing(__name__, later={"optimizers": None, "stax": None})
