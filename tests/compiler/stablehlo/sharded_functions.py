"""Functions over eight devices, whose text jax writes and capibara reads: FUNCTIONS is {name: (function, arguments)}."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

FUNCTIONS = {}
AUTO = AxisType.Auto
MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AUTO, AUTO))
LINE = jax.make_mesh((8,), ("i",), axis_types=(AUTO,))
CUBE = jax.make_mesh((2, 2, 2), ("x", "y", "z"), axis_types=(AUTO,) * 3)
TYPED = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
CELLS, ROWS = P("data", "model"), P("data")


def numbers(*shape, scale=0.25):
  """Values that are the same on every machine: multiples of 1/64."""
  size = int(np.prod(shape))
  return (np.round(np.sin(np.arange(size) * 1.7 + size) * 64) / 64 * scale).astype(np.float32).reshape(shape)


X, W, V = numbers(8, 4, scale=4), numbers(4, 6), numbers(6, 4)
ROW = numbers(8, 16, scale=2)


def add(*arguments, name=None):
  def keep(function):
    FUNCTIONS[name or function.__name__] = (function, arguments)
    return function
  return keep


def mapped(function, in_specs, out_specs, mesh=MESH, **options):
  return jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)


def add_map(name, function, in_specs, out_specs, *arguments, mesh=MESH, **options):
  FUNCTIONS[name] = (mapped(function, in_specs, out_specs, mesh, **options), arguments)


def placed(x, *spec, mesh=MESH):
  return lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))


# ---- each collective ------------------------------------------------------------------------------------------------

add_map("psum_one_axis", lambda x: lax.psum(x, "data"), CELLS, P(None, "model"), X)
add_map("psum_two_axes", lambda x: lax.psum(x, ("data", "model")), CELLS, P(), X)
add_map("psum_axes_turned", lambda x: lax.psum(x * 2, ("model", "data")), CELLS, P(), X)
add_map("psum_integers", lambda x: lax.psum(x, "model"), CELLS, ROWS, np.arange(32, dtype=np.int32).reshape(8, 4))
add_map("psum_bfloat16", lambda x: lax.psum(x.astype(jnp.bfloat16), "model").astype(jnp.float32), CELLS, ROWS, X)
add_map("psum_complex", lambda x: lax.psum(x + 1j * x, "data"), CELLS, P(None, "model"), X)
add_map("psum_of_two", lambda x: lax.psum((x, x * 3), "data"), CELLS, (P(None, "model"),) * 2, X)
add_map("pmean_loss", lambda x, w: lax.pmean(jnp.sum(jnp.sin(x @ w)), ("data", "model")), (CELLS, P("model")), P(), X, W)
add_map("pmax_pmin", lambda x: (lax.pmax(x, "data"), lax.pmin(x, ("data", "model"))), CELLS, (P(None, "model"), P()), X)
add_map("all_gather_tiled", lambda x: lax.all_gather(x, "data", tiled=True) * 2, CELLS, CELLS, X)
add_map("all_gather_stacked", lambda x: lax.all_gather(x, "model", axis=1), CELLS, P("data", None, "model"), X)
add_map("all_gather_two_axes", lambda x: lax.all_gather(x, ("model", "data"), tiled=True), CELLS, CELLS, X)
add_map("psum_scatter_tiled", lambda x: lax.psum_scatter(x, "model", scatter_dimension=0, tiled=True), CELLS, CELLS, X)
add_map("psum_scatter_stacked", lambda x: lax.psum_scatter(x, "model", scatter_dimension=1), CELLS, P(("data", "model")), X)
add_map("all_to_all_tiled", lambda x: lax.all_to_all(x, "data", 1, 0, tiled=True), ROWS, P(None, "data"), X)
add_map("all_to_all_stacked", lambda x: lax.all_to_all(x, "data", 1, 0), ROWS, P(None, "data"), X)
add_map("all_to_all_two_axes", lambda x: lax.all_to_all(x, ("data", "model"), 1, 0, tiled=True), P(("data", "model")),
        P(None, ("data", "model")), ROW)
add_map("ppermute_ring", lambda x: lax.ppermute(x, "data", [(i, (i + 1) % 4) for i in range(4)]), CELLS, CELLS, X)
add_map("ppermute_gaps", lambda x: lax.ppermute(x, "data", [(0, 2), (3, 1)]), CELLS, CELLS, X)
add_map("ppermute_two_axes", lambda x: lax.ppermute(x, ("data", "model"), [(i, (i + 3) % 8) for i in range(8)]), CELLS, CELLS, X)
add_map("pshuffle", lambda x: lax.pshuffle(x, "data", [3, 2, 1, 0]), CELLS, CELLS, X)
add_map("pswapaxes", lambda x: lax.pswapaxes(x, "data", 1), ROWS, ROWS, X)
add_map("axis_index", lambda x: x + lax.axis_index("data") * 10 + lax.axis_index("model"), CELLS, CELLS, X)
add_map("axis_index_two_axes", lambda x: x * 0 + lax.axis_index(("model", "data")), CELLS, CELLS, X)
add_map("axis_index_slice", lambda x: lax.dynamic_slice_in_dim(x, lax.axis_index("data") * 2, 2), P(), ROWS, X)

GROUPS = [[0, 3], [1, 2], [4, 5], [7, 6]]
LINES = dict(mesh=LINE, check_vma=False)
add_map("groups_psum", lambda x: lax.psum(x, "i", axis_index_groups=GROUPS), P("i"), P("i"), X, **LINES)
add_map("groups_pmax", lambda x: lax.pmax(x, "i", axis_index_groups=GROUPS), P("i"), P("i"), X, **LINES)
add_map("groups_all_gather", lambda x: lax.all_gather(x, "i", axis_index_groups=GROUPS, tiled=True), P("i"), P("i"), X, **LINES)
add_map("groups_psum_scatter", lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, axis_index_groups=GROUPS, tiled=True),
        P("i"), P("i"), X, **LINES)
add_map("groups_all_to_all", lambda x: lax.all_to_all(x, "i", 1, 0, axis_index_groups=GROUPS, tiled=True), P("i"), P("i"), X, **LINES)
add_map("cube_psum", lambda x: lax.psum(x, ("x", "z")), P("x", "z"), P(None, None), X, mesh=CUBE)


# ---- nested, partly manual, control flow --------------------------------------------------------------------------

add_map("partly_manual", lambda x, w: lax.psum(jnp.tanh(x @ w), "data"), (ROWS, P()), P(), X, W, axis_names={"data"})
add_map("partly_manual_constraint", lambda x: lax.psum(lax.with_sharding_constraint(x * 2, P(None, "model")), "data") + 1, ROWS, P(), X,
        axis_names={"data"})
add_map("partly_manual_index", lambda x: x * lax.axis_index("data"), ROWS, ROWS, X, axis_names={"data"})


@add(X)
def nested(x):
  def inner(y):
    return y + lax.psum(y, "model") * lax.axis_index("data")

  def outer(y):
    return jax.shard_map(inner, in_specs=P(None, "model"), out_specs=P(None, "model"), axis_names={"model"})(y * 2)
  return mapped(outer, ROWS, ROWS, axis_names={"data"})(x)


@add(X)
def called_function(x):
  step = jax.jit(lambda y: y - lax.pmean(y, "data"))
  return mapped(lambda y: step(step(y) * 2), CELLS, CELLS)(x)


@add(X)
def scan_inside(x):
  def body(y):
    def step(carry, row):
      return lax.ppermute(carry, "data", [(i, (i + 1) % 4) for i in range(4)]) + row, carry.sum()
    return lax.scan(step, y, jnp.arange(3.0))
  return mapped(body, CELLS, (CELLS, P(None)), check_vma=False)(x)


@add(X)
def while_inside(x):
  def body(y):
    def more(state):
      return lax.psum(jnp.sum(state), ("data", "model")) < 500
    return lax.while_loop(more, lambda state: state * 1.5 + 1, y)
  return mapped(body, CELLS, CELLS)(x)


@add(X)
def cond_inside(x):
  def body(y):
    return lax.cond(lax.axis_index("data") > 1, lambda v: v * 2, lambda v: v - 1, y)
  return mapped(body, CELLS, CELLS)(x)


@add(X)
def remat_inside(x):
  def body(y):
    return jax.checkpoint(lambda v: lax.psum(jnp.sin(jnp.sin(v)), "model"))(y)
  return jax.grad(lambda v: mapped(body, CELLS, ROWS)(v).sum())(x)


@add(X)
def batched_map(x):
  return jax.vmap(mapped(lambda v: lax.psum(v, "data") * v, ROWS, ROWS), in_axes=1, out_axes=1)(x)


@add(X)
def random_numbers(x):
  def body(y):
    key = jax.random.fold_in(jax.random.key(3), lax.axis_index("data"))
    return y + jax.random.uniform(key, y.shape)
  return mapped(body, ROWS, ROWS)(x)


@add(X)
def two_maps(x):
  y = mapped(lambda v: lax.psum_scatter(v, "data", tiled=True), P(None, "model"), CELLS)(x)
  return mapped(lambda v: lax.all_gather(v, "model", axis=1, tiled=True), CELLS, P("data"), check_vma=False)(jnp.cos(y) + 1)


# ---- training steps -------------------------------------------------------------------------------------------------

def loss_of(parameters, x):
  w, v = parameters
  return jnp.mean((jnp.tanh(x @ w) @ v - x) ** 2)


def step(loss, parameters, x):
  value, slopes = jax.value_and_grad(loss)(parameters, x)
  return value, [p - 0.5 * s for p, s in zip(parameters, slopes)]


@add(W, V, X)
def grad_of_map(w, v, x):
  loss = mapped(lambda w, v, x: lax.pmean(loss_of((w, v), x), "data"), (P(), P(), ROWS), P())
  return jax.grad(loss, argnums=(0, 1, 2))(w, v, x)


@add(X)
def second_derivative_of_map(x):
  loss = mapped(lambda y: lax.psum(jnp.sum(jnp.sin(y) * y), ("data", "model")), CELLS, P())
  return jax.grad(lambda y: jnp.sum(jax.grad(loss)(y) ** 2))(x)


@add(W, V, X)
def data_parallel(w, v, x):
  return step(loss_of, [placed(w), placed(v)], placed(x, ("data", "model")))


@add(W, V, X)
def data_parallel_map(w, v, x):
  def body(w, v, x):
    value, slopes = jax.value_and_grad(loss_of)((w, v), x)
    slopes = lax.pmean(slopes, "data")
    return lax.pmean(value, "data"), [p - 0.5 * s for p, s in zip((w, v), slopes)]
  return mapped(body, (P(), P(), ROWS), (P(), [P(), P()]), check_vma=False)(w, v, x)


@add(numbers(8, 16), numbers(16, 8), numbers(16, 8))
def fully_sharded(w, v, x):
  def loss(parameters, x):
    w, v = (placed(p) for p in parameters)  # gathered for use
    return jnp.mean((jnp.tanh(x @ w) @ v - x) ** 2)
  value, parameters = step(loss, [placed(w, "data"), placed(v, "data")], placed(x, "data"))
  return value, [placed(p, "data") for p in parameters]


@add(numbers(8, 16), numbers(16, 8), numbers(16, 8))
def fully_sharded_map(w, v, x):
  def body(w, v, x):
    def loss(parameters):
      w, v = (lax.all_gather(p, "data", tiled=True) for p in parameters)
      return jnp.mean((jnp.tanh(x @ w) @ v - x) ** 2)
    value, slopes = jax.value_and_grad(loss)((w, v))
    return lax.pmean(value, "data"), [p - 0.125 * s for p, s in zip((w, v), slopes)]
  return mapped(body, (ROWS, ROWS, ROWS), (P(), [ROWS, ROWS]))(w, v, x)


@add(W, V, X)
def megatron(w, v, x):
  def loss(parameters, x):
    w, v = placed(parameters[0], None, "model"), placed(parameters[1], "model", None)
    hidden = placed(jnp.tanh(x @ w), "data", "model")
    return jnp.mean((placed(hidden @ v, "data", None) - x) ** 2)
  return step(loss, [w, v], placed(x, "data"))


@add(W, V, X)
def megatron_map(w, v, x):
  def loss(w, v, x):
    hidden = jnp.tanh(x @ w)
    return lax.pmean(jnp.mean((lax.psum(hidden @ v, "model") - x) ** 2), "data")
  specs = (P(None, "model"), P("model"), ROWS)
  value, slopes = jax.value_and_grad(mapped(loss, specs, P()), argnums=(0, 1))(w, v, x)
  return value, [w - slopes[0], v - slopes[1]]


def typed(x, *spec):
  return jax.device_put(x, NamedSharding(TYPED, P(*spec)))


@add(typed(W, None, "model"), typed(V, "model", None), typed(X, "data", None))
def named_types(w, v, x):
  hidden = jnp.tanh(jnp.einsum("bi,ij->bj", x, w))
  return jnp.einsum("bj,jk->bk", hidden, v, out_sharding=NamedSharding(TYPED, P("data", None)))


@add(numbers(8, 4), numbers(8, 4), numbers(8, 4))
def ring_attention(q, k, v):
  def body(q, k, v):
    def turn(carry, _):
      k, v, top, bottom = carry
      weights = jnp.exp(q @ k.T)
      top, bottom = top + weights @ v, bottom + weights.sum(1, keepdims=True)
      k, v = (lax.ppermute(a, "i", [(n, (n + 1) % 8) for n in range(8)]) for a in (k, v))
      return (k, v, top, bottom), None
    (_, _, top, bottom), _ = lax.scan(turn, (k, v, jnp.zeros_like(q), jnp.zeros_like(q[:, :1])), None, length=8)
    return top / bottom
  return mapped(body, (P("i"),) * 3, P("i"), mesh=LINE)(q, k, v)


@add(numbers(8, 4), numbers(8, 4, 4))
def experts(x, w):
  def body(x, w):
    sent = lax.all_to_all(x.reshape(8, 1, -1), "i", 0, 0, tiled=True)  # sends a part of each row to each expert
    return lax.all_to_all(jnp.tanh(sent * w.sum()), "i", 0, 0, tiled=True).reshape(x.shape)
  return mapped(body, (P("i"), P("i")), P("i"), mesh=LINE)(jnp.tile(x, (8, 2)), w)


@add(X)
def custom_rule_inside(x):
  @jax.custom_vjp
  def double(v):
    return v * 2
  double.defvjp(lambda v: (double(v), None), lambda _, slope: (slope * 3,))
  return jax.grad(lambda y: mapped(lambda v: lax.psum(double(v).sum(), "data"), ROWS, P())(y))(x)


