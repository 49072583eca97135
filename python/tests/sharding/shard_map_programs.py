"""Programs of shard_map and collectives; each returns what jax and capibara must agree on.

python shard_map_programs.py jax|capibara [NAME...]      prints one JSON object {name: answer}

`make_answers.py shard_map` records jax's answers.
"""
import json
import re
import sys

from shard_map_answers import PROGRAMS, CELLS, LINE, MESH, ROWS, W, X, both, mapped, program, raised, text, values, whole

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

import sharded_array_programs  # noqa: F401  (its programs are among PROGRAMS)


@program
def psum_over_one_axis():
  return both(lambda x: lax.psum(x, "data"), CELLS, P(None, "model"), X)


@program
def psum_over_two_axes():
  return both(lambda x: lax.psum(x, ("data", "model")), CELLS, P(), X)


@program
def pmean_of_a_loss():
  return both(lambda x, w: lax.pmean(jnp.sum(jnp.sin(x @ w) * 2.0), ("data", "model")), (CELLS, P("model")), P(), X, W)


@program
def pmax_and_pmin():
  return both(lambda x: (lax.pmax(x, "data"), lax.pmin(x, ("data", "model"))), CELLS, (P(None, "model"), P()), X)


@program
def all_gather_tiled():
  return both(lambda x: lax.all_gather(x, "data", tiled=True) * 2, CELLS, CELLS, X)


@program
def all_gather_stacked():
  return both(lambda x: lax.all_gather(x, "model", axis=1), CELLS, P("data", None, "model"), X)


@program
def psum_scatter_tiled():
  return both(lambda x: lax.psum_scatter(x, "model", scatter_dimension=0, tiled=True), CELLS, CELLS, X)


@program
def psum_scatter_stacked():
  return both(lambda x: lax.psum_scatter(x, "model", scatter_dimension=1), CELLS, P(("data", "model")), X)


@program
def all_to_all_tiled():
  return both(lambda x: lax.all_to_all(x, "data", 1, 0, tiled=True), ROWS, P(None, "data"), X)


@program
def all_to_all_stacked():
  return [values(mapped(lambda x: lax.all_to_all(x, "data", 1, 0), ROWS, P(None, "data"), check_vma=check)(X)) for check in (True, False)]


@program
def ppermute_ring():
  return both(lambda x: lax.ppermute(x, "data", [(i, (i + 1) % 4) for i in range(4)]), CELLS, CELLS, X)


@program
def ppermute_with_gaps():
  return both(lambda x: lax.ppermute(x, "data", [(0, 2), (3, 1)]), CELLS, CELLS, X)


@program
def pshuffle():
  return whole(mapped(lambda x: lax.pshuffle(x, "data", [3, 2, 1, 0]), CELLS, CELLS), X)


@program
def pswapaxes():
  return whole(mapped(lambda x: lax.pswapaxes(x, "data", 1), ROWS, ROWS), X)


@program
def axis_indices_and_sizes():
  def f(x):
    return x + lax.axis_index("data") * lax.axis_size("model") + lax.axis_index("model") * 10
  return both(f, CELLS, CELLS, X)


@program
def axis_index_of_two_axes():
  return values(mapped(lambda x: x * 0 + lax.axis_index(("data", "model")), CELLS, CELLS)(X))


@program
def psum_of_a_number():
  return values(mapped(lambda x: x + lax.psum(1, "data") + lax.psum(2.0, ("data", "model")), CELLS, CELLS)(X))


@program
def psum_of_a_constant():
  return both(lambda x: lax.psum(jnp.ones(3), "data"), CELLS, P(), X)


def along_line(function):
  return mapped(function, P("i"), P("i"), mesh=LINE, check_vma=False)


@program
def groups_of_psum():
  return whole(along_line(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 3], [1, 2], [4, 5], [7, 6]])), X)


