"""The figures of accelerator.cpp for JAX: the same mathematics, sizes and timing method; one line of JSON each."""
import time

PROCESS_START = time.perf_counter()

import functools
import statistics
import sys

import timing
from timing import report


def timed(calls, call):
    import jax

    return timing.timed(jax, calls, call)


def first_result(small):
    import jax
    import numpy

    numpy.asarray(jax.jit(lambda x: x + 1)(numpy.float32([1, 2, 3])))
    report("first_result", time.perf_counter() - PROCESS_START, "s")


def matmul(small):
    import jax
    import jax.numpy as jnp

    for n in [256] if small else [4096, 8192]:
        f = jax.jit(jnp.matmul)
        a = jax.random.normal(jax.random.key(0), (n, n)).astype(jnp.bfloat16)
        report(f"matmul_bf16_{n}", 2 * n**3 / timed(3 if small else 20, lambda: f(a, a)) * 1e-12, "TFLOP/s")


def dispatch(small):
    import jax
    import jax.numpy as jnp

    f = jax.jit(lambda x: x + 1)
    x = jnp.ones(8)
    report("dispatch_sync", timed(1, lambda: f(x)) * 1e6, "us")
    rounds = 50 if small else 1000

    def alone(call):
        times = []
        jax.block_until_ready(call())
        for _ in range(rounds):
            start = time.perf_counter()
            jax.block_until_ready(call())
            times.append(time.perf_counter() - start)
        return statistics.median(times) * 1e6

    report("dispatch_sync_median", alone(lambda: f(x)), "us")
    report("dispatch_async", timed(rounds, lambda: f(x)) * 1e6, "us")
    many = jax.jit(lambda xs: [x + 1 for x in xs])
    xs = [jnp.ones(8) * i for i in range(20)]
    report("dispatch_20_sync", alone(lambda: many(xs)), "us")
    report("dispatch_20_async", timed(rounds, lambda: many(xs)[0]) * 1e6, "us")


def long_program(small):
    import jax
    import jax.numpy as jnp

    n = 512 if small else 8192
    step = lambda v: jnp.tanh(v @ v)
    loop = jax.jit(lambda x: jax.lax.fori_loop(0, 40, lambda i, v: step(v), x))
    products = jax.jit(lambda x: step(step(step(step(x)))))
    for name, f, size in (("long_loop", loop, n), ("long_products", products, 2 * n)):
        x = (jnp.ones((size, size)) * 0.01).astype(jnp.bfloat16)
        f(x).block_until_ready()
        returned, ended = [], []
        for _ in range(9):
            start = time.perf_counter()
            y = f(x)
            returned.append(time.perf_counter() - start)
            y.block_until_ready()
            ended.append(time.perf_counter() - start)
        report(f"{name}_returns", statistics.median(returned) * 1e6, "us")
        report(f"{name}_ends", statistics.median(ended) * 1e3, "ms")


def norm(x, scale, bias):
    import jax
    import jax.numpy as jnp

    wide = x.astype(jnp.float32)
    centered = wide - wide.mean(-1, keepdims=True)
    normal = centered * jax.lax.rsqrt((centered * centered).mean(-1, keepdims=True) + 1e-5)
    return (normal * scale.astype(jnp.float32) + bias.astype(jnp.float32)).astype(x.dtype)


def layer_norm(small):
    import jax
    import jax.numpy as jnp

    for rows, columns in [(64, 256)] if small else [(32768, 768), (16384, 4096), (65536, 4096)]:
        x = jax.random.normal(jax.random.key(1), (rows, columns)).astype(jnp.bfloat16)
        dy = jax.random.normal(jax.random.key(2), (rows, columns)).astype(jnp.bfloat16)
        scale, bias = jnp.ones(columns, jnp.bfloat16), jnp.zeros(columns, jnp.bfloat16)
        size, calls = rows * columns * 2, 3 if small else 50
        copy = jax.jit(lambda v: -v)
        report(f"copy_{rows}x{columns}", 2 * size / timed(calls, lambda: copy(x)) * 1e-9, "GB/s")
        forward = jax.jit(norm)
        report(f"layer_norm_{rows}x{columns}", 2 * size / timed(calls, lambda: forward(x, scale, bias)) * 1e-9, "GB/s")

        @jax.jit
        def both(x, scale, bias, dy):
            y, pull = jax.vjp(norm, x, scale, bias)
            return y, *pull(dy)

        report(f"layer_norm_grad_{rows}x{columns}", 5 * size / timed(calls, lambda: both(x, scale, bias, dy)[1]) * 1e-9, "GB/s")


