"""Mixtures of experts on a GPU: checks our kernels against float64 and times them, or jax's forms of the same; one line of JSON each.

    JAX_PLATFORMS=cuda python3 benchmarks/gpu/experts.py capibara|jax [--small]
"""

import sys

import numpy

from timing import report, timed

LIBRARY, SMALL = sys.argv[1], "--small" in sys.argv
if LIBRARY == "capibara":
    import capibara.jax as jax
    from capibara import kernels
else:
    import jax
jnp = jax.numpy

TOKENS, FEATURES, HIDDEN, EXPERTS, CHOICES = (512, 64, 128, 8, 2) if SMALL else (16384, 4096, 1024, 32, 4)


def seconds(call, *arguments):
    return timed(jax, 10, lambda: call(*arguments))


def routing(logits):
    if LIBRARY == "capibara":
        return tuple(kernels.moe_routing_kernel(logits, EXPERTS, CHOICES))
    values, experts = jax.lax.top_k(logits, CHOICES)
    sizes = jnp.bincount(experts.reshape(-1), length=EXPERTS).astype(jnp.int32)
    loss = EXPERTS * (sizes / experts.size * jax.nn.softmax(logits).mean(0)).sum()
    order = jnp.argsort(experts.T.reshape(-1), stable=True)
    order = order % logits.shape[0] * CHOICES + order // logits.shape[0]
    return jax.nn.softmax(values), experts, order, jnp.argsort(order), sizes, sizes, loss


def layer(tokens, gate, up, down):
    if LIBRARY == "capibara":
        return kernels.moe_feed_forward(tokens, gate, up, down, CHOICES).output
    weights, _, order, inverse, sizes, _, _ = routing(jnp.dot(tokens, gate, preferred_element_type=jnp.float32))
    hidden = jax.nn.silu(jax.lax.ragged_dot(tokens[order // CHOICES], up, sizes))
    rows = jax.lax.ragged_dot(hidden, down, sizes)[inverse].reshape(*weights.shape, -1)
    return (rows * weights[..., None]).sum(1).astype(tokens.dtype)


def multiply(x, weights, sizes):
    return kernels.grouped_matmul(x, weights, sizes) if LIBRARY == "capibara" else jax.lax.ragged_dot(x, weights, sizes)


def check_products(random):
    """The largest difference from float64, as a share of the largest value: result, both gradients; ragged sizes, empty groups."""
    for dtype in ("float32", "bfloat16"):
        worst = 0.0
        for rows, inner, columns, groups in [(1, 8, 8, 1), (300, 72, 40, 5), (777, 256, 136, 40), (1000, 1024, 512, 3)]:
            sizes = random.multinomial(rows - rows // 5, random.dirichlet(numpy.full(groups, 0.5))).astype(numpy.int32)
            x, dy = (jnp.asarray(random.standard_normal((rows, n)).astype("float32")).astype(dtype) for n in (inner, columns))
            weights = jnp.asarray(random.standard_normal((groups, inner, columns)).astype("float32")).astype(dtype)
            y, pull = jax.vjp(lambda a, w: multiply(a, w, sizes), x, weights)
            got = [numpy.asarray(a, "float64") for a in (y, *pull(dy))]
            x, dy, weights = (numpy.asarray(a, "float64") for a in (x, dy, weights))
            want, row = [numpy.zeros_like(a) for a in got], 0
            for group, size in enumerate(sizes):
                part = slice(row, row + size)
                want[0][part] = x[part] @ weights[group]
                want[1][part] = dy[part] @ weights[group].T
                want[2][group] = x[part].T @ dy[part]
                row += size
            worst = max([worst] + [numpy.abs(a - b).max() / max(numpy.abs(b).max(), 1e-30) for a, b in zip(got, want, strict=True)])
        report(f"grouped_matmul_error_{dtype}", worst, "of the largest")


def check_routing(random):
    """The number of integers that differ from a stable sort by numpy, and the largest difference of weights and loss."""
    differing, worst = 0, 0.0
    for tokens in (1, 127, 5000):
        logits = random.standard_normal((tokens, EXPERTS)).astype("float32")
        weights, experts, order, inverse, sizes, _, loss = (numpy.asarray(a) for a in jax.jit(routing)(logits))
        chosen = numpy.argsort(-logits, 1, kind="stable")[:, :CHOICES]
        by_expert = numpy.argsort(chosen.T.reshape(-1), kind="stable")
        by_expert = by_expert % tokens * CHOICES + by_expert // tokens
        shares = numpy.exp(logits.astype("float64"))
        shares /= shares.sum(1, keepdims=True)
        own = numpy.take_along_axis(shares, chosen, 1)
        load = numpy.bincount(chosen.reshape(-1), minlength=EXPERTS)
        for got, want in ((experts, chosen), (order, by_expert), (inverse, numpy.argsort(by_expert)), (sizes, load)):
            differing += int((got != want).sum())
        expected = EXPERTS * (load / chosen.size * shares.mean(0)).sum()
        worst = max(worst, numpy.abs(weights - own / own.sum(1, keepdims=True)).max(), abs(float(loss) - expected))
    report("moe_routing_wrong_integers", differing, "")
    report("moe_routing_error", worst, "")


def main():
    random = numpy.random.default_rng(0)
    check_products(random)
    check_routing(random)
    logits = jnp.asarray(random.standard_normal((TOKENS, EXPERTS)).astype("float32"))
    report("moe_routing", seconds(jax.jit(routing), logits) * 1e6, "us")

    def weights(seed, *shape):
        return (jax.random.normal(jax.random.key(seed), shape) / shape[-2] ** 0.5).astype(jnp.bfloat16)
    arrays = (weights(0, TOKENS, FEATURES), weights(1, FEATURES, EXPERTS), weights(2, EXPERTS, FEATURES, HIDDEN),
              weights(3, EXPERTS, HIDDEN, FEATURES))
    operations = 4 * TOKENS * CHOICES * FEATURES * HIDDEN
    report("moe_layer", operations / seconds(jax.jit(layer), *arrays) * 1e-12, "TFLOP/s")
    gradient = jax.jit(jax.grad(lambda *a: layer(*a).astype(jnp.float32).sum(), (0, 2, 3)))
    report("moe_layer_with_gradient", 3 * operations / seconds(gradient, *arrays) * 1e-12, "TFLOP/s")
    size = 256 if SMALL else 8192
    report(f"matmul_{size}", 2 * size**3 / seconds(jax.jit(jnp.matmul), weights(4, size, size), weights(5, size, size)) * 1e-12, "TFLOP/s")


main()
