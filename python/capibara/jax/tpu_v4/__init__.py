"""Fused kernels by subject, which run on every device (on TPUs as the plain blockwise program), and settings for TPUs."""
from capibara._modules import explain_missing as _explain_missing

_explain_missing(__name__, later={
    **dict.fromkeys(("adaptive_kernels", "neuromorphic_kernels", "sparsity_kernels", "tpu_optimization", "vq_kernels")),
    "setup_tpu_v4": "capibara.jax.tpu_v4.tpu_optimization"})
