"""What loops and branches say of arguments that they refuse."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def told(words, function, *args):
    try:
        function(*args)
    except Exception as error:
        print(type(error).__name__, words in str(error))
    else:
        print("nothing was raised")


for unroll in (-1, 0):
    told("`unroll` must be", lambda: lax.scan(lambda x, _: (x, x), 0, jnp.arange(5), unroll=unroll))
told("The `unroll` argument to `scan` expects a concrete", jax.jit(lambda n: lax.scan(lambda c, z: (c, z), 1.0, (), 10, unroll=n)), 3)
told("The `length` argument to `scan` expects a concrete `int` value", jax.jit(lambda n: lax.scan(lambda c, z: (c, z), 1.0, (), n)), 3)
told("arguments to fori_loop must have equal types", lambda: lax.fori_loop(np.int16(0), jnp.int32(10), lambda i, c: c, 7.0))
print(float(lax.fori_loop(0, jnp.int32(3), lambda i, c: c + i, 7.0)), float(lax.fori_loop(np.int32(0), 3, lambda i, c: c + i, 7.0)))
told("cond predicate is None", lambda: lax.cond(None, lambda x: x, lambda x: x, 1.0))
told("cond predicate is None", jax.jit(lambda p: lax.cond(p, lambda x: x, lambda x: x, 1.0)), None)
told("Pred type must be either boolean or number, got <function", lambda: lax.cond(lambda x: True, lambda x: x, lambda x: x, 1.0))
told("Index type must be an integer, got <function", lambda: lax.switch(lambda x: True, [lambda x: x, lambda x: x], 1.0))
told("Index type must be an integer, got foo.", lambda: lax.switch("foo", [lambda x: x, lambda x: x], 1.0))
told("Branch index must be scalar, got (1.0, 1.0) of shape (2,).", lambda: lax.switch((1.0, 1.0), [lambda x: x, lambda x: x], 1.0))
told("", lambda: lax.stop_gradient(lambda x: x))
print(*map(float, lax.stop_gradient((1.5, 2))), [float(x) for x in lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(4.0), unroll=True)[1]])
