"""Sparse arrays of coordinates: conversions, products, sums, derivatives and batches."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import sparse
from jax.experimental.sparse import BCOO

m = jnp.array([[0.0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 5]])
v, w, b = jnp.arange(4.0), jnp.arange(3.0), jnp.arange(8.0).reshape(4, 2)
s = BCOO.fromdense(m)
print(s, s.nse, s.shape, s.ndim, s.dtype, s.n_batch, s.n_dense)
print(s.todense().tolist(), s.T.todense().tolist(), s.indices.tolist(), s.data.tolist())
print((s @ v).tolist(), (s @ b).tolist(), (w @ s).tolist(), (s.T @ w).tolist())
print(jax.jit(lambda s, v: s @ v)(s, v).tolist())
print(jax.grad(lambda d: (BCOO((d, s.indices), shape=s.shape) @ v).sum())(s.data).tolist())
print(jax.vmap(lambda v: s @ v)(jnp.eye(4)).tolist())
for each in (s * 2, s + s, s * s, -s, s * v, s - 2 * s):
    print(each.todense().tolist())
print((s + m).tolist(), s.sum(0).todense().tolist(), s.sum(1).todense().tolist(), s.sum().tolist())

repeated = BCOO((jnp.array([1.0, 2.0, 3.0]), jnp.array([[0, 0], [0, 0], [1, 1]])), shape=(2, 2))
once = repeated.sum_duplicates()
print(once.nse, once.data.tolist(), once.indices.tolist(), repeated.todense().tolist())
batch = BCOO.fromdense(jnp.stack([m, m * 2]), n_batch=1)
print(batch, batch.todense().tolist())
rows = BCOO.fromdense(m, n_dense=1)
print(rows, rows.todense().tolist(), rows.data.shape)
print(sparse.eye(3, 4, k=1).todense().tolist(), sparse.empty((2, 3)).todense().tolist())
print(BCOO.fromdense(m, nse=7).todense().tolist(), jax.jit(lambda m: BCOO.fromdense(m, nse=6).T.todense())(m).tolist())
print(sparse.bcoo_dot_general(s, b, dimension_numbers=(((1,), (0,)), ((), ()))).tolist())
print(sparse.bcoo_concatenate([s, s], dimension=0).todense().tolist(), np.asarray(jax.tree.leaves(s)[0]).tolist())
