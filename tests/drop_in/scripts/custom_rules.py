"""Functions with the user's own rules: what runs on values, which rule is called, and with what."""
import jax
import jax.numpy as jnp
from jax import lax


@jax.custom_jvp
def branching(x):
    return jnp.sin(x) if x > 0 else jnp.cos(x)


@branching.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return branching(x), (2.0 if x > 0 else 3.0) * t


print(float(branching(1.0)), float(branching(-1.0)))
print(float(jax.grad(branching)(1.0)), float(jax.grad(branching)(-1.0)), float(jax.jvp(branching, (1.0,), (2.0,))[1]))
print(float(jax.grad(lambda y: y * branching(1.0))(3.0)))


@jax.custom_jvp
def identity(x):
    return x


identity.defjvp(lambda primals, tangents: (primals[0], 2 * tangents[0]))
print(isinstance(identity(1.0), float), isinstance(identity(1), int))
print(jax.vmap(identity)(jnp.arange(3.0)).tolist(), jax.vmap(jax.grad(identity))(jnp.arange(3.0)).tolist())
print(jax.grad(lambda x: jax.vmap(identity)(x).sum())(jnp.arange(3.0)).tolist())
print(jax.vmap(lambda w, x: identity(w) * x, in_axes=(None, 0))(2.0, jnp.arange(3.0)).tolist())
print(float(jax.vmap(lambda x: identity(2.0), axis_name="i", out_axes=None)(jnp.arange(3.0))))


@jax.custom_vjp
def clipped(x):
    if float(x) > 10:
        return x * 0 + 10
    return x


clipped.defvjp(lambda x: (clipped(x), x), lambda x, g: (g * (5.0 if float(x) < 10 else 7.0),))
print(float(clipped(3.0)), float(clipped(30.0)), float(jax.grad(clipped)(3.0)), float(jax.grad(clipped)(30.0)))


@jax.custom_vjp
def shared(x, w):
    return x * w


shared.defvjp(lambda x, w: (x * w, (x, w)), lambda kept, g: (10 * g * kept[1], 100 * g * kept[0]))
xs = jnp.arange(1.0, 4.0)
print([g.tolist() for g in jax.grad(lambda x, w: jax.vmap(shared, in_axes=(0, None))(x, w).sum(), argnums=(0, 1))(xs, 2.0)])
print([g.tolist() for g in jax.vmap(jax.grad(shared, argnums=(0, 1)), in_axes=(0, None))(xs, 2.0)])
print([g.tolist() for g in jax.jit(jax.grad(lambda x, w: jax.vmap(shared, in_axes=(0, None))(x, w).sum(), argnums=(0, 1)))(xs, 2.0)])
print(jax.grad(lambda w: jax.vmap(lambda x: shared(w, w), axis_name="i", out_axes=None)(xs))(3.0).tolist())


@jax.custom_vjp
def history(x, h):
    return x


history.defvjp(lambda x, h: (x, h), lambda h, g: (g, h + 1))


@jax.custom_vjp
def stop(x):
    return x


stop.defvjp(lambda x: (x, None), lambda kept, g: (None,))
print(float(jax.grad(lambda h: stop(history(1.0, h)))(5.0)), float(jax.jit(jax.grad(lambda h: stop(history(1.0, h))))(5.0)))
print(float(jax.grad(lambda h: lax.stop_gradient(history(1.0, h)))(5.0)), float(jax.grad(lambda h: (history(1.0, h), 2.0 * h)[1])(5.0)))
print(float(jax.grad(lambda h: stop(lax.scan(lambda c, _: (history(c, h), None), 1.0, length=2)[0]))(5.0)))
print(float(jax.grad(lambda h: stop(jax.jit(history)(1.0, h)))(5.0)))
wide = jax.custom_vjp(lambda x: x)
wide.defvjp(lambda x: (x, None), lambda kept, g: (g.astype(jnp.float32) * 2,))
print(jax.grad(lambda x: wide(x).astype(jnp.float32))(jnp.bfloat16(1)).dtype)


@jax.custom_batching.custom_vmap
def mapped(x, scale=1.0):
    return jnp.sin(x) * scale


@mapped.def_vmap
def _(axis_size, in_batched, x, scale):
    return jnp.cos(x) * scale, in_batched[0]


print(mapped(jnp.float32(1.0), scale=2.0).tolist(), jax.vmap(mapped)(xs, jnp.ones(3)).tolist())
print([v.tolist() for v in jax.vmap(lambda x, t: jax.jvp(mapped, (x, 1.0), (t, 0.0)))(xs, 2 * xs)])
single = jax.custom_batching.custom_vmap(jnp.sin)
single.def_vmap(lambda size, in_batched, x: (jnp.cos(x), in_batched[0]))
print([v.tolist() for v in jax.vmap(lambda x, t: jax.jvp(single, (x,), (t,)))(xs, 2 * xs)])
print([v.tolist() for v in jax.vmap(lambda t: jax.jvp(single, (1.0,), (t,)), out_axes=(None, 0))(xs)])
print(jax.jacfwd(single)(xs).tolist())


def objective(x):
    converted, captured = jax.closure_convert(lambda y: x * y, 3.0)
    return converted(2.0, *captured) * len(captured)


print(float(jax.grad(objective)(2.0)))
made = []
jax.grad(lambda x: made.append(jax.make_jaxpr(lambda y: x * y + jnp.arange(3.0).sum())(1.0)) or x)(2.0)
print(len(made[0].consts), len(made[0].jaxpr.invars), len(made[0].in_avals))
twice = jax.custom_jvp(lambda x: x)
for rule in (lambda p, t: ((p[0], p[0]), (t[0], t[0])), lambda p, t: (jnp.zeros(3), jnp.zeros(3))):
    twice.defjvp(rule)
    try:
        jax.jvp(lambda x: lax.scan(lambda c, _: (twice(c), None), x, length=1)[0], (1.0,), (1.0,))
    except TypeError as error:
        print("Custom JVP rule" in str(error))
