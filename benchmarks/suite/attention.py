"""Attention, dense and block-sparse: capibara's fused kernels against jax's compiled programs and PyTorch's fused attention."""

import ml_dtypes
import numpy

from .processes import forget_peak, memory
from .row import ProcessRow, Row

HEADS, SIZE = 12, 64


def inputs_of(length, dtype=numpy.float32):
    return lambda random: tuple(random.standard_normal((1, HEADS, length, SIZE)).astype(dtype) for _ in range(3))


def kernels(jax):
    """capibara's fused operations, if `jax` is capibara's."""
    if not jax.__name__.startswith("capibara"):
        return None
    from capibara import kernels
    return kernels


def plain(jax, mask, rate=0.0):
    """Softmax attention as jax programs write it; the layout needs no transposes."""
    jnp = jax.numpy

    def attend(q, k, v):
        logits = jnp.einsum("bhnd,bhmd->bhnm", q, k, preferred_element_type=jnp.promote_types(q.dtype, jnp.float32)) * SIZE**-0.5
        shares = jax.nn.softmax(jnp.where(mask(q.shape[2]), logits, -jnp.inf), axis=-1)
        if rate:
            kept = jax.random.bernoulli(jax.random.key(0), 1 - rate, shares.shape)
            shares = jnp.where(kept, shares / (1 - rate), 0)
        return jnp.einsum("bhnm,bhmd->bhnd", shares.astype(q.dtype), v)
    return attend


def causal_mask(length):
    return numpy.tril(numpy.ones((length, length), bool))


def attention(rate=0.0):
    def program(jax):
        fused = kernels(jax)
        if not fused:
            return plain(jax, causal_mask, rate)
        key = jax.random.key(0) if rate else None
        return lambda q, k, v: fused.flash_attention(q, k, v, causal=True, dropout_rate=rate, dropout_key=key)
    return program


def torch_attention(rate=0.0):
    def program(torch):
        attend = torch.nn.functional.scaled_dot_product_attention
        return lambda q, k, v: attend(q, k, v, is_causal=True, dropout_p=rate)
    return program


# --- block-sparse --------------------------------------------------------------------------------------------------------

BLOCK, LENGTH = 64, 4096


def quarter(length):
    """A quarter of the blocks, at least one in each row."""
    count = length // BLOCK
    chosen = numpy.random.RandomState(1).rand(count, count) < 0.25
    return chosen | numpy.eye(count, dtype=bool)


def quarter_mask(length):
    return numpy.repeat(numpy.repeat(quarter(length), BLOCK, 0), BLOCK, 1)


def sparse(jax):
    fused = kernels(jax)
    if not fused:
        return plain(jax, quarter_mask)
    return lambda q, k, v: fused.sparse_attention(q, k, v, quarter(q.shape[2]), BLOCK)


def torch_sparse(torch):
    attend, mask = torch.nn.functional.scaled_dot_product_attention, torch.from_numpy(quarter_mask(LENGTH))
    return lambda q, k, v: attend(q, k, v, attn_mask=mask)


# --- derivatives ---------------------------------------------------------------------------------------------------------


def gradient(program):
    def make(jax):
        attend = program(jax)
        return jax.grad(lambda q, k, v: (attend(q, k, v) * v).sum(), (0, 1, 2))
    return make


def torch_gradient(program):
    def make(torch):
        attend = program(torch)

        def run(q, k, v):
            with torch.enable_grad():
                leaves = [x.detach().requires_grad_() for x in (q, k, v)]
                return torch.autograd.grad((attend(*leaves) * leaves[2]).sum(), leaves)
        return run
    return make


def operations(length, share, products=4):
    return products * HEADS * length**2 * SIZE * share


# --- memory --------------------------------------------------------------------------------------------------------------


def attention_memory(library, jax):
    """Peak memory of the gradient above the operands, measured after a call with other sizes has loaded the code."""
    arrays = [jax.numpy.asarray(x) for x in inputs_of(4096)(numpy.random.default_rng(7))]
    small = [x[:, :, :128] for x in arrays]
    function = jax.jit(gradient(attention())(jax))
    jax.block_until_ready(function(*small))
    before = memory("VmRSS")
    forget_peak()
    jax.block_until_ready(function(*arrays))
    return memory("VmHWM") - before


def rows():
    half = dict(tolerance=1e-5)
    return [
        Row("attention causal S1024 f32", "B1 H12 S1024 d64", inputs_of(1024), attention(), torch=torch_attention(),
            limit=("f32", operations(1024, 0.5)), least={"jax": 4, "torch": 1.2}, **half),
        Row("attention causal S1024 f32 gradient", "B1 H12 S1024 d64, forwards and backwards", inputs_of(1024), gradient(attention()),
            torch=torch_gradient(torch_attention()), limit=("f32", operations(1024, 0.5, 14)), least={"torch": 1.2}, **half),
        Row("attention causal S1024 bf16", "B1 H12 S1024 d64 bf16", inputs_of(1024, ml_dtypes.bfloat16), attention(),
            torch=torch_attention(), limit=("bf16", operations(1024, 0.5)), least={"jax": 4, "torch": 1.2}, tolerance=2e-2),
        Row("attention causal dropout S1024 f32", "B1 H12 S1024 d64, dropout 0.1", inputs_of(1024), attention(0.1),
            torch=torch_attention(0.1), limit=("f32", operations(1024, 0.5)), least={"jax": 4, "torch": 1.2}, compared=False),
        Row("attention causal S4096 f32", "B1 H12 S4096 d64", inputs_of(4096), attention(), torch=torch_attention(),
            limit=("f32", operations(4096, 0.5)), least={"jax": 4, "torch": 1.2}, **half),
        Row("block-sparse attention S4096 f32", "B1 H12 S4096 d64, a quarter of the blocks of 64", inputs_of(LENGTH), sparse,
            torch=torch_sparse, limit=("f32", operations(LENGTH, float(quarter(LENGTH).mean()))), least={"jax": 12, "torch": 4}, **half),
        Row("block-sparse attention S4096 f32 gradient", "a quarter of the blocks of 64, forwards and backwards", inputs_of(LENGTH),
            gradient(sparse), torch=torch_gradient(torch_sparse),
            limit=("f32", operations(LENGTH, float(quarter(LENGTH).mean()), 14)), **half),
        ProcessRow("memory of attention S4096 gradient", "B1 H12 S4096 d64 f32, peak above the operands", attention_memory,
                   ("capibara", "jax"), unit="MB", least={"jax": 20}),
    ]
