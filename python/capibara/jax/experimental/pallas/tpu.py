"""jax.experimental.pallas.tpu: functions for TPU kernels that can be interpreted; copies and semaphores are missing."""
import dataclasses
import enum
from typing import Any

from capibara._modules import explain_missing
from capibara._types import ShapeDtypeStruct
from capibara.jax import numpy as jnp
from capibara.jax.experimental.pallas._blocks import CompilerParams, GridSpec  # noqa: F401
from capibara.jax.experimental.pallas._kernels import load, store  # noqa: F401


class MemorySpace(enum.Enum):
    """A TPU memory space; called with a shape and a dtype it makes scratch memory. The interpreter has only one memory."""

    ANY = "any"
    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    HBM = "hbm"
    SEMAPHORE = "semaphore_mem"

    def __call__(self, shape, dtype):
        return ShapeDtypeStruct(shape, dtype)


VMEM, VMEM_SHARED, SMEM, CMEM, HBM, SEMAPHORE = (
    MemorySpace.VMEM, MemorySpace.VMEM_SHARED, MemorySpace.SMEM, MemorySpace.CMEM, MemorySpace.HBM, MemorySpace.SEMAPHORE)


class GridDimensionSemantics(enum.Enum):
    """Whether the steps along a grid dimension may run in any order; here they run sequentially."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL, CORE_PARALLEL = GridDimensionSemantics.PARALLEL, GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL, ARBITRARY = GridDimensionSemantics.SUBCORE_PARALLEL, GridDimensionSemantics.ARBITRARY


@dataclasses.dataclass
class PrefetchScalarGridSpec(GridSpec):
    """A grid whose index maps and kernel take the first arguments as a whole."""

    num_scalar_prefetch: int = 0

    def __init__(self, num_scalar_prefetch: int, grid: Any = (), in_specs: Any = None, out_specs: Any = None, scratch_shapes: Any = ()):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


def roll(x, shift, axis, *, stride=None, stride_axis=None):
    """Rotates the elements along an axis, moving the last ones to the front."""
    if stride is not None or stride_axis is not None:
        raise NotImplementedError(f"pallas.tpu.roll: stride={stride} and stride_axis={stride_axis}; only whole arrays are moved")
    return jnp.roll(x, shift, axis)


explain_missing(__name__)
