"""Programs under Explicit axes; each returns what jax and capibara must agree on.

python explicit_programs.py jax|capibara [NAME...]      prints one JSON object {name: answer}

`make_answers.py explicit` records jax's answers.
"""
import json
import re
import sys

if sys.argv[1] == "capibara":
  import capibara.jax
  capibara.jax.install()

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P, auto_axes, explicit_axes, reshard

MESH = jax.make_mesh((4, 2), ("x", "y"))
PROGRAMS = {}


def program(function):
  PROGRAMS[function.__name__] = function
  return function


def array(shape, spec, dtype=np.float32):
  elements = np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
  return jax.device_put(elements / np.float32(8) if dtype is np.float32 else elements, NamedSharding(MESH, spec))


def values(tree):
  return [np.round(np.asarray(leaf, dtype=np.float64), 4).tolist() for leaf in jax.tree.leaves(tree)]


def types(tree):
  return [str(jax.typeof(leaf)) for leaf in jax.tree.leaves(tree)]


def specs(tree):
  """How dimensions are split; trailing dimensions that are not split are left out."""
  found = []
  for leaf in jax.tree.leaves(tree):
    entries = list(leaf.sharding.spec.partitions) if isinstance(leaf.sharding, NamedSharding) else ["single"]
    while entries and entries[-1] is None:
      entries.pop()
    found.append(str(entries))
  return found


def plain(text):
  """The text without devices, source locations and the order of sets."""
  text = re.sub(r", device_kind=[^)]*?platform=\w+", "", text)
  text = re.sub(r"frozenset\(\{([^}]*)\}\)", lambda match: "frozenset({" + ", ".join(sorted(match[1].split(", "))) + "})", text)
  text = re.sub(r"np\.int64\((-?\d+)\)", r"\1", text)
  return re.sub(r" ?This error occurs at source.*", "", text, flags=re.DOTALL)


def jaxpr(function, *args):
  """The text without line breaks, and without the mesh in context that jit repeats."""
  text = re.sub(r"\s+", " ", plain(str(jax.make_jaxpr(function)(*args))))
  return re.sub(r"ctx_mesh=Mesh\([^=]*=\([^)]*\)\) ", "", text).replace("[ ", "[").replace(" ]", "]")


def told(function, *args):
  """Values and types eagerly, values and shardings compiled, and the text."""
  with jax.set_mesh(MESH):
    eager, compiled = function(*args), jax.jit(function)(*args)
    return [values(eager), types(eager), values(compiled), types(compiled), specs(compiled), jaxpr(function, *args)]


def placed(function, *args):
  """The same without the text, for functions that jax and capibara write differently."""
  return told(function, *args)[:-1]


def typed(function, *args):
  """Only types and text."""
  with jax.set_mesh(MESH):
    return [types(jax.jit(function)(*args)), jaxpr(function, *args)]


def described(error, length=400):
  kinds = ("ShardingTypeError", "NotImplementedError", "ValueError", "TypeError", "AssertionError")
  names = [kind.__name__ for kind in type(error).__mro__]
  return [next((kind for kind in kinds if kind in names), "Exception"), plain(str(error))[:length].rstrip()]


def raised(function, *args):
  try:
    with jax.set_mesh(MESH):
      jax.make_jaxpr(function)(*args)
  except Exception as error:
    return described(error)
  return "nothing was raised"


ROWS, COLUMNS, CELLS = array((8, 4), P("x", None)), array((8, 4), P(None, "y")), array((8, 4), P("x", "y"))
WHOLE = array((8, 4), P())
W = array((4, 6), P("y", None))
CUBE = array((4, 8, 2), P("x", None, "y"))


# ---- elementwise ----------------------------------------------------------------------------------------------------

@program
def unary():
  return told(lambda x: (jnp.sin(x), -x, x.astype(jnp.int32), jnp.isnan(x)), CELLS)


@program
def binary_of_equal_shardings():
  return told(lambda x, y: x * y + x, CELLS, CELLS)


@program
def binary_with_replicated():
  return told(lambda x, y: x + y, CELLS, WHOLE)


@program
def binary_joins_axes():
  return told(lambda x, y: x - y, ROWS, COLUMNS)


@program
def binary_with_numbers():
  return told(lambda x: 2 * x + 1.5, ROWS)


@program
def binary_broadcasts():
  return told(lambda x, y: x * y, CELLS, array((1, 4), P()))


@program
def vector_and_matrix():
  return told(lambda x, y: x + y, CELLS, array((4,), P("y")))


