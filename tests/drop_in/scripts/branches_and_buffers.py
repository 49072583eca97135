"""Predicates that are no booleans, the old form of cond, results with memory of their own, derivatives of slogdet."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

print([float(lax.cond(p, lambda x: x + 1, lambda x: x - 1, 1.0)) for p in (3.0, 0.0, 2, np.float32(0), np.bool_(True))])
print(float(lax.cond(True, 3.0, lambda x: x + 1, 5.0, lambda x: x - 1)), float(lax.cond(False, 3.0, lambda x: x + 1, 5.0, lambda x: x - 1)))
x = jnp.arange(4.0)
same = jax.jit(lambda y: y)(x)
print(same.unsafe_buffer_pointer() != x.unsafe_buffer_pointer(), same.tolist())
a = np.random.RandomState(0).randn(2, 2) + 1j * np.random.RandomState(1).randn(2, 2)
for n in (1, 2, 3):
    m = jnp.asarray(np.pad(a, ((0, 1), (0, 1)), constant_values=0.5)[:n, :n].astype("complex64"))
    t = jnp.asarray(np.random.RandomState(2).randn(n, n).astype("complex64"))
    first = lambda m: jax.jvp(lambda m: jnp.linalg.slogdet(m)[0], (m,), (t,))[1]
    second = jax.jvp(first, (m,), (t,))[1]
    print(round(float(second.real), 4), round(float(second.imag), 4))
