"""The problems that TPUv4Kernels.benchmark_kernels times: {name: (shapes in words, kernels -> call)}."""
from capibara import jax
from capibara.jax import numpy as jnp


def _draw(number, *shape):
    return jax.random.normal(jax.random.key(number), shape, jnp.float32)


def _flash_attention(own):
    q, k, v = (_draw(i, 1, 12, 1024, 64) for i in range(3))
    return lambda: own.flash_attention(q, k, v, causal=True)


def _sparse_attention(own):
    q, k, v = (_draw(i, 1, 12, 1024, 64) for i in range(3))
    return lambda: own.sparse_attention(q, k, v)


def _matmul(method):
    def make(own):
        a, b = _draw(0, 1024, 1024), _draw(1, 1024, 1024)
        return lambda: getattr(own, method)(a, b)
    return make


def _einsum(own):
    a, b = _draw(0, 2, 12, 512, 64), _draw(1, 2, 12, 512, 64)
    return lambda: own.einsum_optimize("bhnd,bhkd->bhnk", [a, b], memory_efficient=True)


def _batch(own):
    inputs, weight, bias = [_draw(i, 64, 768) for i in range(16)], jnp.ones(768), jnp.zeros(768)
    return lambda: own.batch_operations("layer_norm", inputs, {"weight": weight, "bias": bias})


def _layer_norm(own):
    x, weight, bias = _draw(0, 4096, 1024), jnp.ones(1024), jnp.zeros(1024)
    return lambda: own.fast_layer_norm(x, weight, bias)


def _gelu_dropout(own):
    x = _draw(0, 2048, 4096)
    return lambda: own.fused_gelu_dropout(x, 0.1)


def _moe(own):
    logits = _draw(0, 8192, 32)
    return lambda: own.moe_routing_kernel(logits, 32, 4)


def _mamba(own):
    inputs, a = _draw(0, 1, 1024, 512), -jnp.exp(_draw(1, 512, 16))
    b, c = _draw(2, 1, 1024, 16), _draw(3, 1, 1024, 16)
    return lambda: own.mamba_ssm_kernel(inputs, a, b, c)


def _vq(own):
    inputs, codebook = _draw(0, 16384, 64), _draw(1, 1024, 64)
    return lambda: own.vq_encode(inputs, codebook)


def _spiking(own):
    inputs = _draw(0, 100, 65536)
    return lambda: own.spiking_neuron(inputs)


PROBLEMS = {
    "flash_attention": ("batch 1, 12 heads, length 1024, head size 64, causal", _flash_attention),
    "sparse_attention": ("batch 1, 12 heads, length 1024, head size 64, blocks of 64", _sparse_attention),
    "optimized_matmul": ("1024 x 1024 x 1024", _matmul("optimized_matmul")),
    "adaptive_matmul": ("1024 x 1024 x 1024", _matmul("adaptive_matmul")),
    "einsum_optimize": ("bhnd,bhkd->bhnk, b 2, h 12, n and k 512, d 64", _einsum),
    "batch_operations": ("layer_norm of 16 arrays of 64 x 768", _batch),
    "fast_layer_norm": ("4096 rows of 1024", _layer_norm),
    "fused_gelu_dropout": ("2048 x 4096, rate 0.1", _gelu_dropout),
    "moe_routing_kernel": ("8192 tokens, 32 experts, top 4", _moe),
    "mamba_ssm_kernel": ("batch 1, length 1024, 512 channels, 16 states", _mamba),
    "vq_encode": ("16384 vectors of 64, 1024 codes", _vq),
    "spiking_neuron": ("100 steps of 65536 neurons", _spiking),
}