def attention(small):
    """JAX's implementation="cudnn"; and its default, XLA's own form, under the name attention_xla_...

    JAX has neither dropout nor block patterns: those rows use the formula, and the default with a mask.
    """
    import jax
    import jax.numpy as jnp

    draw = lambda seed, *shape: jax.random.normal(jax.random.key(seed), shape).astype(jnp.bfloat16)

    def time_call(name, word, function, arguments, operations):
        try:
            compiled = jax.jit(function).lower(*arguments).compile()
            seconds = timed(2 if small else 5, lambda: compiled(*arguments))
        except Exception as error:  # unsupported by this implementation or device
            return print(f"{name}: {error}", file=sys.stderr)
        report(f"{name[0]}{word}_{name[1]}", operations / seconds * 1e-12, "TFLOP/s")
        report(f"{name[0]}{word}_temp_{name[1]}", compiled.memory_analysis().temp_size_in_bytes * 1e-6, "MB")

    def time_both(name, call, arguments, cotangent, operations, forward=True, mask=None):
        def one(mask, *arguments):
            return call(*arguments) if mask is None else call(*arguments, mask=mask)

        def both(cotangent, mask, *arguments):
            y, pull = jax.vjp(functools.partial(one, mask), *arguments)
            return y, *pull(cotangent)

        if forward:
            time_call(name, "", one, (mask, *arguments), operations)
        time_call(name, "_grad", both, (cotangent, mask, *arguments), 3.5 * operations)

    def time_case(name, batch, length, heads, groups, size, causal, implementations=("cudnn", "xla"), bias=False, share=1, mask=None):
        q, k, v, d = (draw(seed, batch, length, count, size) for seed, count in ((1, heads), (2, groups), (3, groups), (4, heads)))
        operations = 4 * batch * heads * size * length**2 * (0.5 if causal else share)
        given = (draw(9, 1, heads, length, length),) if bias else ()
        for implementation in implementations:
            call = functools.partial(jax.nn.dot_product_attention, is_causal=causal, implementation=implementation)
            prefix = "attention" if implementation == implementations[0] else f"attention_{implementation}"
            time_both((prefix, name), call, (q, k, v, *given), d, operations, not bias, mask)

    def dropped(q, k, v):
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) / q.shape[-1] ** 0.5
        seen = jnp.arange(q.shape[1])[:, None] >= jnp.arange(k.shape[1])
        shares = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)
        kept = jax.random.bernoulli(jax.random.key(6), 0.9, shares.shape)
        return jnp.einsum("bhqk,bkhd->bqhd", jnp.where(kept, shares / 0.9, 0).astype(v.dtype), v)

    if small:
        return time_case("small", 1, 64, 2, 2, 16, True)
    time_case("causal_s1024", 16, 1024, 16, 16, 128, True)
    time_case("causal_s8192", 2, 8192, 16, 16, 128, True)
    time_case("full_s8192", 2, 8192, 16, 16, 128, False, ("cudnn",))
    time_case("causal_s8192_d64", 2, 8192, 32, 32, 64, True, ("cudnn",))
    time_case("grouped_s8192", 2, 8192, 32, 8, 128, True, ("cudnn",))
    time_both(("attention", "dropout_s8192"), dropped, [draw(seed, 2, 8192, 16, 128) for seed in (1, 2, 3)], draw(4, 2, 8192, 16, 128),
              2 * 2 * 16 * 128 * 8192**2)
    time_case("mask_s8192", 2, 8192, 16, 16, 128, False, mask=draw(8, 2, 1, 8192, 8192) > -1)
    time_case("bias_s8192", 2, 8192, 16, 16, 128, True, ("cudnn",), bias=True)
    blocks = draw(5, 1, 16, 256, 256) < -0.6745
    time_case("sparse25_s16384", 1, 16384, 16, 16, 128, False, ("xla",), share=0.25,
              mask=jnp.repeat(jnp.repeat(blocks, 64, 2), 64, 3))


