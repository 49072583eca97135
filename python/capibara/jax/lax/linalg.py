"""jax.lax.linalg: matrix decompositions."""
from capibara import _core
from capibara._modules import fill as _fill
from capibara._types import EigImplementation, EighImplementation, SvdAlgorithm  # noqa: F401

for _primitive in _core.catalog():
    if _primitive.name in ("cholesky", "cholesky_update", "eig", "eigh", "hessenberg", "householder_product", "lu",
                           "lu_pivots_to_permutation", "ormqr", "qr", "schur", "svd", "symmetric_product",
                           "triangular_solve", "tridiagonal", "tridiagonal_solve"):
        globals()[f"{_primitive.name}_p"] = _primitive

_fill(__name__, "lax.linalg")
