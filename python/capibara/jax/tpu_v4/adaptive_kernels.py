"""Matmuls and contractions by strategy, precision and memory limit."""
from capibara._modules import explain_missing as _explain_missing
from capibara.kernels import adaptive_matmul, einsum_optimize, optimized_matmul

__all__ = ["adaptive_matmul", "einsum_optimize", "matmul", "optimized_matmul"]

matmul = adaptive_matmul

_explain_missing(__name__)
