"""Constructors of the TPU kernel, which raise: use jax.nn.dot_product_attention or capibara.kernels for attention."""
import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class BlockSizes:
    """The tiles of the kernel."""

    block_q: int
    block_kv: int
    block_kv_compute: int | None = None
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_kv_dkv_compute: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None
    use_fused_bwd_kernel: bool = False
    q_layout: Any = None
    k_layout: Any = None
    v_layout: Any = None


def _refuse(name):
    def make(*_, **__):
        raise NotImplementedError(f"{name}: the splash attention kernel of TPUs does not exist here; use jax.nn.dot_product_attention")
    make.__name__ = name
    return make


make_splash_mha = _refuse("make_splash_mha")
make_splash_mqa = _refuse("make_splash_mqa")
make_splash_mha_single_device = _refuse("make_splash_mha_single_device")
make_splash_mqa_single_device = _refuse("make_splash_mqa_single_device")