@program
def binary_of_other_axes():
  return raised(lambda x, y: x + y, CELLS, array((8, 4), P("y", "x")))


@program
def binary_of_joined_axes():
  return raised(lambda x, y: x * y, array((8, 4), P(("x", "y"))), ROWS)


@program
def axis_twice():
  return raised(lambda x, y: x * y, array((4, 1), P("x")), array((1, 4), P(None, "x")))


@program
def integer_power_and_comparison():
  return told(lambda x: (x ** 3, x > 1, jnp.maximum(x, 1.0)), CELLS)


@program
def select():
  return placed(lambda x: jnp.where(x > 1, x, 0.0), CELLS)


@program
def select_of_other_cases():
  return raised(lambda x, y: lax.select(x > 1, x, y), CELLS, ROWS)


@program
def clip():
  return placed(lambda x: jnp.clip(x, 0.5, 1.5), ROWS)


@program
def bitcast():
  return told(lambda x: lax.bitcast_convert_type(x, jnp.int32), CELLS)


@program
def like_functions():
  return told(lambda x: (jnp.zeros_like(x), jnp.ones_like(x), jnp.full_like(x, 3)), CELLS)


# ---- reductions -----------------------------------------------------------------------------------------------------

@program
def sum_over_one_dimension():
  return told(lambda x: (x.sum(0), x.sum(1), x.sum()), CELLS)


@program
def sum_keeps_dimensions():
  return told(lambda x: x.sum(axis=1, keepdims=True), CELLS)


@program
def extrema():
  return told(lambda x: (x.max(0), x.min(1), x.prod(1)), CELLS)


@program
def mean_and_variance():
  return placed(lambda x: (x.mean(1), x.var(0)), CELLS)


@program
def any_and_all():
  return told(lambda x: (jnp.any(x > 1, axis=0), jnp.all(x > 1, axis=1)), CELLS)


@program
def arg_extrema():
  return told(lambda x: (jnp.argmax(x, axis=0), jnp.argmin(x, axis=1)), CELLS)


@program
def softmax():
  return placed(lambda x: jax.nn.softmax(x, axis=0), COLUMNS)


@program
def logsumexp():
  return placed(lambda x: jax.scipy.special.logsumexp(x, axis=1), ROWS)


@program
def cumulative_sum():
  return told(lambda x: lax.cumsum(x, axis=1), ROWS)


@program
def cumulative_sum_of_split():
  return raised(lambda x: lax.cumsum(x, axis=0), ROWS)


@program
def sort():
  return told(lambda x: lax.sort(-x, dimension=1), ROWS)


@program
def sort_of_split():
  return raised(lambda x: lax.sort(x, dimension=0), ROWS)


@program
def top_k():
  return told(lambda x: lax.top_k(x, 2), ROWS)


@program
def top_k_of_split():
  return raised(lambda x: lax.top_k(x, 2), COLUMNS)


# ---- contractions ---------------------------------------------------------------------------------------------------

@program
def matmul():
  return told(lambda x, w: x @ w, ROWS, array((4, 6), P(None, "y")))


@program
def matmul_with_one_side_split():
  return told(lambda x, w: x @ w, CELLS, array((4, 6), P()))


@program
def matmul_is_ambiguous():
  return raised(lambda x, w: x @ w, CELLS, W)


@program
def matmul_of_other_axes():
  return raised(lambda x, w: x @ w, COLUMNS, array((4, 6), P("x")))


@program
def matmul_gives_axis_twice():
  return raised(lambda x, w: x @ w, ROWS, array((4, 8), P(None, "x")))


@program
def dot_with_out_sharding():
  return told(lambda x, w: jnp.dot(x, w, out_sharding=P("x", None)), CELLS, W)


@program
def einsum_with_out_sharding():
  return told(lambda x, w: jnp.einsum("ab,bc->ac", x, w, out_sharding=P("x")), CELLS, W)


@program
def einsum_transposed_with_out_sharding():
  return told(lambda x, w: jnp.einsum("ab,bc->ca", x, w, out_sharding=P(None, "x")), CELLS, W)


@program
def einsum_unreduced():
  return typed(lambda x, w: jnp.einsum("ab,bc->ac", x, w, out_sharding=P("x", None, unreduced={"y"})), CELLS, W)


@program
def unreduced_of_other_axes():
  return raised(lambda x, w: jnp.einsum("ab,bc->ac", x, w, out_sharding=P(None, None, unreduced={"x"})), CELLS, W)


