"""Callbacks: the structure of their results, what they are handed, what they refuse."""
import io
import logging

import jax
import jax.numpy as jnp
import numpy as np

one = jax.ShapeDtypeStruct((), jnp.float32)
logs = io.StringIO()
logging.getLogger("jax").addHandler(logging.StreamHandler(logs))
logging.getLogger("jax").propagate = False


def show(function):
    try:
        print(jax.tree.map(np.asarray, function()))
    except Exception as error:
        print([kind.__name__ for kind in (RuntimeError, NotImplementedError, ValueError, TypeError) if isinstance(error, kind)])


show(lambda: jax.pure_callback(lambda a: {"y": [a]}, {"y": [one]}, [jnp.float32(1)]))
show(lambda: jax.jit(lambda: jax.pure_callback(lambda: np.float32(1), jax.ShapeDtypeStruct((1,), jnp.float32)))())
show(lambda: jax.pure_callback(lambda: 1.0, jax.ShapeDtypeStruct((), np.float64)))
show(lambda: jax.linear_transpose(lambda x: jax.experimental.io_callback(lambda x: x, one, x), jnp.float32(1))(jnp.float32(1)))
show(lambda: jax.vmap(lambda p: jax.lax.cond(p, lambda: jax.experimental.io_callback(print, None), lambda: None))(jnp.array([True, False])))
show(lambda: jax.grad(jax.checkpoint(lambda x: (jax.experimental.io_callback(lambda v: v, one, 1.0), x)[1]))(2.0))
vectorised = jax.vmap(lambda x, y: jax.pure_callback(lambda x, y: np.sin(x) + y, x, x, y, vmap_method="legacy_vectorized"), in_axes=(1, None), out_axes=1)
show(lambda: vectorised(jnp.arange(4.0)[None], 4.0))


def fail():
    raise RuntimeError("no")


show(lambda: jax.pure_callback(fail, one))
print("jax.pure_callback failed" in logs.getvalue(), "Traceback" in logs.getvalue())

jax.debug.callback(lambda dtype, text, x: print(dtype, text, float(x)), np.dtype("float32"), "text", jnp.float32(2))
jax.debug.callback(ordered=True)(lambda x: print(int(x)), 3)
with np.printoptions(precision=2, suppress=True):
    jax.jit(lambda x: jax.debug.print("{}", x))(np.array([1.2345, 2.3456, 1e-7], np.float32))
jax.effects_barrier()
jax.debug.print("{k.shape}", k=jax.random.split(jax.random.key(0)))
for arguments in (("{x}", (), {"x": 1, "y": 2}), ("hello", (1,), {}), ("{}", (), {})):
    show(lambda: jax.debug.print(arguments[0], *arguments[1], **arguments[2]))
