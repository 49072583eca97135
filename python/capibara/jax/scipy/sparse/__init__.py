"""jax.scipy.sparse: solvers for linear operators that are known by what they do to a vector."""
from capibara._modules import explain_missing
from capibara.jax.scipy.sparse import linalg  # noqa: F401

explain_missing(__name__)
