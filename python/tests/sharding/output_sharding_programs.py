"""Jitted programs of sharded arrays; each returns the PartitionSpecs of its results, which jax's compiler chooses.

python output_sharding_programs.py jax|capibara [NAME...]      prints one JSON object {name: specifications}

`make_answers.py output_sharding` records jax's answers.
"""
import json
import sys

if sys.argv[1] == "capibara":
  import capibara.jax
  capibara.jax.install()

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
LINE = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,))
PROGRAMS = {}


def put(shape, *entries, mesh=MESH, dtype=jnp.float32):
  values = np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)
  return jax.device_put(jnp.asarray(values, dtype), NamedSharding(mesh, P(*entries)))


def whole(shape, dtype=jnp.float32):
  """An array without a sharding annotation."""
  return jnp.asarray(np.cos(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape), dtype)


def entries(array):
  if not isinstance(array.sharding, NamedSharding):
    return "single"
  found = [list(entry) if isinstance(entry, tuple) else [entry] if entry is not None else [] for entry in array.sharding.spec]
  while found and not found[-1]:
    found.pop()
  return found


def program(name, function, *args, **options):
  PROGRAMS[name] = lambda: [entries(leaf) for leaf in jax.tree.leaves(jax.jit(function, **options)(*(arg() for arg in args)))]


def constrain(x, *spec):
  return lax.with_sharding_constraint(x, NamedSharding(MESH, P(*spec)))


A = lambda: put((16, 8), "data", "model")  # noqa: E731
ROWS = lambda: put((16, 8), "data")  # noqa: E731
COLUMNS = lambda: put((16, 8), None, "model")  # noqa: E731
BOTH = lambda: put((16, 8), ("data", "model"))  # noqa: E731
LONG = lambda: put((64, 4), "i", mesh=LINE)  # noqa: E731
CUBE = lambda: put((8, 4, 16), "data", None, "model")  # noqa: E731
FREE = lambda: whole((16, 8))  # noqa: E731
VECTOR = lambda: whole((8,))  # noqa: E731

# ---- elementwise ----
program("same", lambda x: x, A)
program("sine", jnp.sin, A)
program("chain", lambda x: jnp.exp(jnp.sin(x) * 2) + 1, ROWS)
program("add_equal", lambda x, y: x + y, A, A)
program("add_rows_columns", lambda x, y: x + y, ROWS, COLUMNS)
program("add_columns_rows", lambda x, y: x * y, COLUMNS, ROWS)
program("add_conflict", lambda x, y: x + y, ROWS, lambda: put((16, 8), "model"))
program("add_conflict_of_tuples", lambda x, y: x + y, BOTH, lambda: put((16, 8), ("model", "data")))
program("add_prefix", lambda x, y: x + y, BOTH, ROWS)
program("add_unplaced", lambda x, y: x - y, ROWS, FREE)
program("add_vector", lambda x, b: x + b, A, VECTOR)
program("add_placed_vector", lambda x, b: x + b, ROWS, lambda: put((8,), "model"))
program("where", lambda x, y: jnp.where(x > 0, x, y), ROWS, FREE)
program("cast", lambda x: x.astype(jnp.int32), A)
program("compare", lambda x, y: x < y, COLUMNS, FREE)
program("clip", lambda x: jnp.clip(x, -1, 1), BOTH)
program("scalar_of_two", lambda x: (x + 1, x.sum()), A)
program("complex", lambda x: lax.complex(x, x).real, A)

