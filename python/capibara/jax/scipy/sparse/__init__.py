"""jax.scipy.sparse: solvers for linear operators given by their matrix-vector product."""
from capibara._modules import explain_missing
from capibara.jax.scipy.sparse import linalg  # noqa: F401

explain_missing(__name__)
