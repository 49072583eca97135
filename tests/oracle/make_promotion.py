"""Writes promotion_x32.tsv and promotion_x64.tsv: the type of the sum of two operands, for every pair of jax's types.

    python make_promotion.py [FOLDER]          (default: packed, in tests/data)

Rows and columns are jax's short names; i*, f* and c* are Python's numbers, whose results are weak. ERR: jax raises
TypePromotionError.
"""
import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import recordings  # noqa: E402

NARROW = ["bool", "uint8", "uint16", "uint32", "int8", "int16", "int32", "bfloat16", "float16", "float32", "complex64"]
WIDE = ["uint64", "int64", "float64", "complex128"]
PYTHON = {"i*": 1, "f*": 1.0, "c*": 1j}
SMALL = ["int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
         "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]


def short(name):
  if name == "bool":
    return "b1"
  for long, letter in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
    if name.startswith(long):
      return letter + name.removeprefix(long)
  raise ValueError(name)


def sum_type(left, right):
  try:
    result = jax.eval_shape(lambda: jnp.add(left(), right()))
  except Exception as error:
    if type(error).__name__ == "TypePromotionError":
      return "ERR"
    raise
  weak = {"i": "i*", "f": "f*", "c": "c*"}
  return weak[np.dtype(result.dtype).kind] if result.weak_type else short(np.dtype(result.dtype).name)


def table(names):
  operands = {short(name): (lambda name=name: jnp.zeros((), name)) for name in names}
  order = [short(name) for name in names if name not in SMALL] + list(PYTHON) + [short(name) for name in names if name in SMALL]
  operands |= {word: (lambda value=value: value) for word, value in PYTHON.items()}
  yield ["sum", *order]
  for row in order:
    yield [row, *(sum_type(operands[row], operands[column]) for column in order)]


def main():
  for mode, names in (("x32", NARROW + SMALL), ("x64", NARROW + WIDE + SMALL)):
    jax.config.update("jax_enable_x64", mode == "x64")
    name = f"promotion_{mode}.tsv"
    output = os.path.join(sys.argv[1], name) if len(sys.argv) > 1 else recordings.path(name)
    recordings.write(output, "".join("\t".join(row) + "\n" for row in table(names)))


if __name__ == "__main__":
  main()