# ---- shapes ----
program("transpose", lambda x: x.T, A)
program("transpose_cube", lambda x: jnp.transpose(x, (2, 0, 1)), CUBE)
program("reshape_merge", lambda x: x.reshape(-1), ROWS)
program("reshape_merge_both", lambda x: x.reshape(-1), A)
program("reshape_split", lambda x: x.reshape(4, 4, 8), ROWS)
program("reshape_split_inner", lambda x: x.reshape(2, 8, 8), lambda: put((16, 8), "model"))
program("reshape_split_columns", lambda x: x.reshape(16, 2, 4), A)
program("reshape_split_of_both", lambda x: x.reshape(4, 4, 8), BOTH)
program("expand", lambda x: x[:, None, :], A)
program("squeeze", lambda x: jnp.squeeze(x, 1), lambda: put((16, 1, 8), "data", None, "model"))
program("broadcast", lambda x: jnp.broadcast_to(x, (4, 16, 8)), A)
program("broadcast_vector", lambda x: jnp.broadcast_to(x, (16, 8)), lambda: put((8,), "model"))
program("tile", lambda x: jnp.tile(x, (2, 1)), COLUMNS)
program("concatenate", lambda x, y: jnp.concatenate([x, y], 1), ROWS, ROWS)
program("concatenate_along", lambda x, y: jnp.concatenate([x, y], 0), ROWS, ROWS)
program("stack", lambda x, y: jnp.stack([x, y]), A, A)
program("pad", lambda x: jnp.pad(x, ((0, 0), (1, 1))), ROWS)
program("pad_along", lambda x: jnp.pad(x, ((2, 2), (0, 0))), ROWS)
program("flip", lambda x: x[::-1], A)
program("flip_other", lambda x: x[:, ::-1], ROWS)
program("slice_other", lambda x: x[:, 2:6], ROWS)
program("slice_along", lambda x: x[:8], ROWS)
program("slice_row", lambda x: x[3], A)
program("split", lambda x: jnp.split(x, 2, 1), ROWS)
program("dynamic_slice_other", lambda x: lax.dynamic_slice_in_dim(x, 1, 4, 1), ROWS)
program("dynamic_update", lambda x: lax.dynamic_update_slice_in_dim(x, jnp.ones((16, 2)), 3, 1), ROWS)
program("ones", lambda x: (jnp.ones((16, 8)), x), A)
program("ones_added", lambda x: jnp.ones((16, 8)) + x, A)
program("iota_added", lambda x: jnp.arange(8.0) + x, A)

# ---- reductions ----
program("sum_rows", lambda x: x.sum(0), A)
program("sum_columns", lambda x: x.sum(1), A)
program("sum_kept", lambda x: x.sum(1, keepdims=True), A)
program("sum_all", lambda x: x.sum(), A)
program("max_of_cube", lambda x: x.max(1), CUBE)
program("mean_subtracted", lambda x: x - x.mean(1, keepdims=True), A)
program("softmax", lambda x: jax.nn.softmax(x, -1), A)
program("softmax_rows", lambda x: jax.nn.softmax(x, 0), ROWS)
program("logsumexp", lambda x: jax.nn.logsumexp(x, 1), A)
program("variance", lambda x: x.var(0), COLUMNS)
program("argmax", lambda x: jnp.argmax(x, 1), ROWS)
program("argmax_along", lambda x: jnp.argmax(x, 0), A)
program("cumsum_other", lambda x: jnp.cumsum(x, 1), ROWS)
program("cumsum_along", lambda x: jnp.cumsum(x, 0), ROWS)
program("sort_other", lambda x: jnp.sort(x, 1), ROWS)
program("sort_along", lambda x: jnp.sort(x, 0), ROWS)
program("top_k", lambda x: lax.top_k(x, 3), ROWS)
program("norm", lambda x: jnp.linalg.norm(x), A)
program("any", lambda x: jnp.any(x > 0, 1), A)

