"""Runs the transform programs of the C++ tests through capibara.jax: traces them, evaluates each equation, and compares with jax's values.

usage: python transform_programs.py ORACLE_FOLDER [BODY...]; prints a line for each failure and 'N passed, M failed'.
"""
import sys

import capibara.jax

capibara.jax.install()

ORACLE = sys.argv[1]
sys.path.insert(0, ORACLE)

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.extend.core import Literal  # noqa: E402

import expected  # noqa: E402
import make_transforms  # noqa: E402


def eval_jaxpr(jaxpr, consts, *args):
  """The interpreter of jax's documentation, written anew: every equation is bound again."""
  values = {}

  def read(atom):
    return atom.val if isinstance(atom, Literal) else values[atom]

  values.update(zip(jaxpr.constvars, consts, strict=True))
  values.update(zip(jaxpr.invars, args, strict=True))
  for eqn in jaxpr.eqns:
    results = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
    values.update(zip(eqn.outvars, results if eqn.primitive.multiple_results else [results], strict=True))
  return [read(atom) for atom in jaxpr.outvars]


def close(got, want):
  got, want = np.asarray(got), np.asarray(want)
  if got.dtype != want.dtype or got.shape != want.shape:
    return False
  if got.dtype.kind in "biu" or got.dtype.names:
    return bool(np.array_equal(got, want))
  wide = np.complex128 if got.dtype.kind == "c" else np.float64
  tolerance = 3e-2 if got.dtype.itemsize == 2 else 2e-5
  return np.allclose(got.astype(wide), want.astype(wide), rtol=tolerance, atol=tolerance, equal_nan=True)


def check(record):
  name, stack = record.name.split("/")
  function, x, w, _ = make_transforms.BODIES[name]
  wanted, define = make_transforms.STACKS[stack]

  def f(x, w):
    return function(x, w)

  inputs = make_transforms.make_inputs(f, x, w)
  args = [inputs[key] for key in wanted.split()]
  program = jax.make_jaxpr(define(f))(*args)
  run = lambda *args: eval_jaxpr(program.jaxpr, program.consts, *args)  # noqa: E731
  if "custom_lin" in str(program):
    run = jax.jit(run)  # it has no value, nor has it in jax: only dead-code elimination removes it
  outputs = run(*args)
  expected_outputs = [value for key, value, *_ in record.arrays if key == "output"]
  if len(outputs) != len(expected_outputs):
    return f"{len(outputs)} outputs in place of {len(expected_outputs)}"
  for i, (got, want) in enumerate(zip(outputs, expected_outputs)):
    if not close(got, want):
      return f"output {i} is {np.asarray(got)!r} in place of {np.asarray(want)!r}"
  return None


def main():
  chosen = set(sys.argv[2:])
  passed = failed = 0
  for record in expected.read("transforms.expected"):
    if chosen and record.name.split("/")[0] not in chosen:
      continue
    if "limitation" in record.fields or "error" in record.fields:
      continue
    try:
      problem = check(record)
    except Exception as error:
      problem = f"{type(error).__name__}: {error}"
    passed += problem is None
    failed += problem is not None
    if problem:
      print(f"FAIL {record.name}: {problem[:300]}")
  assert "jaxlib" not in sys.modules
  print(f"{passed} passed, {failed} failed")
  return failed > 0


if __name__ == "__main__":
  sys.exit(main())
