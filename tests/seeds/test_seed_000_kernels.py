"""Blocks 8 and 10 of seed 000, the fused kernels of capibara.jax.tpu_v4, each as a test; README.md says which block is where."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = (os.environ.get("CAPIBARA_PYTHON_PATH")
           or str(Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release")) / "python"))
sys.path.insert(0, MODULES)

import capibara.jax as jax  # noqa: E402
import capibara.jax.numpy as jnp  # noqa: E402
from capibara import kernels  # noqa: E402


def equal(array, values, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(array), np.asarray(values), rtol=tolerance, atol=tolerance)


def needs(name):
    return pytest.mark.skipif(not hasattr(kernels, name), reason=f"capibara.kernels has no {name}")


# --- block 8: matmuls, codes, attention ------------------------------------------------------------------------------


def test_adaptive_kernels():
    from capibara.jax.tpu_v4 import adaptive_kernels

    a, b = jax.random.normal(jax.random.key(0), (32, 48)), jax.random.normal(jax.random.key(1), (48, 16))
    output = adaptive_kernels.adaptive_matmul(
        a, b,
        precision="highest",  # highest, high, default
        tpu_strategy="collective"
    )
    equal(output, np.asarray(a, "float64") @ np.asarray(b, "float64"))
    for precision in ("high", "default"):
        equal(adaptive_kernels.adaptive_matmul(a, b, precision=precision), output)
    with pytest.raises(ValueError, match="'auto', 'local', 'split_k' or 'collective'"):
        adaptive_kernels.adaptive_matmul(a, b, tpu_strategy="rings")


@needs("vq_encode")
def test_vq_kernels():
    from capibara.jax.tpu_v4 import vq_kernels

    inputs, codebook = jax.random.normal(jax.random.key(0), (50, 8)), jax.random.normal(jax.random.key(1), (16, 8))
    codes = vq_kernels.vq_encode(
        inputs,
        codebook,
        distance_metric="euclidean"
    )
    distances = ((np.asarray(inputs)[:, None] - np.asarray(codebook)[None]) ** 2).sum(-1)
    assert np.array_equal(np.asarray(codes), distances.argmin(1))
    equal(vq_kernels.vq_decode(codes, codebook), np.asarray(codebook)[np.asarray(codes)])


@needs("sparse_attention")
def test_sparsity_kernels():
    from capibara.jax.tpu_v4 import sparsity_kernels

    q, k, v = (jax.random.normal(jax.random.key(i), (1, 2, 256, 16)) for i in range(3))
    sparse_out = sparsity_kernels.sparse_attention(
        q, k, v,
        sparsity_pattern="block_sparse",
        block_size=64
    )
    assert sparse_out.shape == q.shape
    # Every row is an average of values; with all blocks it is attention.
    equal(sparsity_kernels.sparse_attention(q, k, jnp.ones_like(v), sparsity_pattern="block_sparse", block_size=64), np.ones(q.shape))
    every = sparsity_kernels.sparse_attention(q, k, v, sparsity_pattern=np.ones((4, 4), bool), block_size=64)
    logits = np.einsum("bhqd,bhkd->bhqk", np.asarray(q), np.asarray(k)) / 4
    equal(every, np.asarray(jax.nn.softmax(logits)) @ np.asarray(v), 1e-4)


# --- block 10: recurrences -------------------------------------------------------------------------------------------


@needs("spiking_neuron")
def test_spiking_neuron():
    from capibara.jax.tpu_v4 import neuromorphic_kernels

    inputs = jax.random.uniform(jax.random.key(0), (20, 5))
    spike_output = neuromorphic_kernels.spiking_neuron(
        inputs,
        threshold=0.5,
        leak_rate=0.1
    )
    potential, spikes = np.zeros(5, "float32"), []
    for step in np.asarray(inputs):
        potential = potential - np.float32(0.1) * potential + step
        spikes.append((potential >= 0.5).astype("float32"))
        potential = potential * (1 - spikes[-1])
    assert np.array_equal(np.asarray(spike_output), np.array(spikes))


@needs("mamba_ssm_kernel")
def test_mamba_ssm_kernel():
    from capibara.jax.tpu_v4 import neuromorphic_kernels

    inputs, A_matrix = jax.random.normal(jax.random.key(0), (2, 12, 6)), -jnp.exp(jax.random.normal(jax.random.key(1), (6, 4)))
    B_matrix, C_matrix = (jax.random.normal(jax.random.key(i), (2, 12, 4)) for i in (2, 3))
    mamba_output = neuromorphic_kernels.mamba_ssm_kernel(
        inputs,
        A_matrix, B_matrix, C_matrix,
        use_associative_scan=True  # TPU-optimized
    )
    state, want = np.zeros((2, 6, 4)), []
    x, A, B, C = (np.asarray(value, "float64") for value in (inputs, A_matrix, B_matrix, C_matrix))
    for t in range(12):
        state = np.exp(A) * state + B[:, t, None, :] * x[:, t, :, None]
        want.append((state * C[:, t, None, :]).sum(-1))
    equal(mamba_output, np.stack(want, 1), 1e-4)
    equal(mamba_output, neuromorphic_kernels.mamba_ssm_kernel(inputs, A_matrix, B_matrix, C_matrix, use_associative_scan=False), 1e-4)


def test_kernel_modules_are_reachable_without_an_import():
    script = """
import capibara.jax as jax
print(jax.tpu_v4.adaptive_kernels.matmul.__module__, *(getattr(jax.tpu_v4, name).__name__.split(".")[-1]
      for name in ("vq_kernels", "sparsity_kernels", "neuromorphic_kernels")))
print(jax.nn.activations.swiglu is jax.nn.swiglu, jax.nn.activations.gelu is jax.nn.gelu)
from capibara.jax.nn.activations import contextual_relu
try:
    jax.tpu_v4.adaptive_kernel
except AttributeError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": MODULES}
    text = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment).stdout
    assert text.splitlines()[0].split()[1:] == ["vq_kernels", "sparsity_kernels", "neuromorphic_kernels"]
    assert text.splitlines()[1] == "True True"
    assert "Did you mean: 'adaptive_kernels'?" in text
