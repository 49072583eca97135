"""The fused kernels as methods of one object that measures their time and memory."""
from capibara.core.kernels.tpu_v4_wrappers import TPUv4Kernels

__all__ = ["TPUv4Kernels"]