def selective_scan(small):
    """Mamba's scan with jax.lax.associative_scan."""
    import jax
    import jax.numpy as jnp

    batch, length, dim, state = (2, 96, 48, 16) if small else (8, 4096, 2048, 16)
    draw = lambda seed, *shape: jax.random.normal(jax.random.key(seed), shape).astype(jnp.bfloat16)
    u, delta, dy, z = (draw(seed, batch, length, dim) for seed in (1, 2, 5, 6))
    B, C = draw(3, batch, length, state), draw(4, batch, length, state)
    A = -jnp.exp(jax.random.normal(jax.random.key(7), (dim, state)))

    def run(u, delta, A, B, C, z):
        step, wide = jax.nn.softplus(delta.astype(jnp.float32)), lambda x: x.astype(jnp.float32)
        decay = jnp.exp(step[..., None] * A)
        driven = (step * wide(u))[..., None] * wide(B)[:, :, None, :]
        combine = lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1])
        h = jax.lax.associative_scan(combine, (decay, driven), axis=1)[1]
        return ((h * wide(C)[:, :, None, :]).sum(-1) * jax.nn.silu(wide(z))).astype(u.dtype)

    calls, forward = 2 if small else 5, jax.jit(run)
    report("selective_scan", 1e3 * timed(calls, lambda: forward(u, delta, A, B, C, z)), "ms")

    @jax.jit
    def both(*inputs):
        y, pull = jax.vjp(run, *inputs)
        return y, *pull(dy)

    report("selective_scan_grad", 1e3 * timed(calls, lambda: both(u, delta, A, B, C, z)[1]), "ms")


def gpt2(small):
    import jax
    import jax.numpy as jnp

    layers, heads, width, length, batch, vocabulary = (2, 2, 32, 16, 2, 101) if small else (12, 12, 768, 1024, 32, 50257)
    half = jnp.bfloat16

    def attention(block, x):
        head = width // heads
        every = jnp.einsum("btd,de->bte", x, block["qkv"].astype(half)) + block["qkv_bias"].astype(half)
        every = every.reshape(batch, length, 3, heads, head)
        q, k, v = every[:, :, 0], every[:, :, 1], every[:, :, 2]
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * (1 / head**0.5)
        mask = jnp.arange(length)[:, None] >= jnp.arange(length)
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e30), axis=-1).astype(half)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, width)
        return jnp.einsum("btd,de->bte", mixed, block["out"].astype(half)) + block["out_bias"].astype(half)

    def loss(model, tokens, targets):
        x = (jnp.take(model["tokens"], tokens, axis=0, mode="clip") + model["positions"]).astype(half)
        for block in model["blocks"]:
            x = x + attention(block, norm(x, block["scale1"], block["bias1"]))
            inner = jnp.einsum("btd,de->bte", norm(x, block["scale2"], block["bias2"]), block["up"].astype(half))
            inner = inner + block["up_bias"].astype(half)
            x = x + jnp.einsum("btd,de->bte", jax.nn.gelu(inner), block["down"].astype(half)) + block["down_bias"].astype(half)
        logits = jnp.einsum("btd,vd->btv", norm(x, model["scale"], model["bias"]), model["tokens"].astype(half)).astype(jnp.float32)
        picked = jnp.take_along_axis(logits, targets[..., None], axis=-1, mode="clip")
        return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - picked[..., 0])

    seed = iter(range(1000))

    def weight(*shape):
        return jax.random.normal(jax.random.key(next(seed)), shape) * 0.02

    d = width
    model = {"tokens": weight(vocabulary, d), "positions": weight(length, d), "scale": jnp.ones(d), "bias": jnp.zeros(d), "blocks": []}
    for _ in range(layers):
        model["blocks"].append({
            "scale1": jnp.ones(d), "bias1": jnp.zeros(d), "qkv": weight(d, 3 * d), "qkv_bias": jnp.zeros(3 * d), "out": weight(d, d),
            "out_bias": jnp.zeros(d), "scale2": jnp.ones(d), "bias2": jnp.zeros(d), "up": weight(d, 4 * d), "up_bias": jnp.zeros(4 * d),
            "down": weight(4 * d, d), "down_bias": jnp.zeros(d)})
    momentum = jax.tree.map(jnp.zeros_like, model)
    tokens = jax.random.randint(jax.random.key(5), (batch, length), 0, vocabulary)
    targets = jnp.roll(tokens, -1, axis=1)

    def step(model, momentum, tokens, targets):
        value, gradient = jax.value_and_grad(loss)(model, tokens, targets)
        velocity = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
        return jax.tree.map(lambda p, v: p - 1e-3 * v, model, velocity), velocity, value

    step = jax.jit(step, donate_argnums=(0, 1))
    start = time.perf_counter()
    model, momentum, value = step(model, momentum, tokens, targets)
    first = float(value)
    report("gpt2_first_step", time.perf_counter() - start, "s")
    report("gpt2_first_loss", first, "nats")
    rounds = []
    for _ in range(3 if small else 7):
        start = time.perf_counter()
        steps = 2 if small else 5
        for _ in range(steps):
            model, momentum, value = step(model, momentum, tokens, targets)
        value.block_until_ready()
        rounds.append((time.perf_counter() - start) / steps)
    report("gpt2_step", statistics.median(rounds) * 1e3, "ms")
    report("gpt2_last_loss", float(value), "nats")


