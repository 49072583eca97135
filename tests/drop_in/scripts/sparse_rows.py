"""Sparse arrays by rows: BCSR."""
import jax
import jax.numpy as jnp
from jax.experimental import sparse

dense = jnp.array([[0., 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]])
rows = sparse.BCSR.fromdense(dense)
print(rows, rows.data, rows.indices, rows.indptr, rows.todense(), rows.shape, rows.ndim, rows.size, rows.nse, rows.dtype)
print(rows.n_batch, rows.n_sparse, rows.n_dense)
padded = sparse.BCSR.fromdense(dense, nse=7)
print(padded, padded.indptr, padded.todense(), padded @ jnp.ones(4))
print(rows @ jnp.arange(8.).reshape(4, 2))
batch = sparse.bcsr_fromdense(jnp.stack([dense, dense.at[1, 1].set(5.)]), n_batch=1)
print(batch, batch.indptr, batch.todense())
print(rows.to_bcoo(), rows.to_bcoo().indices, sparse.BCSR.from_bcoo(sparse.BCOO.fromdense(dense)).indptr)
print(jax.jit(lambda m, v: m @ v)(rows, jnp.ones(4)))
print(jax.grad(lambda d: (sparse.BCSR((d, rows.indices, rows.indptr), shape=rows.shape) @ jnp.arange(4.)).sum())(rows.data))
print(sparse.bcsr_dot_general(rows, jnp.ones((4, 2)), dimension_numbers=(((1,), (0,)), ((), ()))), sparse.todense(rows))
twice = sparse.BCSR((jnp.array([1., 2, 3]), jnp.array([0, 0, 1]), jnp.array([0, 2, 3])), shape=(2, 2))
print(twice.todense(), twice.sum_duplicates().todense(), jax.tree.map(jnp.shape, jax.tree.leaves(twice)))
for shape in ((3, 2), (1, 2)):
    try:
        sparse.BCSR((jnp.ones(3), jnp.zeros(3, int), jnp.array([0, 2, 3])), shape=shape)
    except ValueError:
        print("refused", shape)