@program
def groups_of_several_sizes():
  groups = [[0, 5], [1, 2, 3, 4, 6, 7]]
  return [values(along_line(lambda x: reduce(x, "i", axis_index_groups=groups))(X)) for reduce in (lax.psum, lax.pmax, lax.pmin)]


@program
def groups_of_all_gather():
  return whole(along_line(lambda x: lax.all_gather(x, "i", axis_index_groups=[[0, 2, 4, 6], [7, 5, 3, 1]])), X)


@program
def groups_of_psum_scatter():
  groups = [[0, 2, 4, 6], [7, 5, 3, 1]]
  return values(along_line(lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, axis_index_groups=groups, tiled=True))(X))


@program
def groups_of_all_to_all():
  groups = [[0, 2, 4, 6], [7, 5, 3, 1]]
  return values(along_line(lambda x: lax.all_to_all(x, "i", 1, 0, axis_index_groups=groups, tiled=True))(X))


@program
def groups_with_types_that_vary():
  return raised(mapped(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1, 2, 3], [4, 5, 6, 7]]), P("i"), P("i"), mesh=LINE), X)[0]


@program
def functions_with_loops():
  steps = jnp.arange(4.0)
  return values(mapped(lambda x: jnp.polyval(steps, x) + jnp.searchsorted(steps, x) + jnp.interp(x, steps, steps ** 2), CELLS, CELLS)(X))


@program
def elementwise_and_constants():
  def f(x):
    return jnp.where(x > 0, x, 0.0) + jnp.arange(2.0) + jax.nn.softmax(x)
  return [values(jax.jit(mapped(f, CELLS, CELLS, check_vma=check))(X)) for check in (True, False)]


@program
def unmapped_arguments_and_results():
  return both(lambda x, w: (x @ w, w * 2), (ROWS, P()), (ROWS, P()), X, W)


@program
def captured_constants():
  return values(mapped(lambda x: x @ W, ROWS, ROWS)(X))


@program
def results_in_more_parts_than_they_vary():
  return both(lambda x: jnp.ones(3), CELLS, P("model"), X)


@program
def trees_of_arguments_and_results():
  f = mapped(lambda t, y: {"a": t["x"] + y, "b": (lax.psum(y, "data"),)}, ({"x": CELLS}, CELLS), {"a": CELLS, "b": P(None, "model")})
  return values(f({"x": X}, X * 2))


@program
def one_specification_for_all_arguments():
  return values(mapped(lambda x, y: x * y, CELLS, CELLS)(X, X))


@program
def as_a_decorator():
  @jax.shard_map(mesh=MESH, in_specs=ROWS, out_specs=ROWS)
  def f(x):
    return x * 2
  return [values(f(X)), f.__name__]


@program
def mesh_of_the_context():
  with jax.set_mesh(MESH):
    return values(jax.shard_map(lambda x: lax.psum(x, "data"), in_specs=CELLS, out_specs=P(None, "model"))(X))


@program
def only_some_axes_are_manual():
  f = mapped(lambda x: lax.psum(x, "data"), ROWS, P(), axis_names={"data"})
  return [text(f, X), values(jax.jit(f)(X))]


@program
def nested_maps():
  def outer(x):
    inner = jax.shard_map(lambda y: lax.psum(y, "model"), in_specs=P(None, "model"), out_specs=P(), axis_names={"model"})
    return inner(x) + x[:, :2]
  f = mapped(outer, ROWS, ROWS, axis_names={"data"})
  return [text(f, X), values(jax.jit(f)(X))]


@program
def nested_map_speaks_to_outer_devices():
  def outer(x):
    inner = jax.shard_map(lambda y: lax.psum(y, ("data", "model")), in_specs=P(None, "model"), out_specs=P(), axis_names={"model"})
    return inner(x)
  return values(jax.jit(mapped(outer, ROWS, P(), axis_names={"data"}))(X))


@program
def while_inside():
  def f(x):
    return lax.while_loop(lambda c: lax.pmax(c.sum(), ("data", "model")) < 20, lambda c: c * 2 + 1, x)
  return both(f, CELLS, CELLS, X)