@program
def sum_of_unreduced():
  def function(x, w):
    y = jnp.einsum("ab,bc->ac", x, w, out_sharding=P("x", None, unreduced={"y"}))
    return reshard(y + y, P("x", None))
  return told(function, CELLS, W)


@program
def sum_of_unreduced_and_reduced():
  return raised(lambda x, w, z: jnp.einsum("ab,bc->ac", x, w, out_sharding=P("x", None, unreduced={"y"})) + z, CELLS, W,
                array((8, 6), P("x")))


@program
def batched_matmul():
  return told(lambda a, b: jnp.einsum("bij,bjk->bik", a, b), array((4, 2, 4), P("x")), array((4, 4, 2), P("x", None, "y")))


@program
def batched_matmul_of_other_axes():
  return raised(lambda a, b: jnp.einsum("bij,bjk->bik", a, b), array((4, 2, 4), P("x")), array((4, 4, 2), P("y")))


@program
def tensordot():
  return told(lambda a, b: jnp.tensordot(a, b, axes=((1,), (0,))), ROWS, array((4, 2, 2), P(None, "y")))


@program
def convolution():
  return told(lambda x, k: lax.conv(x, k, (1, 1), "SAME"), array((4, 2, 4, 4), P("x")), array((2, 2, 3, 3), P()))


@program
def convolution_of_split_kernel():
  return raised(lambda x, k: lax.conv(x, k, (1, 1), "SAME"), array((4, 2, 4, 4), P("x")), array((2, 2, 3, 3), P("y")))


# ---- shapes ---------------------------------------------------------------------------------------------------------

@program
def transpose():
  return told(lambda x: (x.T, jnp.transpose(x, (0, 1))), CELLS)


@program
def transpose_of_three():
  return told(lambda x: jnp.transpose(x, (2, 0, 1)), CUBE)


@program
def expand_and_squeeze():
  return told(lambda x: (x[:, None], jnp.squeeze(x[None], 0)), CELLS)


@program
def reshape_splits():
  return told(lambda x: x.reshape(4, 2, 4), CELLS)


@program
def reshape_merges():
  return told(lambda x: x.reshape(32, 2), CUBE)


@program
def reshape_over_two_axes():
  return told(lambda x: x.reshape(4, 2, 4), array((8, 4), P(("x", "y"))))


@program
def reshape_is_refused():
  return raised(lambda x: x.reshape(2, 16), CELLS)


@program
def reshape_with_out_sharding():
  return told(lambda x: jnp.reshape(x, (2, 16), out_sharding=P("y", None)), CELLS)


@program
def ravel_is_refused():
  return raised(lambda x: x.reshape(-1), COLUMNS)


@program
def broadcast():
  return told(lambda x: (jnp.broadcast_to(x, (3, 8, 4)), lax.broadcast(x, (2,))), CELLS)


@program
def broadcast_with_out_sharding():
  return told(lambda x: lax.broadcast_in_dim(x, (4, 8, 4), (1, 2), out_sharding=P("x", None, "y")), COLUMNS)


@program
def concatenate():
  return told(lambda x, y: jnp.concatenate([x, y], axis=1), CELLS, CELLS)


@program
def concatenate_of_other_shardings():
  return raised(lambda x, y: jnp.concatenate([x, y]), CELLS, ROWS)


@program
def stack():
  return told(lambda x, y: jnp.stack([x, y]), CELLS, CELLS)


@program
def split():
  return told(lambda x: jnp.split(x, 2, axis=1), CELLS)


@program
def split_unevenly():
  return raised(lambda x: lax.split(x, (3, 5), axis=0), CELLS)


@program
def pad():
  return told(lambda x: lax.pad(x, 0.0, ((0, 0, 0), (1, 1, 0))), CELLS)


@program
def pad_unevenly():
  return raised(lambda x: lax.pad(x, 0.0, ((0, 1, 0), (0, 0, 0))), CELLS)


@program
def slices():
  return told(lambda x: (lax.slice(x, (0, 1), (4, 3)), x[:, :2], x[:, 1]), ROWS)


@program
def index_of_split():
  return raised(lambda x: x[2], ROWS)


@program
def slice_unevenly():
  return raised(lambda x: lax.slice(x, (0, 0), (3, 4)), ROWS)


@program
def reverse():
  return told(lambda x: x[::-1], COLUMNS)


@program
def dynamic_slice():
  return told(lambda x: lax.dynamic_slice(x, (0, 1), (8, 2)), ROWS)


