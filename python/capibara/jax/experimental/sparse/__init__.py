"""jax.experimental.sparse: arrays that store only their nonzero elements, and functions of arrays applied to them."""
from capibara._modules import explain_missing
from capibara.jax.experimental.sparse._base import JAXSparse
from capibara.jax.experimental.sparse._products import (
    bcoo_conv_general_dilated,
    bcoo_dot_general,
    bcoo_dot_general_sampled,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
)
from capibara.jax.experimental.sparse._shapes import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_gather,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    bcoo_update_layout,
)
from capibara.jax.experimental.sparse.ad import grad, jacfwd, jacobian, jacrev, value_and_grad
from capibara.jax.experimental.sparse.api import empty, eye, todense, todense_p
from capibara.jax.experimental.sparse.bcoo import (
    BCOO,
    bcoo_eliminate_zeros,
    bcoo_extract,
    bcoo_fromdense,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_transpose,
)
from capibara.jax.experimental.sparse.bcsr import (
    BCSR,
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_extract,
    bcsr_fromdense,
    bcsr_sum_duplicates,
    bcsr_todense,
)
from capibara.jax.experimental.sparse.coo import COO, coo_fromdense, coo_matmat, coo_matvec, coo_todense
from capibara.jax.experimental.sparse.csr import CSC, CSR, csr_fromdense, csr_matmat, csr_matvec, csr_todense
from capibara.jax.experimental.sparse.random import random_bcoo
from capibara.jax.experimental.sparse.transform import SparseTracer, sparsify
from capibara.jax.experimental.sparse.util import CuSparseEfficiencyWarning, SparseEfficiencyError, SparseEfficiencyWarning

__all__ = [
    "BCOO", "BCSR", "COO", "CSC", "CSR", "CuSparseEfficiencyWarning", "JAXSparse", "SparseEfficiencyError", "SparseEfficiencyWarning",
    "SparseTracer", "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_conv_general_dilated", "bcoo_dot_general",
    "bcoo_dot_general_sampled", "bcoo_dynamic_slice", "bcoo_eliminate_zeros", "bcoo_extract", "bcoo_fromdense", "bcoo_gather",
    "bcoo_multiply_dense", "bcoo_multiply_sparse", "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_sort_indices",
    "bcoo_squeeze", "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose", "bcoo_update_layout", "bcsr_broadcast_in_dim",
    "bcsr_concatenate", "bcsr_dot_general", "bcsr_extract", "bcsr_fromdense", "bcsr_sum_duplicates", "bcsr_todense", "coo_fromdense",
    "coo_matmat", "coo_matvec", "coo_todense", "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense", "empty", "eye", "grad",
    "jacfwd", "jacobian", "jacrev", "random_bcoo", "sparsify", "todense", "todense_p", "value_and_grad"]

explain_missing(__name__, later={"linalg": None})
