"""Spiking neurons: leaky integrate-and-fire over time, forward and backward with a surrogate derivative."""

import numpy

from .row import Row

STEPS, NEURONS = 100, 65536
BYTES = 4 * STEPS * NEURONS


def inputs(random):
    return (0.5 * random.random((STEPS, NEURONS)).astype(numpy.float32), random.standard_normal((STEPS, NEURONS)).astype(numpy.float32))


def is_ours(jax):
    return jax.__name__.startswith("capibara")


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
    if not is_ours(jax):
        return plain_neurons(jax)
    from capibara import kernels
    return lambda x: kernels.spiking_neuron(x, 1.0, 0.1)


def both(jax):
    def run(x, cotangent):
        spikes, pull = jax.vjp(neurons(jax), x)
        return spikes, pull(cotangent)[0]
    return run


def both_torch(torch):
    """A loop over steps, as snnTorch writes it."""
    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(context, d):
            context.save_for_backward(d)
            return (d >= 0).to(d.dtype)

        @staticmethod
        def backward(context, cotangent):
            d, = context.saved_tensors
            return cotangent / (1 + (torch.pi * d) ** 2)

    def run(x, cotangent):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            v, spikes = torch.zeros_like(x[0]), []
            for current in x:
                u = v - 0.1 * v + current
                s = Spike.apply(u - 1)
                v = u * (1 - s)
                spikes.append(s)
            spikes = torch.stack(spikes)
            return spikes.detach(), torch.autograd.grad(spikes, x, cotangent)[0]
    return run


def rows():
    return [
        Row("spiking_neuron", f"spikes and gradients, {STEPS} steps of {NEURONS} f32", inputs, both, torch=both_torch,
            limit=("copy", 5 * BYTES), least={"jax": 8.0, "torch": 10.0}, widen=False, tolerance=1e-4, memory=True,
            checked=lambda out: (out[0].mean(), (out[1] * out[1]).mean())),  # rounding moves a few spikes
    ]
