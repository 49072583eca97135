"""checkify of functions whose parts run on eight devices: the error of each device.

python mesh_check_programs.py jax|capibara [NAME...]      prints one JSON object {name: answer}

`make_answers.py mesh_check` records jax's answers.
"""
from mesh_telling import answer, auto_mesh, program, ramp, values  # isort: skip

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import checkify
from jax.sharding import PartitionSpec as P


def _positive(x):
  checkify.check(jnp.all(x > 0), "must be positive, got {least}", least=jnp.min(x))
  return jnp.log(x)


def _reported(function, x, errors=checkify.user_checks):
  found = []
  for run in (checkify.checkify(function, errors=errors), jax.jit(checkify.checkify(function, errors=errors))):
    error, out = run(x)
    found.append([error.get(), values(out)])
  assert str(found[0]) == str(found[1])
  return found[0]


@program
def checks_on_every_device():
  line, cells = auto_mesh(8), auto_mesh(4, 2)
  good = jnp.asarray(ramp(16)) + 1
  bad = good.at[9].set(-1).at[3].set(-7)
  one = jax.shard_map(_positive, mesh=line, in_specs=P("x"), out_specs=P("x"))
  two = jax.shard_map(_positive, mesh=cells, in_specs=P(("x", "y")), out_specs=P(("x", "y")))
  logarithm = jax.shard_map(jnp.log, mesh=line, in_specs=P("x"), out_specs=P("x"), check_vma=False)
  return [_reported(one, good), _reported(one, bad), _reported(two, bad), _reported(logarithm, bad, checkify.float_checks),
          _reported(jax.pmap(_positive), good.reshape(8, 2)), _reported(jax.pmap(_positive), bad.reshape(8, 2))]


@program
def checks_of_sums_loops_and_branches():
  mesh = auto_mesh(8)

  def summed(x):
    total = lax.psum(x, "x")
    checkify.check(jnp.all(total < 10), "too large: {first}", first=total[0])
    return total

  def looped(x):
    def step(carry, _):
      checkify.check(jnp.all(carry < 30), "carry {most}", most=jnp.max(carry))
      return carry * 2, None
    return lax.scan(step, x, None, length=3)[0]

  def branched(x):
    return lax.cond(x[0] > 1, _positive, lambda x: x * 2, x)

  def mapped(function, out=P("x"), check=False):  # jax rejects loops whose checks vary
    return jax.shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=out, check_vma=check)
  x = jnp.asarray(ramp(16)) + 1
  return [_reported(mapped(summed, P(), True), x), _reported(mapped(looped), x * 4),
          _reported(mapped(branched), x.at[9].set(-1).at[10].set(7.)),
          _reported(jax.grad(lambda x: mapped(_positive, check=True)(x).sum()), x.at[9].set(-1))]


if __name__ == "__main__":
  answer()