@program
def while_that_differs_between_devices():
  return both(lambda x: lax.while_loop(lambda c: c.sum() < 10, lambda c: c + 1, x), CELLS, CELLS, X)


@program
def fori_loop_inside():
  pairs = [(0, 1), (1, 0), (2, 3), (3, 2)]
  return values(mapped(lambda x: lax.fori_loop(0, 3, lambda i, c: c + lax.ppermute(c, "data", pairs), x), CELLS, CELLS)(X))


@program
def cond_that_differs_between_devices():
  return values(mapped(lambda x: lax.cond(x.sum() > 4, lambda y: y * 2, lambda y: -y, x), CELLS, CELLS)(X))


@program
def cond_with_a_collective():
  def f(x):
    return lax.cond(lax.psum(x.sum(), ("data", "model")) > 4, lambda y: lax.psum(y, "data"), lambda y: lax.pmax(y, "data"), x)
  return values(mapped(f, CELLS, P(None, "model"))(X))


@program
def jit_inside():
  return both(lambda x: jax.jit(lambda a, b: a * b)(x, jnp.ones(())), CELLS, CELLS, X)


@program
def random_numbers_inside():
  return values(mapped(lambda x: jax.random.normal(jax.random.fold_in(jax.random.key(0), lax.axis_index("data")), (2, 2)), CELLS, ROWS)(X))


@program
def derivative_outside():
  f = mapped(lambda x, w: lax.pmean(jnp.sum(jnp.sin(x @ w) * 2.0), ("data", "model")), (CELLS, P("model")), P())
  g = mapped(lambda x, w: lax.pmean(jnp.sum(jnp.sin(x @ w) * 2.0), ("data", "model")), (CELLS, P("model")), P(), check_vma=False)
  return [values(jax.grad(f, (0, 1))(X, W)), values(jax.jit(jax.grad(g, (0, 1)))(X, W)), values(jax.jit(jax.value_and_grad(f, 1))(X, W))]


@program
def derivative_inside():
  f = mapped(lambda x: jax.grad(lambda w: lax.psum((w * x).sum() ** 2, ("data", "model")))(2.0), CELLS, P())
  return whole(f, X)


@program
def derivative_of_data_parallel_loss_inside():
  def step(w, x):
    loss, slope = jax.value_and_grad(lambda v: lax.pmean(jnp.mean((jnp.tanh(x @ v)) ** 2), "data"))(w)
    return w - 0.1 * slope, loss
  return values(jax.jit(mapped(step, (P(), ROWS), (P(), P())))(W, X))


@program
def text_of_the_derivative_without_residuals():
  f = mapped(lambda x: lax.psum(x, "data"), CELLS, P(None, "model"), check_vma=False)
  return values(jax.grad(lambda x: (f(x) ** 2).sum())(X))


@program
def forward_derivative():
  f = mapped(lambda x: jnp.sin(x).sum(0, keepdims=True), CELLS, P("data", "model"), check_vma=False)
  return text(lambda x: jax.jvp(f, (x,), (x,)), X) + values(jax.jvp(f, (X,), (X,)))


@program
def derivatives_of_collectives():
  answers = []
  for body, out in ((lambda x: lax.all_gather(x, "data", tiled=True).sum(0, keepdims=True), CELLS),
                    (lambda x: lax.psum_scatter(x, "model", scatter_dimension=0, tiled=True), CELLS),
                    (lambda x: lax.all_to_all(x, "model", 1, 0, tiled=True), P(("data", "model"))),
                    (lambda x: lax.ppermute(x, "data", [(0, 2), (3, 1)]), CELLS),
                    (lambda x: lax.all_gather(x, "model", axis=1)[:, 0] * 3, P("data", "model"))):
    for check in (True, False):
      f = mapped(body, CELLS, out, check_vma=check)
      answers.append(values(jax.grad(lambda x: (jnp.sin(f(x)) * jnp.arange(f(x).size).reshape(f(x).shape)).sum())(X)))
  return answers