@program
def dynamic_update_slice():
  return told(lambda x, y: lax.dynamic_update_slice(x, y, (0, 1)), ROWS, array((8, 2), P("x")))


@program
def dynamic_update_slice_of_other_axes():
  return raised(lambda x, y: lax.dynamic_update_slice(x, y, (0, 1)), ROWS, array((8, 2), P()))


@program
def tile():
  return told(lambda x: jnp.tile(x, (1, 2)), ROWS)


@program
def triangles():
  return placed(lambda x: (jnp.tril(x), jnp.triu(x)), CELLS)


# ---- indices --------------------------------------------------------------------------------------------------------

@program
def gather_of_whole_rows():
  return told(lambda x, i: x[i], COLUMNS, array((3,), P(), np.int32))


@program
def gather_of_split_rows():
  return raised(lambda x, i: x[i], ROWS, array((4,), P(), np.int32))


@program
def gather_by_split_indices():
  return raised(lambda x, i: x[i], WHOLE, array((4,), P("x"), np.int32))


@program
def gather_with_out_sharding():
  return told(lambda x, i: x.at[i].get(out_sharding=P("x", None)), WHOLE, array((4,), P("x"), np.int32))


@program
def scatter_of_whole_rows():
  return told(lambda x, i, y: x.at[i].add(y), COLUMNS, array((3,), P(), np.int32), array((3, 4), P(None, "y")))


@program
def scatter_of_split_rows():
  return raised(lambda x, i, y: x.at[i].set(y), ROWS, array((3,), P(), np.int32), array((3, 4), P()))


@program
def take_along_axis():
  return placed(lambda x, i: jnp.take_along_axis(x, i, axis=1), ROWS, array((8, 1), P("x"), np.int32) % 4)


@program
def one_hot():
  return placed(lambda i: jax.nn.one_hot(i, 4), array((8,), P("x"), np.int32))


# ---- new arrays -----------------------------------------------------------------------------------------------------

@program
def zeros_with_out_sharding():
  return told(lambda: (jnp.zeros((8, 4), out_sharding=P("x", "y")), jnp.ones((8,), out_sharding=P("y")),
                       jnp.full((8,), 2.0, out_sharding=P("x"))))


@program
def arange_with_out_sharding():
  return told(lambda: (jnp.arange(8, out_sharding=P("x")), lax.broadcasted_iota(jnp.int32, (8, 4), 1, out_sharding=P("x", "y"))))


@program
def random_with_out_sharding():
  with jax.set_mesh(MESH):
    drawn = jax.random.uniform(jax.random.key(0), (8, 4), out_sharding=P("x", "y"))
    jitted = jax.jit(lambda key: jax.random.normal(key, (8, 4), out_sharding=P("x")))(jax.random.key(1))
    return [values((drawn, jitted)), types((drawn, jitted)), specs((drawn, jitted))]


@program
def out_sharding_with_unknown_axis_type():
  mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Explicit))
  try:
    with jax.set_mesh(mesh):
      jnp.zeros((8, 4), out_sharding=P("x", "y"))
  except ValueError as error:
    return plain(str(error))
  return "nothing was raised"


@program
def out_sharding_without_a_mesh():
  try:
    jnp.zeros((8, 4), out_sharding=P("x", "y"))
  except ValueError as error:
    return plain(str(error))
  return "nothing was raised"


# ---- reshard, auto_axes, explicit_axes ------------------------------------------------------------------------------

@program
def reshards():
  return told(lambda x: (reshard(x, P("x")), reshard(x, P(("x", "y"), None)), reshard(x, P())), CELLS)


@program
def reshard_of_a_tree():
  return told(lambda tree: reshard(tree, {"a": P("x"), "b": P(None, "y")}), {"a": WHOLE, "b": ROWS})


@program
def reshard_without_context():
  result = reshard(ROWS, NamedSharding(MESH, P(None, "y")))
  return [values(result), types(result), specs(result)]


@program
def reshard_of_a_host_array():
  with jax.set_mesh(MESH):
    result = reshard(np.arange(8.0, dtype=np.float32), P("x"))
  return [values(result), types(result), specs(result)]


@program
def reshard_unevenly():
  return raised(lambda x: reshard(x, P("x")), array((6, 4), P()))


@program
def auto_axes_everywhere():
  return told(lambda x, w: auto_axes(lambda a, b: jnp.sin(a @ b), out_sharding=P("x", None))(x, w), CELLS, W)


@program
def auto_axes_of_some_axes():
  return typed(lambda x: auto_axes(lambda a: a * 2, axes="y", out_sharding=P("x", "y"))(x), CELLS)


