"""The fused kernels as rows of benchmarks/gpu/kernels.py: what capibara, jax and PyTorch run, its limit, and the required figures."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import attention_rows  # noqa: E402
import sharding_rows  # noqa: E402
import torch_rows  # noqa: E402
from kernel_row import Row, is_ours, kernels, normal, with_gradient  # noqa: E402
from suite.recurrences import ssd_by_einsum  # noqa: E402
from suite.spiking import neurons  # noqa: E402


# --- rows of matrices ----------------------------------------------------------------------------------------------------


def layer_norm(jax):
    if is_ours(jax):
        return kernels().layer_norm
    jnp = jax.numpy

    def norm(x, scale, bias):
        wide = x.astype(jnp.float32)
        centered = wide - wide.mean(-1, keepdims=True)
        normal = centered * jax.lax.rsqrt((centered * centered).mean(-1, keepdims=True) + 1e-5)
        return (normal * scale.astype(jnp.float32) + bias.astype(jnp.float32)).astype(x.dtype)
    return norm


def rms_norm(jax):
    if is_ours(jax):
        return kernels().rms_norm
    jnp = jax.numpy

    def norm(x, scale):
        wide = x.astype(jnp.float32)
        return (wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-6) * scale.astype(jnp.float32)).astype(x.dtype)
    return norm


def softmax(jax):
    return kernels().softmax if is_ours(jax) else lambda x: jax.nn.softmax(x.astype("float32"), -1).astype(x.dtype)


def row_pair(name, function, columns, rows, shape_of_rest, floors=(), dtype="bfloat16"):
    """A function of rows, alone and with its gradient."""
    size = rows * columns * (4 if dtype == "float32" else 2)

    def arguments(jax):
        rest = [normal(jax, 2 + i, columns, dtype=dtype) for i in range(shape_of_rest)]
        return [normal(jax, 1, rows, columns, dtype=dtype), *rest]

    def gradient(jax):
        own = arguments(jax)
        return with_gradient(jax, function(jax), len(own)), [*own, normal(jax, 9, rows, columns, dtype=dtype)]
    what, peer = f"{name} {rows}x{columns} {'f32' if dtype == 'float32' else 'bf16'}", (name, rows, columns, dtype)
    return [Row(what, lambda jax: (function(jax), arguments(jax)), "rows", bytes=2 * size,
                torch=lambda torch: torch_rows.row_call(torch, *peer, False)),
            Row(f"{what} with gradient", gradient, "rows", bytes=5 * size, floors=floors,
                torch=lambda torch: torch_rows.row_call(torch, *peer, True))]


def cross_entropy(jax):
    if is_ours(jax):
        return kernels().cross_entropy
    jnp = jax.numpy

    def loss(logits, labels):
        logs = jax.nn.log_softmax(logits.astype(jnp.float32))
        return -jnp.take_along_axis(logs, labels[:, None], 1)[:, 0]
    return loss


def cross_entropy_rows(rows, classes):
    size = 2 * rows * classes

    def arguments(jax):
        return [normal(jax, 1, rows, classes), jax.random.randint(jax.random.key(2), (rows,), 0, classes)]

    def gradient(jax):
        return with_gradient(jax, cross_entropy(jax), 1), [*arguments(jax), normal(jax, 3, rows, dtype="float32")]
    what, peer = f"cross_entropy {rows}x{classes} bf16", ("cross_entropy", rows, classes, "bfloat16")
    return [Row(what, lambda jax: (cross_entropy(jax), arguments(jax)), "rows", bytes=size,
                torch=lambda torch: torch_rows.row_call(torch, *peer, False)),
            Row(f"{what} with gradient", gradient, "rows", bytes=3 * size, torch=lambda torch: torch_rows.row_call(torch, *peer, True))]


def gelu_dropout(jax):
    if is_ours(jax):
        return lambda x, words: kernels().fused_gelu_dropout(x, 0.1, jax.random.wrap_key_data(words))

    def run(x, words):
        kept = jax.random.bernoulli(jax.random.wrap_key_data(words), 0.9, x.shape)
        return jax.numpy.where(kept, jax.nn.gelu(x) / 0.9, 0).astype(x.dtype)
    return run


def gelu_rows(rows, columns):
    size = 2 * rows * columns

    def arguments(jax):
        return [normal(jax, 1, rows, columns), jax.random.key_data(jax.random.key(2))]

    def gradient(jax):
        return with_gradient(jax, gelu_dropout(jax), 1), [*arguments(jax), normal(jax, 3, rows, columns)]
    what, peer = f"gelu_dropout {rows}x{columns} bf16", ("gelu_dropout", rows, columns, "bfloat16")
    return [Row(what, lambda jax: (gelu_dropout(jax), arguments(jax)), "rows", bytes=2 * size, compared=False,
                torch=lambda torch: torch_rows.row_call(torch, *peer, False)),
            Row(f"{what} with gradient", gradient, "rows", bytes=5 * size, compared=False,
                torch=lambda torch: torch_rows.row_call(torch, *peer, True))]


def adam(jax):
    jnp = jax.numpy
    if is_ours(jax):
        def fused(state, gradients):
            p, m, v, step = state
            return (*kernels().adam_update(p, gradients, m, v, step), step + 1)
        return fused

    def run(state, gradients):
        p, m, v, step = state
        m = [0.9 * a + (1 - 0.9) * g for a, g in zip(m, gradients, strict=True)]
        v = [0.999 * a + (1 - 0.999) * g * g for a, g in zip(v, gradients, strict=True)]
        first, second = 1 - 0.9**step, 1 - 0.999**step
        p = [a - 1e-3 * (b / first) / (jnp.sqrt(c / second) + 1e-8) for a, b, c in zip(p, m, v, strict=True)]
        return p, m, v, step + 1
    return run


def adam_row(tensors, rows, columns):
    def make(jax):
        scaled = jax.jit(lambda x, scale: scale * x)  # one program for all, rather than one for each seed
        draw = lambda seed: [scaled(normal(jax, seed, rows, columns, dtype="float32"), jax.numpy.float32(1 + i)) for i in range(tensors)]
        zeros = lambda: [jax.numpy.zeros((rows, columns)) for _ in range(tensors)]
        return adam(jax), [(draw(0), zeros(), zeros(), jax.numpy.float32(1)), draw(1000)]
    return Row(f"adam_update {tensors} x {rows}x{columns} f32", make, "Adam", bytes=28 * tensors * rows * columns, carried=True,
               torch=lambda torch: torch_rows.adam_call(torch, tensors, rows, columns))


# --- codes, experts, recurrences -------------------------------------------------------------------------------------------


def encode(jax):
    if is_ours(jax):
        return kernels().vq_encode
    jnp = jax.numpy

    def run(x, codebook):
        wide = codebook.astype("float32")
        products = jnp.dot(x, codebook.T, preferred_element_type=jnp.float32)
        return jnp.argmax(products - 0.5 * (wide * wide).sum(-1), -1).astype(jnp.int32)
    return run


def code_row(count, codes, dim, *floors):
    def make(jax):
        return encode(jax), [normal(jax, 1, count, dim), normal(jax, 2, codes, dim)]
    return Row(f"vq_encode {count} vectors of {dim}, {codes} codes, bf16", make, "VQ encode", operations=2 * count * codes * dim,
               floors=floors, torch=lambda torch: torch_rows.code_call(torch, count, codes, dim))


def routing(jax, experts, choices):
    if is_ours(jax):
        return lambda logits: tuple(kernels().moe_routing_kernel(logits, experts, choices))
    jnp = jax.numpy

    def run(logits):
        values, chosen = jax.lax.top_k(logits, choices)
        sizes = jnp.bincount(chosen.reshape(-1), length=experts).astype(jnp.int32)
        loss = experts * (sizes / chosen.size * jax.nn.softmax(logits).mean(0)).sum()
        order = jnp.argsort(chosen.T.reshape(-1), stable=True)
        order = order % logits.shape[0] * choices + order // logits.shape[0]
        return jax.nn.softmax(values), chosen, order, jnp.argsort(order), sizes, sizes, loss
    return run


def routing_row(tokens, experts, choices, units):
    """Many in one program, each depending on the loss before it: a single call would measure how fast programs start."""
    def make(jax):
        one = routing(jax, experts, choices)

        def chain(logits):
            for _ in range(units):
                results = one(logits)
                logits = logits + 1e-30 * results[-1]
            return results
        return chain, [normal(jax, 1, tokens, experts, dtype="float32")]
    return Row(f"moe_routing_kernel {tokens} tokens, {choices} of {experts}, f32", make, "MoE routing", units=units, floors=(("us", 25),),
               torch=lambda torch: torch_rows.routing_call(torch, tokens, experts, choices, units))


def feed_forward(jax, experts, choices):
    if is_ours(jax):
        return lambda tokens, gate, up, down: kernels().moe_feed_forward(tokens, gate, up, down, choices).output
    jnp = jax.numpy

    def run(tokens, gate, up, down):
        logits = jnp.dot(tokens, gate, preferred_element_type=jnp.float32)
        weights, _, order, inverse, sizes, _, _ = routing(jax, experts, choices)(logits)
        hidden = jax.nn.silu(jax.lax.ragged_dot(tokens[order // choices], up, sizes))
        rows = jax.lax.ragged_dot(hidden, down, sizes)[inverse].reshape(*weights.shape, -1)
        return (rows * weights[..., None]).sum(1).astype(tokens.dtype)
    return run


def expert_rows(tokens, features, hidden, experts, choices):
    operations = 4 * tokens * choices * features * hidden

    def arguments(jax):
        draw = lambda seed, *shape: normal(jax, seed, *shape, scale=shape[-2] ** -0.5)
        return [normal(jax, 1, tokens, features), draw(2, features, experts), draw(3, experts, features, hidden),
                draw(4, experts, hidden, features)]

    def gradient(jax):
        run = feed_forward(jax, experts, choices)
        ordered = lambda tokens, up, down, gate: run(tokens, gate, up, down)
        t, gate, up, down = arguments(jax)
        return with_gradient(jax, ordered, 3), [t, up, down, gate, normal(jax, 5, tokens, features)]
    what = f"moe_feed_forward {tokens}x{features}, {hidden} hidden, {choices} of {experts}, bf16"
    peer, floors = (tokens, features, hidden, experts, choices), ((("jax", 8), ("limit", 0.6)), ("memory", 0.2))
    return [Row(what, lambda jax: (feed_forward(jax, experts, choices), arguments(jax)), "MoE layer", operations=operations, floors=floors,
                torch=lambda torch: torch_rows.expert_call(torch, *peer, False)),
            Row(f"{what} with gradient", gradient, "MoE layer", operations=3 * operations, floors=floors,
                torch=lambda torch: torch_rows.expert_call(torch, *peer, True))]


def scan(jax):
    if is_ours(jax):
        return lambda u, delta, A, B, C, z: kernels().selective_scan(u, delta, A, B, C, z=z, delta_softplus=True)
    jnp = jax.numpy

    def run(u, delta, A, B, C, z):
        step, wide = jax.nn.softplus(delta.astype(jnp.float32)), lambda x: x.astype(jnp.float32)
        decay, driven = jnp.exp(step[..., None] * A), (step * wide(u))[..., None] * wide(B)[:, :, None, :]
        combine = lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1])
        h = jax.lax.associative_scan(combine, (decay, driven), axis=1)[1]
        return ((h * wide(C)[:, :, None, :]).sum(-1) * jax.nn.silu(wide(z))).astype(u.dtype)
    return run


def scan_row(batch, length, dim, state, gradient):
    def make(jax):
        draw = lambda seed, last: normal(jax, seed, batch, length, last)
        A = -jax.numpy.exp(normal(jax, 7, dim, state, dtype="float32"))
        arguments = [draw(1, dim), draw(2, dim), A, draw(3, state), draw(4, state), draw(5, dim)]
        return (with_gradient(jax, scan(jax), 6), [*arguments, draw(6, dim)]) if gradient else (scan(jax), arguments)
    arrays = 11 if gradient else 4
    return Row(f"selective_scan {batch}x{length}x{dim}, {state} states, bf16{' with gradient' if gradient else ''}", make, "Mamba",
               bytes=2 * arrays * batch * length * dim, floors=(("jax", 10), ("memory", 0.1)))


def ssd_row(batch, length, heads, dim, state, gradient):
    def make(jax):
        run = kernels().ssd if is_ours(jax) else ssd_by_einsum(jax)
        step = jax.nn.softplus(normal(jax, 2, batch, length, heads, dtype="float32") - 2).astype("bfloat16")
        arguments = [normal(jax, 1, batch, length, heads, dim), step, -jax.numpy.exp(normal(jax, 3, heads, dtype="float32")),
                     normal(jax, 4, batch, length, 1, state), normal(jax, 5, batch, length, 1, state)]
        if not gradient:
            return run, arguments
        return with_gradient(jax, run, 5), [*arguments, normal(jax, 6, batch, length, heads, dim)]
    name = f"ssd {batch}x{length}, {heads} heads of {dim}, {state} states, bf16"
    return Row(name + (" with gradient" if gradient else ""), make, "Mamba",
               bytes=(5 if gradient else 2) * 2 * batch * length * heads * dim)


def spiking_row(steps, count):
    def make(jax):
        x = 0.5 * jax.random.uniform(jax.random.key(1), (steps, count))
        return with_gradient(jax, neurons(jax), 1), [x, normal(jax, 2, steps, count, dtype="float32")]
    return Row(f"spiking_neuron {steps} steps of {count} f32 with gradient", make, "spiking neurons", bytes=20 * steps * count)


def small_rows():
    return [*row_pair("layer_norm", layer_norm, 256, 8, 2), *row_pair("rms_norm", rms_norm, 256, 8, 1),
            *row_pair("softmax", softmax, 100, 8, 0, dtype="float32"), *cross_entropy_rows(8, 100), *gelu_rows(8, 100), adam_row(3, 8, 8),
            code_row(300, 70, 64), routing_row(128, 8, 2, 2), *expert_rows(64, 32, 16, 8, 2), scan_row(2, 96, 48, 16, False),
            scan_row(2, 96, 48, 16, True), ssd_row(1, 128, 2, 16, 16, True), spiking_row(16, 64), *attention_rows.small_rows(),
            *sharding_rows.small_rows()]


def rows(small=False):
    """Quick rows first, so that a short run has most of them."""
    if small:
        return small_rows()
    share = (("backward", 0.8),)
    return [routing_row(16384, 32, 4, 8), code_row(262144, 1024, 64, ("jax", 4)), code_row(262144, 1024, 128, ("jax", 3)),
            *row_pair("layer_norm", layer_norm, 8192, 16384, 2, share), *row_pair("rms_norm", rms_norm, 8192, 16384, 1, share),
            *attention_rows.quick_rows(), *expert_rows(16384, 4096, 1024, 32, 4), scan_row(8, 4096, 2048, 16, False),
            scan_row(8, 4096, 2048, 16, True), *attention_rows.own_rows(), *attention_rows.block_rows(),
            *row_pair("layer_norm", layer_norm, 4096, 65536, 2, share), *row_pair("softmax", softmax, 8192, 16384, 0, share),
            code_row(262144, 1024, 512), spiking_row(128, 1 << 20), *gelu_rows(8192, 32768), *cross_entropy_rows(8192, 50257),
            adam_row(48, 1024, 4096), *row_pair("softmax", softmax, 131072, 1024, 0, dtype="float32"), code_row(262144, 1024, 256),
            ssd_row(8, 4096, 32, 64, 128, False), ssd_row(8, 4096, 32, 64, 128, True), *sharding_rows.rows()]