# ---- contractions ----
program("gram", lambda x: x @ x.T, A)
program("gram_of_columns", lambda x: x.T @ x, A)
program("rows_by_free", lambda x, w: x @ w, ROWS, lambda: whole((8, 4)))
program("rows_by_columns", lambda x, w: x @ w, ROWS, lambda: put((8, 4), None, "model"))
program("contracted", lambda x, w: x @ w, A, lambda: put((8, 4), "model"))
program("contracted_once", lambda x, w: x @ w, A, lambda: whole((8, 4)))
program("contracted_conflict", lambda x, w: x @ w, A, lambda: put((8, 4), "data"))
program("same_axis_twice", lambda x, w: x @ w, ROWS, lambda: put((8, 4), None, "data"))
program("matvec", lambda x, v: x @ v, A, VECTOR)
program("vecmat", lambda x, v: v @ x, A, lambda: whole((16,)))
program("outer", jnp.outer, lambda: put((16,), "data"), lambda: put((8,), "model"))
program("batched", lambda x, y: jnp.einsum("bij,bjk->bik", x, y), CUBE, lambda: put((8, 16, 4), "data"))
program("batched_by_free", lambda x, y: jnp.einsum("bij,bjk->bik", x, y), CUBE, lambda: whole((8, 16, 4)))
program("attention_scores", lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k), lambda: put((4, 8, 2, 4), "data", None, "model"),
        lambda: put((4, 8, 2, 4), "data", None, "model"))
program("mlp", lambda x, w, v: jnp.tanh(x @ w) @ v, ROWS, lambda: put((8, 16), None, "model"), lambda: put((16, 8), "model"))
program("mlp_of_free", lambda x, w, v: jnp.tanh(x @ w) @ v, ROWS, lambda: whole((8, 16)), lambda: whole((16, 8)))
program("fsdp", lambda x, w, v: jnp.tanh(x @ w) @ v, ROWS, lambda: put((8, 16), "data"), lambda: put((16, 8), "data"))
program("megatron_gradient", jax.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w) ** 2)), lambda: put((8, 16), None, "model"), ROWS)
program("gradients", jax.grad(lambda p, x: jnp.sum(jnp.tanh(x @ p[0]) @ p[1]), 0),
        lambda: (put((8, 16), None, "model"), put((16, 8), "model")), ROWS)
program("gradient_of_free", jax.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w))), lambda: whole((8, 16)), ROWS)
program("value_and_gradient", jax.value_and_grad(lambda w, x: jnp.mean((x @ w) ** 2)), lambda: put((8, 4), "data"), ROWS)
program("convolution", lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME"), lambda: put((8, 3, 6, 6), "data"),
        lambda: whole((4, 3, 3, 3)))
program("convolution_channels", lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME"), lambda: put((8, 4, 6, 6), "data"),
        lambda: put((4, 4, 3, 3), "model"))

# ---- indices ----
program("take_rows", lambda t, i: t[i], lambda: put((16, 8), "model"), lambda: put((8, 4), "data", dtype=jnp.int32))
program("take_of_columns", lambda t, i: t[i], lambda: put((16, 8), None, "model"), lambda: put((8, 4), "data", dtype=jnp.int32))
program("take_replicated", lambda t, i: t[i], lambda: put((16, 8)), lambda: put((8, 4), "data", dtype=jnp.int32))
program("one_hot", lambda i: jax.nn.one_hot(i, 8), lambda: put((16,), "data", dtype=jnp.int32))
program("take_along", lambda x, i: jnp.take_along_axis(x, i, 1), ROWS, lambda: put((16, 2), "data", dtype=jnp.int32))
program("scatter_add", lambda x, i: x.at[i].add(1.0), lambda: put((16, 8), None, "model"), lambda: whole((4,), jnp.int32))
program("embedding_gradient", jax.grad(lambda t, i: jnp.sum(jnp.sin(t[i]))), lambda: put((16, 8)),
        lambda: put((8, 4), "data", dtype=jnp.int32))

