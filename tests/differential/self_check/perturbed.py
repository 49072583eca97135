"""jax with one mistake of each kind, which the runner must find."""

import jax
import jax.numpy as jnp

Array, config, jit, vmap, grad = jax.Array, jax.config, jax.jit, jax.vmap, jax.grad
ShapeDtypeStruct, random, tree_util = jax.ShapeDtypeStruct, jax.random, jax.tree_util


@jax.custom_jvp
def steep(x):
    return jnp.cos(x)


steep.defjvp(lambda primals, tangents: (jnp.cos(primals[0]), -1.01 * jnp.sin(primals[0]) * tangents[0]))


def wrong_class(x, *, axis=None):
    try:
        return jnp.sum(x, axis=axis)
    except ValueError as error:
        raise TypeError(str(error)) from None


class numpy:
    asarray, real, imag, arange = jnp.asarray, jnp.real, jnp.imag, jnp.arange
    sin = staticmethod(lambda x: jnp.sin(x) + 1e-3)  # values
    cos = staticmethod(steep)  # gradient only
    sum = staticmethod(wrong_class)  # class of the error
    sign = staticmethod(lambda x: jnp.sign(x).astype(jnp.bfloat16))  # dtype
    add = staticmethod(lambda x, y: jnp.add(jnp.asarray(x), jnp.asarray(y)) if not isinstance(y, int) else jnp.int32(x + y))
    ravel = staticmethod(lambda x: x)  # shape
    split = staticmethod(lambda x, n: tuple(jnp.split(x, n)))  # container
    floor_divide = staticmethod(lambda x, y: jnp.floor_divide(x, y) + (x == 7))  # one integer
    tanh = staticmethod(lambda x: jnp.tanh(float(x[0])))  # fails only when traced