@program
def auto_axes_called_with_out_sharding():
  return told(lambda x: auto_axes(lambda a: a.reshape(2, 16))(x, out_sharding=P("y", "x")), CELLS)


@program
def auto_axes_without_out_sharding():
  return raised(lambda x: auto_axes(lambda a: a)(x), CELLS)


@program
def explicit_axes_inside_auto():
  mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
  seen = []

  def inner(a):
    seen.append(str(jax.typeof(a)))
    return a * 2

  with jax.set_mesh(mesh):
    x = jax.device_put(np.arange(8.0, dtype=np.float32), P("x"))
    y = jax.jit(lambda x: explicit_axes(inner, in_sharding=P("x"))(x))(x)
  return [values(y), types(y), seen]


@program
def mesh_in_context():
  with jax.set_mesh(MESH):
    mesh = jax.sharding.get_abstract_mesh()
    inside = auto_axes(lambda x: (str(jax.sharding.get_abstract_mesh().axis_types), x)[0] and x, out_sharding=P())(jnp.ones(4))
  return [str(mesh.axis_names), str(mesh.axis_types), str(mesh.shape_tuple), types(inside)]


@program
def constraint_asserts():
  def function(x):
    return lax.with_sharding_constraint(x * 2, P("x", "y"))
  return told(function, CELLS)


@program
def constraint_that_does_not_hold():
  return raised(lambda x: lax.with_sharding_constraint(x * 2, P("y", "x")), CELLS)


# ---- types ----------------------------------------------------------------------------------------------------------

@program
def types_of_arrays():
  mixed = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
  auto = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
  host = np.zeros((8, 4), np.float32)
  arrays = [CELLS, ROWS, WHOLE, CUBE, array((8, 4), P(("x", "y"))), array((), P())]
  arrays += [jax.device_put(host, NamedSharding(mesh, P("x", "y"))) for mesh in (mixed, auto)]
  return [types(arrays), [str(jax.typeof(one).sharding.spec) for one in arrays[:6]]]


@program
def type_has_a_sharding():
  sharding = jax.typeof(CELLS).sharding
  return [plain(repr(sharding)), str(sharding.spec), str(sharding.mesh.axis_names), sharding.mesh == MESH.abstract_mesh,
          sharding == NamedSharding(MESH.abstract_mesh, P("x", "y"))]


@program
def types_inside_jit():
  seen = []

  @jax.jit
  def function(x):
    y = jnp.sin(x)
    seen.append([str(jax.typeof(x)), str(jax.typeof(y)), str(jax.typeof(y.sum(0))), str(jax.typeof(x).sharding.spec)])
    return y

  with jax.set_mesh(MESH):
    function(CELLS)
    function(ROWS)
  return seen


@program
def shapes_without_values():
  with jax.set_mesh(MESH):
    result = jax.eval_shape(lambda x: x.sum(0), CELLS)
  return [str(result.shape), plain(str(result.sharding.spec if result.sharding is not None else None))]


@program
def meshes_that_differ():
  other = jax.make_mesh((2, 4), ("x", "y"))
  y = jax.device_put(np.zeros((8, 4), np.float32), NamedSharding(other, P("x")))
  try:
    jax.make_jaxpr(lambda a, b: a + b)(ROWS, y)
  except Exception as error:
    return plain(str(error))
  return "nothing was raised"


# ---- transforms -----------------------------------------------------------------------------------------------------

@program
def jvp():
  return told(lambda x: jax.jvp(lambda a: jnp.sin(a) * 2, (x,), (x,)), CELLS)


@program
def gradient():
  return told(lambda x: jax.grad(lambda a: jnp.sum(jnp.sin(a) * a))(x), CELLS)


@program
def gradient_of_a_product():
  return placed(lambda x, w: jax.grad(lambda a, b: jnp.sum(jnp.tanh(a @ b)), argnums=(0, 1))(x, w), ROWS, array((4, 6), P(None, "y")))


@program
def gradient_of_a_contraction():
  def loss(x, w):
    return jnp.sum(jnp.einsum("ab,bc->ac", x, w, out_sharding=P("x", None)) ** 2)
  return told(lambda x, w: jax.grad(loss, argnums=(0, 1))(x, w), CELLS, W)


@program
def gradient_of_sums():
  return told(lambda x, b: jax.grad(lambda a, c: jnp.sum((a + c) ** 2), argnums=(0, 1))(x, b), CELLS, array((4,), P("y")))


