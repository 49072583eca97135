"""Recurrences along a sequence: the selective scan of Mamba, Mamba-2 by chunks, and the linear recurrence."""

import ml_dtypes
import numpy

from .row import Row

LENGTH = 2048


def fused(name, peer):
    """capibara's fused operation, and what a user of jax would write."""
    def program(jax):
        if jax.__name__.startswith("capibara"):
            from capibara import kernels
            return getattr(kernels, name)
        return peer(jax)
    return program


def sum_of(program):
    """The gradients of a weighted sum; the cotangent is the last input."""
    def made(jax):
        inner = program(jax)
        return lambda *inputs: jax.vjp(inner, *inputs[:-1])[1](inputs[-1])
    return made


# --- the selective scan ------------------------------------------------------------------------------------------------


def mamba_inputs(batch, length, dim, state, cotangent=False):
    def inputs(random):
        draw = lambda *shape: random.standard_normal(shape).astype(numpy.float32)
        step = numpy.logaddexp(draw(batch, length, dim) - 2.0, 0).astype(numpy.float32)
        found = (draw(batch, length, dim), step, -numpy.exp(draw(dim, state)), draw(batch, length, state), draw(batch, length, state))
        return found + ((draw(batch, length, dim),) if cotangent else ())
    return inputs


def step_by_step(jax):
    jnp = jax.numpy

    def run(u, delta, A, B, C):
        def step(h, slices):
            u, delta, B, C = slices
            h = jnp.exp(delta[..., None] * A) * h + (delta * u)[..., None] * B[:, None, :]
            return h, (h * C[:, None, :]).sum(-1)
        first = lambda x: jnp.moveaxis(x, 1, 0)
        start = jnp.zeros((u.shape[0],) + A.shape, u.dtype)
        return jnp.moveaxis(jax.lax.scan(step, start, (first(u), first(delta), first(B), first(C)))[1], 0, 1)
    return run


def linear(x, y):
    return x[0] * y[0], y[0] * x[1] + y[1]


def by_associative_scan(jax):
    jnp = jax.numpy

    def run(u, delta, A, B, C):
        decay = jnp.exp(delta[..., None] * A)
        driven = (delta * u)[..., None] * B[:, :, None, :]
        h = jax.lax.associative_scan(linear, (decay, driven), axis=1)[1]
        return (h * C[:, :, None, :]).sum(-1)
    return run


# --- Mamba-2 -----------------------------------------------------------------------------------------------------------


def ssd_inputs(length, heads, dim, state, dtype=numpy.float32):
    def inputs(random):
        draw = lambda *shape: random.standard_normal(shape).astype(numpy.float32)
        step = numpy.logaddexp(draw(1, length, heads) - 2.0, 0).astype(numpy.float32)
        narrow = lambda x: x.astype(dtype)
        return (narrow(draw(1, length, heads, dim)), narrow(step), -numpy.exp(draw(heads)).astype(numpy.float32),
                narrow(draw(1, length, 1, state)), narrow(draw(1, length, 1, state)))
    return inputs


def ssd_by_einsum(jax):
    """All chunks at once, as in the paper's listing."""
    jnp, chunk = jax.numpy, 64

    def run(x, dt, A, B, C):
        batch, length, heads, dim = x.shape
        state, chunks = B.shape[-1], length // chunk
        wide = lambda a: a.astype(jnp.promote_types(a.dtype, jnp.float32))
        cut = lambda a: a.reshape(batch, chunks, chunk, *a.shape[2:])
        B, C = (cut(jnp.broadcast_to(wide(a), (batch, length, heads, state))) for a in (B, C))
        driven, logs = cut(wide(x) * wide(dt)[..., None]), cut(wide(dt) * A)
        sums = jnp.cumsum(logs, 2)
        pairs = sums[:, :, :, None] - sums[:, :, None]
        causal = jnp.tril(jnp.ones((chunk, chunk), bool))[:, :, None]
        decay = jnp.exp(jnp.where(causal, pairs, -jnp.inf))
        inside = jnp.einsum("bclhn,bcshn,bclsh,bcshp->bclhp", C, B, decay, driven)
        added = jnp.einsum("bclhn,bclh,bclhp->bchpn", B, jnp.exp(sums[:, :, -1:] - sums), driven)

        def step(h, slices):
            own, total = slices
            return jnp.exp(total)[..., None, None] * h + own, h
        first = lambda a: jnp.moveaxis(a, 1, 0)
        start = jnp.zeros((batch, heads, dim, state), driven.dtype)
        starts = jnp.moveaxis(jax.lax.scan(step, start, (first(added), first(sums[:, :, -1])))[1], 0, 1)
        carried = jnp.einsum("bclhn,bchpn,bclh->bclhp", C, starts, jnp.exp(sums))
        return (inside + carried).reshape(x.shape).astype(x.dtype)
    return run


# --- the linear recurrence ---------------------------------------------------------------------------------------------


def recurrence_inputs(*shape):
    def inputs(random):
        return random.uniform(0, 1, shape).astype(numpy.float32), random.standard_normal(shape).astype(numpy.float32)
    return inputs


def prefixes(jax):
    return lambda a, b: jax.lax.associative_scan(linear, (a, b))[1]


def optimized_prefixes(jax):
    if not jax.__name__.startswith("capibara"):
        return prefixes(jax)
    return lambda a, b: jax.lax.associative_scan(linear, (a, b), tpu_optimized=True)[1]


def rows():
    mamba = f"selective scan, 1x{LENGTH}x1536, 16 states, f32"
    ssd = f"SSD, 1x{LENGTH}, 24 heads of 64, 128 states"
    return [
        Row("selective scan beside lax.scan", mamba, mamba_inputs(1, LENGTH, 1536, 16), fused("selective_scan", step_by_step),
            least={"jax": 10}, memory=True),
        Row("selective scan beside associative_scan", mamba, mamba_inputs(1, LENGTH, 1536, 16),
            fused("selective_scan", by_associative_scan), least={"jax": 10, "memory": 0.1}, memory=True),
        Row("selective scan gradients", f"gradients of {mamba}", mamba_inputs(1, LENGTH, 1536, 16, cotangent=True),
            sum_of(fused("selective_scan", step_by_step)), least={"jax": 4, "memory": 0.1}, memory=True),
        Row("ssd", f"{ssd}, f32", ssd_inputs(LENGTH, 24, 64, 128), fused("ssd", ssd_by_einsum), least={"jax": 4}, memory=True),
        Row("ssd bf16", f"{ssd}, bf16", ssd_inputs(LENGTH, 24, 64, 128, ml_dtypes.bfloat16), fused("ssd", ssd_by_einsum),
            least={"jax": 4}, tolerance=1e-2, widen=False, memory=True),
        Row("linear recurrence", f"associative_scan of a linear recurrence, {LENGTH}x4096, f32", recurrence_inputs(LENGTH, 4096),
            optimized_prefixes, least={"jax": 4}, limit=("copy", 3 * 4 * LENGTH * 4096), memory=True),
    ]
