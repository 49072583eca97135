"""Named axes seen through jit, loops and branches: their sizes, positions and sums of values that are not mapped."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

count = jax.jit(lambda: lax.psum(1, "i"))
print([int(jax.vmap(count, axis_name="i", axis_size=n, out_axes=None)()) for n in (2, 3)])
share = jax.jit(lambda x: x / lax.psum(1.0, "i"))
print([jax.vmap(share, axis_name="i")(jnp.ones(n)).tolist() for n in (2, 4)])
size = jax.jit(lambda x: x * lax.axis_size("i"))
print([jax.vmap(size, axis_name="i")(jnp.ones(n)).tolist() for n in (2, 3)])
print(jax.vmap(jax.jit(lambda: lax.axis_index("i")), axis_name="i", axis_size=3)().tolist())
print(jax.vmap(jax.jit(lambda x: lax.psum(x, "i")), axis_name="i", axis_size=3, in_axes=None, out_axes=None)(2.0))
print(jax.vmap(lambda _, x: lax.while_loop(lambda x: x < lax.axis_index("i"), lambda x: x + 2, x), axis_name="i",
               in_axes=(0, None))(np.arange(5), 0).tolist())
print(jax.vmap(lambda _: lax.scan(lambda c, _: (c + lax.axis_index("i"), c), 0, length=3)[0], axis_name="i")(np.arange(3)).tolist())
print(jax.vmap(lambda _: lax.cond(True, lambda: lax.axis_index("i") + 1, lambda: 0), axis_name="i")(np.arange(3)).tolist())
print(jax.vmap(lambda _: lax.fori_loop(0, 2, lambda k, c: c + lax.psum(c, "i"), 1.0), axis_name="i")(np.arange(3)).tolist())
nested = jax.vmap(lambda x: jax.vmap(jax.jit(lambda y: y + 10 * lax.axis_index("i") + lax.axis_index("j")), axis_name="j")(x), axis_name="i")
print(nested(jnp.zeros((2, 3))).tolist())
print([part.tolist() for part in jax.vmap(lambda n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1]), (0, jnp.ones(2))),
                                           out_axes=(0, None))(np.array([2, 3]))])


def mean_of_lanes(x):
    return lax.pmean(x, "lanes")


by_jvp = jax.custom_jvp(mean_of_lanes)
by_jvp.defjvp(lambda primals, tangents: (by_jvp(*primals), 3 * lax.pmean(tangents[0], "lanes")))
by_vjp = jax.custom_vjp(mean_of_lanes)
by_vjp.defvjp(lambda x: (by_vjp(x), None), lambda _, cotangent: (5 * cotangent,))
for rule in (by_jvp, by_vjp):  # what all lanes share has no axis after custom rules either
    for staged in (rule, jax.jit(rule), lambda x: lax.scan(lambda carry, _: (rule(x), carry), 0.0, None, length=2)[0]):
        shared = jax.vmap(lambda _, x: staged(x), axis_name="lanes", in_axes=(0, None), out_axes=None)
        mapped = jax.vmap(staged, axis_name="lanes", out_axes=None)
        print(shared(jnp.arange(4.0), 2.0), mapped(jnp.arange(4.0)))
        print(jax.grad(lambda x: shared(jnp.arange(4.0), x))(2.0), jax.grad(lambda x: mapped(x) ** 2)(jnp.arange(4.0)))
        print(jax.vmap(jax.grad(staged), axis_name="lanes")(jnp.arange(4.0)))
