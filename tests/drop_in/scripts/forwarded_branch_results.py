"""Operands that every branch of a cond returns: they do not depend on the predicate, under vmap either."""
import jax
import jax.numpy as jnp


def step(shared, own):
    return jax.lax.cond(own % 2 == 0, lambda s, o: (s, o + 1), lambda s, o: (s, o), shared, own)


print(jax.vmap(step, in_axes=(None, 0), out_axes=(None, 0))(jnp.float32(3.), jnp.arange(8)))
try:
    jax.vmap(lambda s, o: jax.lax.cond(o > 2, lambda s: s, lambda s: s + 0, s), in_axes=(None, 0), out_axes=None)(1., jnp.arange(8))
except ValueError:
    print("depends on the predicate")

print(jax.make_jaxpr(lambda p, a, b: jax.lax.cond(p, lambda a, b: (a, b, a + b), lambda a, b: (a, a, b), a, b))(True, 1., 2.))
branches = [lambda a, b: (a, b), lambda a, b: (b, b), lambda a, b: (a * 2, b)]
print(jax.make_jaxpr(lambda i, a, b: jax.lax.switch(i, branches, a, b))(1, 1., 2.))
outside = jnp.float32(7.)
print(jax.jit(lambda p, a: jax.lax.cond(p, lambda a: (outside, a), lambda a: (outside, -a), a))(False, 2.))
print(jax.grad(lambda a, p: sum(jax.lax.cond(p, lambda a: (a, a * a), lambda a: (a, a), a)))(3., True))
print(jax.jvp(lambda a: jax.lax.cond(True, lambda a: (a, a * a), lambda a: (a, a), a), (jnp.float32(3.),), (jnp.float32(1.),))[1])
print(jax.lax.cond(True, lambda a: a, lambda a: a, 5), jax.make_jaxpr(lambda p, a: jax.lax.cond(p, lambda a: a, lambda a: a, a))(True, 1.))
