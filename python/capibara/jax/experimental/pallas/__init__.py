"""jax.experimental.pallas: kernels written with refs to blocks of arrays, interpreted as ordinary programs.

`pallas_call` runs the grid as a loop over blocks, whatever `interpret` says: nothing here compiles a kernel for an accelerator.
"""
from capibara._modules import explain_missing
from capibara.jax.experimental.pallas._blocks import (  # noqa: F401
    ANY,
    HOST,
    BlockSpec,
    Blocked,
    Buffered,
    CompilerParams,
    Element,
    GridSpec,
    MemorySpace,
    Squeezed,
    no_block_spec,
    squeezed,
)
from capibara.jax.experimental.pallas._calls import CostEstimate, num_programs, pallas_call, program_id  # noqa: F401
from capibara.jax.experimental.pallas._kernels import (  # noqa: F401
    Slice,
    align_to,
    broadcast_to,
    cdiv,
    debug_check,
    debug_print,
    ds,
    dslice,
    empty,
    empty_like,
    loop,
    multiple_of,
    next_power_of_2,
    reciprocal,
    run_scoped,
    strides_from_shape,
    when,
)

explain_missing(__name__, later={"tpu": None, "triton": None})
