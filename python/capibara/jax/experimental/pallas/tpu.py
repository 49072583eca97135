"""jax.experimental.pallas.tpu: what kernels for TPUs are written with, as far as it is interpreted; copies and semaphores are not."""
import dataclasses
import enum
from typing import Any

from capibara._modules import explain_missing
from capibara._types import ShapeDtypeStruct
from capibara.jax import numpy as jnp
from capibara.jax.experimental.pallas._blocks import CompilerParams, GridSpec  # noqa: F401
from capibara.jax.experimental.pallas._kernels import load, store  # noqa: F401


class MemorySpace(enum.Enum):
    """A memory of a TPU; called with a shape and a dtype it is scratch memory. The interpreter has one memory."""

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
    """Whether the steps along a dimension of the grid may run in any order; here they run one after the other."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL, CORE_PARALLEL = GridDimensionSemantics.PARALLEL, GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL, ARBITRARY = GridDimensionSemantics.SUBCORE_PARALLEL, GridDimensionSemantics.ARBITRARY


@dataclasses.dataclass
class PrefetchScalarGridSpec(GridSpec):
    """A grid whose index maps and kernel see the first arguments whole."""

    num_scalar_prefetch: int = 0

    def __init__(self, num_scalar_prefetch: int, grid: Any = (), in_specs: Any = None, out_specs: Any = None, scratch_shapes: Any = ()):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


def roll(x, shift, axis, *, stride=None, stride_axis=None):
    """The elements moved along an axis, the last ones to the front."""
    if stride is not None or stride_axis is not None:
        raise NotImplementedError(f"pallas.tpu.roll: stride={stride} and stride_axis={stride_axis}; only whole arrays are moved")
    return jnp.roll(x, shift, axis)


explain_missing(__name__)