def linear_algebra(small):
    import jax
    import jax.numpy as jnp

    n = 64 if small else 2048
    a = jax.random.normal(jax.random.key(0), (n, n))
    symmetric, wide, calls = a + a.T, a[:n // 2], 1 if small else 3
    product = lambda x, y: jnp.matmul(x, y, precision="highest")
    lu = jax.jit(lambda x: jax.lax.linalg.lu(x)[0])
    qr = jax.jit(lambda x: product(*jnp.linalg.qr(x)))

    @jax.jit
    def eigh(x):
        w, v = jnp.linalg.eigh(x)
        return product(v * w, v.T)

    @jax.jit
    def svd(x):
        u, s, vt = jnp.linalg.svd(x, full_matrices=False)
        return product(u * s, vt)

    difference = lambda x, y: float(jnp.abs(x - y).max() / jnp.abs(y).max())
    report("lu_f32", timed(calls, lambda: lu(a)) * 1e3, "ms")
    report("qr_f32", timed(calls, lambda: qr(a)) * 1e3, "ms")
    report("eigh_f32", timed(calls, lambda: eigh(symmetric)) * 1e3, "ms")
    report("svd_wide_f32", timed(calls, lambda: svd(wide)) * 1e3, "ms")
    report("qr_error", difference(qr(a), a), "of the largest")
    report("eigh_error", difference(eigh(symmetric), symmetric), "of the largest")
    report("svd_error", difference(svd(wide), wide), "of the largest")


def transfer(small):
    import jax
    import numpy

    count = 1 << 16 if small else 1 << 26
    f = jax.jit(lambda x: x + 1)
    to, back = [], []
    for _ in range(5):
        fresh = numpy.full(count, 1.5, numpy.float32)
        start = time.perf_counter()
        placed = jax.device_put(fresh)
        placed.block_until_ready()
        to.append(time.perf_counter() - start)
        result = f(placed)
        result.block_until_ready()
        start = time.perf_counter()
        assert numpy.asarray(result)[-1] == 2.5
        back.append(time.perf_counter() - start)
    report("copy_to_device", 4e-9 * count / statistics.median(to), "GB/s")
    report("copy_to_host", 4e-9 * count / statistics.median(back), "GB/s")


FIGURES = {"first": first_result, "matmul": matmul, "dispatch": dispatch, "long": long_program, "layer_norm": layer_norm,
           "attention": attention, "selective_scan": selective_scan, "linear_algebra": linear_algebra, "transfer": transfer,
           "gpt2": gpt2}

if __name__ == "__main__":
    names = [word for word in sys.argv[1:] if word != "--small"]
    for name in names or FIGURES:
        FIGURES[name]("--small" in sys.argv)
