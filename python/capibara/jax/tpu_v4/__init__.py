"""Fused kernels by subject: each runs on every device, and on TPUs as the plain blockwise program."""
from capibara._modules import explain_missing as _explain_missing

_explain_missing(__name__, later=dict.fromkeys(("adaptive_kernels", "neuromorphic_kernels", "sparsity_kernels", "vq_kernels")))
