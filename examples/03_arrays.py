"""Arrays: creation, type promotion, indexing, updates, reductions, contractions and sorting."""

import capibara.jax.numpy as jnp

x = jnp.arange(12).reshape(3, 4)
print(f"x\n{x}")
print(f"type {x.dtype}[{','.join(map(str, x.shape))}]")

# Plain numbers take the dtype of the array they are combined with; true division of integers gives floats.
half = x.astype(jnp.bfloat16)
print(f"x * 2 is {(x * 2).dtype}, x / 2 is {(x / 2).dtype}")
print(f"bfloat16 * 2 is {(half * 2).dtype}, bfloat16 + float32 is {(half + jnp.ones(4)).dtype}")

# Indexing makes new arrays: rows, slices with steps, lists of rows, masks with where.
print(f"row {x[1]}")
print(f"last column {x[..., -1]}")
print(f"every second {x[0, ::2]}")
print(f"rows 2 and 0\n{x[jnp.array([2, 0])]}")
print(f"odd or zero {jnp.where(x[2] % 2 == 1, x[2], 0)}")

# Arrays are immutable; at[] returns an updated copy. Out-of-bounds writes are dropped.
print(f"set {x[0].at[1].set(50)}")
print(f"add twice {jnp.zeros(4).at[jnp.array([1, 1, 3])].add(1.0)}")
print(f"outside {x[0].at[9].set(50)}")

print(f"sums {jnp.sum(x, axis=0)} {jnp.sum(x, axis=1)} {jnp.sum(x)}")
print(f"means\n{jnp.mean(x, axis=1, keepdims=True)}")
print(f"running {jnp.cumsum(x[1])}")
print(f"product\n{jnp.matmul(x, x.T)}")
print(f"trace by einsum {jnp.einsum('ii->', jnp.matmul(x, x.T))}")

scores = jnp.array([0.3, 2.5, -1.0, 2.5, 0.0])
print(f"sorted {jnp.sort(scores)}")
print(f"order {jnp.argsort(scores)}")
print(f"best at {jnp.argmax(scores)}")
