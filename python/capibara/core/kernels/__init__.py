"""The fused kernels as methods of one object, with their time and memory measured."""
from capibara.core.kernels.tpu_v4_wrappers import TPUv4Kernels

__all__ = ["TPUv4Kernels"]
