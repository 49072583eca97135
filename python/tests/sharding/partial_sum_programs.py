"""Values inside shard_map whose sum over devices is pending, or whose cotangents will be summed: types, texts, values, errors.

python partial_sum_programs.py jax|capibara [NAME...]      prints one JSON object {name: answer}

`make_answers.py partial_sum` records jax's answers.
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
from jax.sharding import PartitionSpec as P

jax.set_mesh(jax.make_mesh((4, 2), ("x", "y")))
SPLIT = jax.device_put(np.arange(16.0) / 4, P("x"))
WHOLE = jax.device_put(np.arange(8.0) / 4, P())
REDUCED = jax.device_put(np.arange(4.0) - 1, P(reduced={"x"}))
UNREDUCED = jax.reshard(jnp.arange(8.0), P(unreduced={"x"}))
ROWS = jax.device_put(np.sin(np.arange(32.0)).reshape(8, 4), P("x", "y"))
WEIGHTS = jax.device_put(np.cos(np.arange(12.0)).reshape(4, 3), P("y", None, reduced={"x"}))
R, U = P(reduced={"x"}), P(unreduced={"x"})
PROGRAMS = {}


def text(function, *args):
  found = re.sub(r"(, device_kind=\w+, num_cores=None, platform=\w+)", "", str(jax.make_jaxpr(function)(*args)))
  ordered = re.sub(r"frozenset\(\{([^}]*)\}\)", lambda match: "frozenset({" + ", ".join(sorted(match[1].split(", "))) + "})", found)
  return ordered.splitlines()


def told(array):
  known = jax.reshard(array, P()) if array.sharding.spec.unreduced else array
  return [str(jax.typeof(array)), np.round(np.asarray(known, dtype=np.float64), 4).tolist(),
          [np.round(np.asarray(shard.data, dtype=np.float64), 4).tolist() for shard in known.addressable_shards][:2]]


def program(name, body, in_specs, out_specs, *args, **options):
  """Values and types of the mapped function and of its gradient, and the texts of both."""
  def answer():
    mapped = jax.shard_map(body, in_specs=in_specs, out_specs=out_specs, **options)

    def total(*operands):
      result = mapped(*operands)
      return (jax.reshard(result, P()) if jax.typeof(result).sharding.spec.unreduced else result).sum()

    gradient = jax.grad(total, argnums=tuple(range(len(args))))
    return [told(jax.jit(mapped)(*args)), [told(one) for one in jax.jit(gradient)(*args)], text(mapped, *args)]
  PROGRAMS[name] = answer


def refused(name, body, in_specs, out_specs, *args, **options):
  def answer():
    try:
      jax.make_jaxpr(jax.shard_map(body, in_specs=in_specs, out_specs=out_specs, **options))(*args)
    except Exception as error:  # noqa: BLE001
      return [type(error).__name__, str(error).split("\n")[0]]
    return "nothing was raised"
  PROGRAMS[name] = answer


def gradient_text(name, body, in_specs, out_specs, arg):
  PROGRAMS[name] = lambda: text(jax.grad(lambda x: jax.shard_map(body, in_specs=in_specs, out_specs=out_specs)(x).sum()), arg)


program("square_of_reduced", lambda a: a * a, R, R, REDUCED)
program("sine_of_reduced", jnp.sin, R, R, REDUCED)
program("gather_to_reduced", lambda a: lax.all_gather(a, "x", tiled=True, to="reduced"), P("x"), R, SPLIT)
program("gather_stacked_to_reduced", lambda a: lax.all_gather(a, "x", to="reduced"), P("x"), R, SPLIT)
program("cast_to_unreduced", lambda a: lax.pcast(a, "x", to="unreduced"), P("x"), U, SPLIT)
program("unreduced_by_specification", lambda a: a, P("x"), U, SPLIT)
program("cast_to_reduced", lambda a: lax.pcast(a, "x", to="reduced"), P(), R, WHOLE)
program("reduced_to_varying", lambda a: lax.pcast(a, "x", to="varying"), R, P("x"), REDUCED)
program("cast_inserted", lambda a, b: a * b, (P("x"), R), P("x"), SPLIT, REDUCED)
program("cast_inserted_before_product", lambda a, b: lax.psum(a @ b, "y"), (P("x", "y"), P("y", None, reduced={"x"})), P("x"),
        ROWS, WEIGHTS)
program("sum_of_unreduced", lambda a: lax.psum(a, "x"), U, P(), UNREDUCED)
program("scatter_of_unreduced", lambda a: lax.psum_scatter(a, "x", tiled=True), U, P("x"), UNREDUCED)
program("added_unreduced", lambda a: a + a, U, U, UNREDUCED)
program("total_of_unreduced", lambda a: a.sum(), U, U, UNREDUCED)
program("part_of_reduced", lambda a: a[1:3].reshape(2, 1), R, R, REDUCED)
program("loop_over_reduced", lambda a: lax.scan(lambda c, _: (c + c, None), a, None, length=2)[0], R, R, REDUCED)
program("reduced_along_one_axis", lambda a: lax.psum(lax.all_gather(a, "y", axis=1, tiled=True, to="reduced").sum(), "x"), P("x", "y"),
        P(reduced={"y"}), ROWS)
program("product_unreduced", lambda a, b: a @ b, (P(None, "x"), P("x", None)), U,
        jax.device_put(np.arange(32.0).reshape(4, 8) / 8, P(None, "x")), jax.device_put(np.arange(16.0).reshape(8, 2) / 8, P("x", None)))

gradient_text("text_of_gathered", lambda a: lax.all_gather(a, "x", tiled=True, to="reduced"), P("x"), R, SPLIT)
gradient_text("text_of_announced", lambda a: lax.pcast(a, "x", to="reduced"), P(), R, WHOLE)
gradient_text("text_of_square", lambda a: a * a, R, R, REDUCED)
gradient_text("text_of_scattered", lambda a: lax.psum_scatter(a, "x", tiled=True), U, P("x"), UNREDUCED)
gradient_text("text_of_summed", lambda a: lax.psum(a, "x"), U, P(), UNREDUCED)

refused("unreduced_not_in_out_specs", lambda a: a, U, P(), UNREDUCED)
refused("reduced_not_in_out_specs", lambda a: a, R, P(), REDUCED)
refused("reduced_in_out_specs_alone", lambda a: a, P(), R, WHOLE)
refused("unreduced_in_out_specs_alone", lambda a: a, P(), U, WHOLE)
refused("in_specs_without_sum", lambda a: lax.psum(a, "x"), P(), P(), UNREDUCED)
refused("sum_of_reduced", lambda a: lax.psum(a, "x"), R, P(), REDUCED)
refused("maximum_of_unreduced", lambda a: lax.pmax(a, "x"), U, P(), UNREDUCED)
refused("cast_unreduced_to_varying", lambda a: lax.pcast(a, "x", to="varying"), U, P("x"), UNREDUCED)
refused("cast_varying_to_varying", lambda a: lax.pcast(a, "x", to="varying"), P("x"), P("x"), SPLIT)
refused("cast_invariant_to_unreduced", lambda a: lax.pcast(a, "x", to="unreduced"), P(), U, WHOLE)
refused("cast_varying_to_reduced", lambda a: lax.pcast(a, "x", to="reduced"), P("x"), R, SPLIT)
refused("cast_of_mixed_axes", lambda a: lax.psum(a, ("x", "y")), U, P(), UNREDUCED)
refused("gather_of_invariant", lambda a: lax.all_gather(a, "x", to="reduced"), P(), R, WHOLE)
refused("product_of_unreduced", lambda a: a * a, U, U, UNREDUCED)
refused("sine_of_unreduced", jnp.sin, U, U, UNREDUCED)
refused("reduced_times_replicated", lambda a: a * jnp.arange(4.0), R, R, REDUCED)

if __name__ == "__main__":
  chosen = sys.argv[2:] or list(PROGRAMS)
  print(json.dumps({name: PROGRAMS[name]() for name in chosen}))