@program
def gradient_of_reshard():
  return told(lambda x: jax.grad(lambda a: jnp.sum(reshard(a, P("x")) ** 2))(x), CELLS)


@program
def gradient_of_reshape_and_slices():
  return told(lambda x: jax.grad(lambda a: jnp.sum(a.reshape(4, 2, 4)[:, 0] ** 2))(x), ROWS)


@program
def gradient_of_gather():
  return told(lambda x, i: jax.grad(lambda a: jnp.sum(a[i] ** 2))(x), COLUMNS, array((3,), P(), np.int32))


@program
def gradient_under_auto_axes():
  def loss(a):
    return jnp.sum(auto_axes(lambda b: jnp.sin(b), out_sharding=P("x", "y"))(a))
  return told(lambda x: jax.grad(loss)(x), CELLS)


@program
def vjp():
  def function(x):
    y, back = jax.vjp(lambda a: a.sum(1), x)
    return y, back(y)
  return told(function, CELLS)


@program
def vmap_over_whole():
  return told(lambda x: jax.vmap(lambda row: jnp.sin(row) * 2)(x), COLUMNS)


@program
def vmap_over_split():
  return told(lambda x, w: jax.vmap(lambda row: row @ w)(x), ROWS, array((4, 6), P(None, "y")))


@program
def vmap_of_reductions():
  return told(lambda x: jax.vmap(lambda row: (row.sum(), jnp.max(row)))(x), CELLS)


@program
def vmap_of_other_shardings():
  return raised(lambda x, y: jax.vmap(lambda a, b: a + b)(x, y), ROWS, WHOLE)


@program
def scan():
  def function(x, w):
    return lax.scan(lambda carry, row: (jnp.tanh(carry + row), carry * 2), w, x)
  return told(function, COLUMNS, array((4,), P("y")))


@program
def scan_over_split():
  return raised(lambda x: lax.scan(lambda carry, row: (carry, row), 0.0, x), ROWS)


@program
def scan_with_changing_carry():
  def function(x):
    return lax.scan(lambda carry, _: (reshard(carry, P("x")), None), x, None, length=2)[0]
  found = raised(function, CELLS)
  return [found[0], "must have equal types" in found[1]]


@program
def fori_loop():
  return told(lambda x: lax.fori_loop(0, 3, lambda i, a: jnp.sin(a) + i, x), CELLS)


@program
def cond():
  return told(lambda x: lax.cond(x.sum() > 3, lambda a: a * 2, lambda a: a - 1, x), CELLS)


@program
def custom_derivatives():
  @jax.custom_vjp
  def square(a):
    return a * a
  square.defvjp(lambda a: (a * a, a), lambda a, ct: (2 * a * ct,))
  return told(lambda x: jax.grad(lambda a: jnp.sum(square(a)))(x), CELLS)


@program
def checkpoint():
  return told(lambda x: jax.grad(lambda a: jnp.sum(jax.checkpoint(lambda b: jnp.sin(jnp.sin(b)))(a)))(x), CELLS)


@program
def jit_in_jit():
  return told(lambda x: jax.jit(lambda a: a.T)(x) * 2, CELLS)


@program
def shard_map_in_explicit_mesh():
  def function(x):
    return jax.shard_map(lambda a: lax.psum(a, "y"), in_specs=P("x", "y"), out_specs=P("x"))(x) * 2
  return told(function, CELLS)


@program
def shard_map_with_other_specs():
  return raised(lambda x: jax.shard_map(lambda a: a, in_specs=P("y", "x"), out_specs=P("y", "x"))(x), CELLS)


@program
def layers():
  def loss(params, x):
    for w, b in params:
      x = jnp.tanh(jnp.einsum("ab,bc->ac", x, w, out_sharding=P("x", None)) + b)
    return jnp.mean(x ** 2)
  params = [(array((4, 4), P("y", None)) / 4, array((4,), P())), (array((4, 4), P(None, "y")) / 4, array((4,), P()))]

  def step(params, x):
    value, grads = jax.value_and_grad(loss)(params, x)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

  with jax.set_mesh(MESH):
    value, new = jax.jit(step)(params, ROWS)
  return [values(value), values(new), types(new), specs(new)]


if __name__ == "__main__":
  chosen = sys.argv[2:] or list(PROGRAMS)
  answers = {}
  for name in chosen:
    try:
      answers[name] = PROGRAMS[name]()
    except Exception as error:
      answers[name] = ["raised", *described(error)]
  print(json.dumps(answers))
