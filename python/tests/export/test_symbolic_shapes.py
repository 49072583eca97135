"""Shapes with symbolic sizes: their text, arithmetic, comparisons, and results of eval_shape, as in jax."""
import jax as oracle
import jax.export as oracle_export
import numpy as np
import pytest

import capibara.jax as jax
from capibara.jax import export

PEERS = [(jax, export), (oracle, oracle_export)]


def both(ask):
  """capibara's answer and jax's; errors by the name of their class."""
  answers = []
  for module, exports in PEERS:
    try:
      answers.append(str(ask(module, exports)))
    except Exception as error:
      answers.append(type(error).__name__)
  return answers


@pytest.mark.parametrize("text", [
    "a, b, a*b + b + a + 3, 4", "(b, 2*h)", "floordiv(a + 3, 2)*b, mod(a, 2) + floordiv(b, 2) + a^2*b", "max(a, b), min(a, 3), a - a + 1",
    "b,", "", "-1*a + 5*b",
    "b c", "b, ...", "1a", "b/2", "_"])
def test_texts_are_read_and_shown_as_by_jax(text):
  got, want = both(lambda _, exports: exports.symbolic_shape(text))
  assert got == want


@pytest.mark.parametrize("text, like", [("b, ...", (3, 4, 5)), ("_, b", (3, 4)), (None, (3, 4)), ("3, b", (4, 5)), ("b", (3, 4))])
def test_placeholders_are_filled(text, like):
  got, want = both(lambda _, exports: exports.symbolic_shape(text, like=like))
  assert got == want


ARITHMETIC = {
    "sums": lambda a, b: (a + b, b + a, 3 - a, a - a, -a, a + 1 - 1, sum([a, b, 2])),
    "products": lambda a, b: (2 * a, a * b, a * a * b, a**3, (a + 1) * (b - 1)),
    "quotients": lambda a, b: (a // 2, (2 * a) // 2, (2 * a + 3) // 2, a * b // b, (a * a + a * b) // a, 10 // a, divmod(a, 3), (a + 4) % 2,
                               (4 * a) % 2, (a * 6) // (a * 2)),
    "comparisons": lambda a, b: (a >= 1, a + 1 > a, 2 * a >= a, a == a, a != b, a == b, a <= a * b, a * b >= 1, a < a + b),
    "undecided": lambda a, b: a >= 2, "undecided order": lambda a, b: a > b, "undecided maximum": lambda a, b: max(a, 3),
    "number": lambda a, b: int(a)}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_is_that_of_jax(name):
  got, want = both(lambda _, exports: ARITHMETIC[name](*exports.symbolic_shape("a, b")))
  assert got == want


@pytest.mark.parametrize("constraints, ask", [
    (("n>=2",), lambda n, m: (n >= 2, n > 1)), (("m<=n",), lambda n, m: (n >= m, n + 1 > m, n - m >= 0)),
    (("mod(n,4)==0",), lambda n, m: (n % 4, n // 4 * 4)), (("n<=8", "n>=3"), lambda n, m: (n <= 8, n < 9, n >= 3)),
    (("n == 2*m",), lambda n, m: (n, n - m)),
    (("n>=",), None), (("n",), None), ("n>=2", None)])
def test_constraints_decide_as_in_jax(constraints, ask):
  got, want = both(lambda _, exports: ask(*exports.symbolic_shape("n, m", scope=exports.SymbolicScope(constraints))))
  assert got == want or (ask is None and "Error" in got and "Error" in want)


FUNCTIONS = {
    "rearranged": lambda jnp, x, y: (x.reshape(-1), x.T, x[:, None] * x, jnp.concatenate([x, x]), x.shape[0] * x, x.sum(0)),
    "matmuls": lambda jnp, x, y: (x @ y, jnp.einsum("bi,ij->jb", x, y), (x @ x.T).reshape(-1)),
    "halves": lambda jnp, x, y: (x[::2], x[1::3], x[:-1]),
    "pairs": lambda jnp, x, y: {"outer": y[None, :, :, None] * x[:, None, None], "n": jnp.zeros(3)},
    "padded": lambda jnp, x, y: (jnp.pad(x, ((1, 2), (0, 0))), jnp.repeat(x, 3, 0), jnp.arange(x.shape[0]))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_eval_shape_gives_the_expressions_of_jax(name):
  def ask(module, exports):
    b, h = exports.symbolic_shape("b, h")
    types = (module.ShapeDtypeStruct((b, 4), np.float32), module.ShapeDtypeStruct((4, h), np.float32))
    found = module.eval_shape(lambda x, y: FUNCTIONS[name](module.numpy, x, y), *types)
    return [leaf.shape for leaf in module.tree.leaves(found)], module.tree.structure(found)
  got, want = both(ask)
  assert got == want


@pytest.mark.parametrize("window, stride, padding", [(3, 2, "SAME"), (2, 2, "VALID"), (3, 1, "VALID"), (4, 3, "SAME")])
def test_sizes_of_windows_hold_for_every_size(window, stride, padding):
  size, = export.symbolic_shape("n", constraints=["n>=5"])
  kernel = jax.numpy.ones((window, 1, 1))
  convolve = lambda x: jax.lax.conv_general_dilated(x, kernel, (stride,), padding, dimension_numbers=("NWC", "WIO", "NWC"))
  found = jax.eval_shape(convolve, jax.ShapeDtypeStruct((2, size, 1), "float32")).shape
  assert found[0] == 2 and found[2] == 1
  for n in range(5, 30):
    assert found[1].value({"n": n}) == convolve(jax.numpy.ones((2, n, 1))).shape[1]


def test_constraints_choose_the_sizes_a_function_is_traced_for():
  seen = []
  n, = export.symbolic_shape("n", constraints=["n<=8", "mod(n, 4) == 0"])
  jax.eval_shape(lambda x: seen.append(x.shape[0]) or x, jax.ShapeDtypeStruct((n,), "float32"))
  assert seen and all(size <= 8 and size % 4 == 0 for size in seen)


def test_specs_of_arguments():
  got, want = both(lambda module, exports: exports.symbolic_args_specs(
      (module.numpy.ones((2, 3)), {"y": module.numpy.ones(4)}), ("b, 3", None)))
  assert got == want
