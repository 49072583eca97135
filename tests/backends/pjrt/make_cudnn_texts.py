"""Records jax's own texts of cuDNN attention, one file for each, which the tests compare with ours.

    JAX_PLATFORMS=cpu build/venv/bin/python tests/backends/pjrt/make_cudnn_texts.py [FOLDER]     (default: tests/data/cudnn.tar.xz)

Lowering for CUDA needs no GPU: jax's queries for the versions of cuDNN and of the device are answered here as on an H200.
"""
import pathlib
import sys

import jax
import jax._src.cudnn.fused_attention_stablehlo as cudnn
import jax.numpy as jnp

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "data"))

import recordings  # noqa: E402


def attention(**options):
    def function(q, k, v, *bias):
        return jax.nn.dot_product_attention(q, k, v, *bias, implementation="cudnn", **options)
    return function


def forward_and_gradient(q, k, v, dy):
    y, pull = jax.vjp(attention(is_causal=True), q, k, v)
    return y, *pull(dy)


def with_lengths(q, k, v, lengths):
    return attention(query_seq_lengths=lengths, key_value_seq_lengths=lengths)(q, k, v)


def main():
    cudnn.check_cudnn_version = lambda: 91000
    cudnn.check_compute_capability = lambda capability: True
    q, few = (jax.ShapeDtypeStruct((2, 1024, heads, 128), jnp.bfloat16) for heads in (8, 2))
    bias, lengths = jax.ShapeDtypeStruct((1, 8, 1024, 1024), jnp.bfloat16), jax.ShapeDtypeStruct((2,), jnp.int32)
    programs = {
        "fwd": (attention(is_causal=True), q, q, q),
        "gqa_causal": (attention(is_causal=True), q, few, few),
        "window": (attention(is_causal=True, local_window_size=(127, 0)), q, q, q),
        "bias": (attention(), q, q, q, bias),
        "grad": (forward_and_gradient, q, q, q, q),
        "seqlen": (with_lengths, q, q, q, lengths),
    }
    recordings.write(recordings.output("cudnn"), {
        f"{name}.mlir": jax.jit(function).trace(*types).lower(lowering_platforms=("cuda",)).as_text()
        for name, (function, *types) in programs.items()})


if __name__ == "__main__":
    main()
