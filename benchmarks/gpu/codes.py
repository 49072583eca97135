"""Vector quantization and spiking neurons on an accelerator: one library's times, and how far it is from plain programs.

    codes.py capibara|jax [--small]

Both libraries run on the platform that JAX_PLATFORMS names.
"""

import json
import statistics
import sys
import time


def report(name, value, unit):
    print(json.dumps({"name": name, "value": value, "unit": unit}), flush=True)


def timed(jax, calls, call):
    """Seconds of one of many calls in flight."""
    for _ in range(2):
        jax.block_until_ready(call())
    rounds = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(calls):
            last = call()
        jax.block_until_ready(last)
        rounds.append((time.perf_counter() - start) / calls)
    return statistics.median(rounds)


def plain_codes(jax):
    jnp = jax.numpy

    def run(x, codebook):
        wide = codebook.astype("float32")
        products = jnp.dot(x, codebook.T, preferred_element_type=jnp.float32)
        return jnp.argmax(products - 0.5 * (wide * wide).sum(-1), -1).astype(jnp.int32)
    return run


def encode(jax):
    if jax.__name__.startswith("capibara"):
        from capibara import kernels
        return kernels.vq_encode
    return plain_codes(jax)


def quantization(jax, small):
    jnp = jax.numpy
    for count, codes, dim in [(1000, 70, 64)] if small else [(262144, 1024, 64), (262144, 1024, 128), (262144, 1024, 256)]:
        x = jax.random.normal(jax.random.key(0), (count, dim)).astype(jnp.bfloat16)
        codebook = jax.random.normal(jax.random.key(1), (codes, dim)).astype(jnp.bfloat16)
        run = jax.jit(encode(jax))
        seconds = timed(jax, 3 if small else 50, lambda: run(x, codebook))
        report(f"vq_encode_{count}_{codes}_{dim}", seconds * 1e6, "us")
        report(f"vq_encode_rate_{count}_{codes}_{dim}", 2e-12 * count * codes * dim / seconds, "TFLOP/s")
        # How much farther the codes found are than the nearest ones, as a share of the mean squared distance.
        def distances(found):
            difference = x.astype("float32") - codebook.astype("float32")[found]
            return (difference * difference).sum(-1)
        ours, plain = distances(run(x, codebook)), distances(jax.jit(plain_codes(jax))(x, codebook))
        report(f"vq_encode_error_{count}_{codes}_{dim}", float(jnp.abs(ours - plain).max() / plain.mean()), "of the mean distance")
        different = (run(x, codebook) != jax.jit(plain_codes(jax))(x, codebook)).mean()
        report(f"vq_encode_different_{count}_{codes}_{dim}", float(different), "of all codes")


def plain_neurons(jax):
    jnp = jax.numpy

    @jax.custom_jvp
    def spike(d):
        return (d >= 0).astype(d.dtype)

    spike.defjvp(lambda primals, tangents: (spike(*primals), tangents[0] / (1 + (jnp.pi * primals[0]) ** 2)))

    def step(v, current):
        u = v - 0.1 * v + current
        s = spike(u - 1)
        return u * (1 - s), s
    return lambda x: jax.lax.scan(step, jnp.zeros_like(x[0]), x)[1]


def neurons(jax):
    if jax.__name__.startswith("capibara"):
        from capibara import kernels
        return lambda x: kernels.spiking_neuron(x, 1.0, 0.1)
    return plain_neurons(jax)


def spiking(jax, small):
    steps, count = (37, 300) if small else (128, 1 << 20)
    x = 0.5 * jax.random.uniform(jax.random.key(0), (steps, count))
    cotangent = jax.random.normal(jax.random.key(1), (steps, count))

    def both(run):
        def pair(x, cotangent):
            spikes, pull = jax.vjp(run, x)
            return spikes, pull(cotangent)[0]
        return jax.jit(pair)

    run = both(neurons(jax))
    seconds = timed(jax, 3 if small else 10, lambda: run(x, cotangent)[1])
    report(f"spiking_neuron_{steps}x{count}", seconds * 1e3, "ms")
    report(f"spiking_neuron_rate_{steps}x{count}", 20e-9 * steps * count / seconds, "GB/s")
    ours, plain = run(x, cotangent), both(plain_neurons(jax))(x, cotangent)
    report(f"spiking_neuron_different_{steps}x{count}", float((ours[0] != plain[0]).mean()), "of all spikes")
    close = jax.numpy.abs(ours[1] - plain[1]) <= 1e-4 * (1 + jax.numpy.abs(plain[1]))
    report(f"spiking_neuron_grad_different_{steps}x{count}", float(1 - close.mean()), "of all gradients")


if __name__ == "__main__":
    if sys.argv[1:2] == ["capibara"]:
        import capibara.jax as jax
    elif sys.argv[1:2] == ["jax"]:
        import jax
    else:
        sys.exit(__doc__)
    for figures in (quantization, spiking):
        figures(jax, "--small" in sys.argv)