# ---- control flow ----
program("scan_over_layers", lambda x, w: lax.scan(lambda c, v: (jnp.tanh(c @ v), c.sum()), x, w), ROWS, lambda: whole((3, 8, 8)))
program("scan_rows", lambda x: lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(8), x), COLUMNS)
program("fori", lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + i, x), A)
program("while", lambda x: lax.while_loop(lambda c: c.sum() < 3, lambda c: c + 1, x), A)
program("cond", lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), A)
program("cond_of_two", lambda x, y: lax.cond(x.sum() > 0, lambda a, b: a, lambda a, b: b, x, y), ROWS, FREE)
program("vmap", jax.vmap(lambda row, w: jnp.tanh(row @ w), (0, None)), ROWS, lambda: whole((8, 4)))
program("nested_jit", lambda x: jax.jit(jnp.sin)(x) @ jnp.ones((8, 4)), A)
program("remat", jax.grad(lambda x: jnp.sum(jax.checkpoint(lambda y: jnp.sin(jnp.cos(y)))(x))), A)
program("custom_rule", lambda x: jax.nn.relu(x) + jax.nn.gelu(x), A)

# ---- constraints ----
program("constrained", lambda x: constrain(x * 2, None, "model"), ROWS)
program("constrained_then_sum", lambda x: constrain(x * 2, "data", "model").sum(1), FREE)
program("constrained_inside", lambda x, w: constrain(x @ w, "data", "model") * 2, lambda: whole((16, 8)), lambda: whole((8, 4)))
program("constrained_to_whole", lambda x: constrain(jnp.sin(x), None, None) + 1, A)
program("constrained_backwards", lambda x: (jnp.sin(x), constrain(jnp.sin(x), "data")), FREE)
program("out_shardings", lambda x: (x * 2, x.sum(0)), A, out_shardings=(NamedSharding(MESH, P(None, "data")), NamedSharding(MESH, P())))
program("in_shardings", lambda x: x @ x.T, FREE, in_shardings=NamedSharding(MESH, P("data", "model")))
program("one_axis", lambda x: jnp.tanh(x @ x.T), LONG)
program("one_axis_mean", lambda x: (x - x.mean(0)) / x.std(0), LONG)
program("uneven", lambda x: x[:6].reshape(2, 24), lambda: put((16, 8), None, "model"))
program("random", lambda x: x + jax.random.normal(jax.random.key(0), (16, 8)), A)
program("layer_norm", lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5), A)
program("cross_entropy", lambda x, i: -jnp.take_along_axis(jax.nn.log_softmax(x), i[:, None], 1).mean(), A,
        lambda: put((16,), "data", dtype=jnp.int32))

# ---- operands broadcast by elementwise operations ----
program("position_table", lambda e, p, t: e[t] + p, lambda: put((64, 4), "i", mesh=LINE), lambda: put((32, 4), "i", mesh=LINE),
        lambda: put((16, 32), "i", mesh=LINE, dtype=jnp.int32))
program("position_table_twice", lambda x, p: jnp.sin(x + p) @ jnp.cos(x + p).mT, lambda: put((8, 4, 16), "data"),
        lambda: put((4, 16), "data"))
program("repeated_rows", lambda x, b: x + b, ROWS, lambda: put((1, 8), None, "data"))
program("repeated_columns", lambda x, b: x * b, lambda: put((16, 8), None, "model"), lambda: put((16, 1), "model"))
program("repeated_split_alone", lambda x, b: x * b, FREE, lambda: put((1, 8), None, "data"))
program("outer_sum", lambda x, y: x[:, None] + y[None, :], lambda: put((16,), "data"), lambda: put((8,), "model"))
program("outer_sum_one_axis", lambda x, y: x[:, None] + y[None, :], lambda: put((16,), "data"), lambda: put((8,), "data"))
program("where_repeated", lambda m, x: jnp.where(m, x, 0.0), lambda: put((1, 8), None, "data", dtype=bool), ROWS)

if __name__ == "__main__":
  chosen = sys.argv[2:] or list(PROGRAMS)
  print(json.dumps({name: PROGRAMS[name]() for name in chosen}))
