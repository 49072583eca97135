"""jax.experimental.pallas.ops.tpu.splash_attention: attention masks; the kernel only compiles for TPUs."""
from capibara.jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel import (  # noqa: F401
    BlockSizes,
    make_splash_mha,
    make_splash_mha_single_device,
    make_splash_mqa,
    make_splash_mqa_single_device,
)
from capibara.jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask import (  # noqa: F401
    CausalMask,
    FullMask,
    LocalMask,
    Mask,
    MultiHeadMask,
    NumpyMask,
    make_causal_mask,
    make_local_attention_mask,
)
