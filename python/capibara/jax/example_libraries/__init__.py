"""jax.example_libraries: a small library of optimisers, over public functions alone."""
from capibara._modules import explain_missing

explain_missing(__name__, later={"optimizers": None})