@program
def second_derivative():
  f = mapped(lambda x: lax.psum(jnp.sin(x).sum(), ("data", "model")), CELLS, P())
  return values(jax.jvp(jax.grad(f), (X,), (X,)))


@program
def derivative_with_checkpoint():
  f = mapped(jax.checkpoint(lambda x, w: lax.psum(jnp.sin(jnp.sin(x @ w)).sum(), ("data", "model"))), (CELLS, P("model")), P())
  return values(jax.grad(f, (0, 1))(X, W))


@program
def vmap_outside():
  f = mapped(lambda x: lax.psum(x, "data"), CELLS, P(None, "model"))
  stacked = jnp.stack([X, X * 2, X * 3], 2)
  return [text(jax.vmap(f, in_axes=2), stacked), values(jax.vmap(f, in_axes=2)(stacked))]


@program
def vmap_inside():
  return both(lambda x: jax.vmap(lambda r: lax.psum(r * 2, "data"))(x), CELLS, P(None, "model"), X)


@program
def vmap_of_a_derivative():
  f = mapped(lambda x, w: lax.psum((jnp.sin(x) * w).sum(), ("data", "model")), (CELLS, P()), P())
  return values(jax.vmap(jax.grad(f, 1), in_axes=(None, 0))(X, jnp.arange(3.0)))


def refused(body):
  """The class of the error, the two types that it names, and whether it mentions pcast."""
  kind, message = raised(mapped(body, CELLS, CELLS), X, length=2000)
  return [kind, re.findall(r"float32\[[\d,]*\](?:\{[^}]*\})?", message)[:2], "pcast(..., (" in message]


LOOPS = (lambda x: x + lax.scan(lambda c, y: (c + x, y), jnp.zeros((2, 2)), jnp.arange(3.0))[0],
         lambda x: x + lax.fori_loop(0, 3, lambda i, c: c * x, jnp.ones((2, 2))),
         lambda x: x + lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + x), (0, jnp.zeros((2, 2))))[1],
         lambda x: x + lax.scan(lambda c, y: (lax.psum(c, "data"), y), x, jnp.arange(3.0))[0])
STARTS = (lambda x: x + lax.scan(lambda c, y: (c + x, y), jnp.zeros_like(x), jnp.arange(3.0))[0],
          lambda x: x + lax.fori_loop(0, 3, lambda i, c: c * x, jnp.ones_like(x)),
          lambda x: x + lax.fori_loop(0, 3, lambda i, c: c * x, lax.full_like(x, 2)),
          lambda x: x + lax.fori_loop(0, 3, lambda i, c: c * x, lax.pcast(jnp.ones((2, 2)), ("data", "model"), to="varying")),
          lambda x: x + lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + x), (0, jnp.full_like(x, 3)))[1])


@program
def carries_that_vary_more_or_less():
  return [refused(body) for body in LOOPS]


@program
def carries_that_begin_as_they_end():
  return [both(body, CELLS, CELLS, X) for body in STARTS]


@program
def branches_that_vary_differently():
  def every(x):
    return lax.psum(x.sum(), ("data", "model"))

  return [sorted_types(refused(body)) for body in
          (lambda x: x + lax.cond(every(x) > 0, lambda y: y, lambda y: jnp.zeros((2, 2)), x),
           lambda x: x + lax.switch(every(x).astype(int) % 3, [lambda y: y, lambda y: y * 2, lambda y: jnp.zeros((2, 2))], x))]


def sorted_types(answer):
  """The error with its types sorted, since either branch may be named first."""
  return [answer[0], sorted(answer[1]), answer[2]]


if __name__ == "__main__":
  answers = {}
  for name in sys.argv[2:] or PROGRAMS:
    try:
      answers[name] = PROGRAMS[name]()
    except Exception as error:
      import traceback
      answers[name] = "".join(traceback.format_exception(error))
  print(json.dumps(answers))
