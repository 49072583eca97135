"""Vector quantization and spiking neurons on an accelerator: one library's times, and its difference from plain programs.

    codes.py capibara|jax [--small]

Both libraries run on the platform that JAX_PLATFORMS names.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from suite.spiking import neurons, plain_neurons  # noqa: E402
from timing import report, timed  # noqa: E402


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
        # Excess distance of the codes found over the nearest ones, as a share of the mean squared distance.
        def distances(found):
            difference = x.astype("float32") - codebook.astype("float32")[found]
            return (difference * difference).sum(-1)
        ours, plain = distances(run(x, codebook)), distances(jax.jit(plain_codes(jax))(x, codebook))
        report(f"vq_encode_error_{count}_{codes}_{dim}", float(jnp.abs(ours - plain).max() / plain.mean()), "of the mean distance")
        different = (run(x, codebook) != jax.jit(plain_codes(jax))(x, codebook)).mean()
        report(f"vq_encode_different_{count}_{codes}_{dim}", float(different), "of all codes")


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
