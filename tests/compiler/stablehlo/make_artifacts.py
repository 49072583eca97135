"""Records portable artifacts of StableHLO and exported functions as jax writes them, with their text.

    python make_artifacts.py          writes tests/data/artifacts.tar.xz

NAME.exported is the output of jax.export.serialize, NAME.mlir the text of its module; NAME.VERSION.mlirbc is an artifact of that version
of StableHLO that checks itself: @main calls the function on constants and compares with custom calls @check.expect_*.
"""
import os
import pathlib
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path += [str(ROOT / "tests" / "data"), str(ROOT / "tests" / "oracle"), str(ROOT / "python" / "tests" / "export")]

import jax  # noqa: E402
import make_stablehlo  # noqa: E402
import numpy as np  # noqa: E402
import recordings  # noqa: E402
from exported_functions import FUNCTIONS, KEY  # noqa: E402
from jax import export  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jax._src.lib.mlir import ir  # noqa: E402
from jaxlib.mlir.dialects import stablehlo  # noqa: E402

VERSIONS = ("0.15.0", "0.20.0", "1.0.0", "1.4.0", "1.8.0", "1.12.0", "1.13.0", "1.17.0")
NAMES = ("a training step", "attention", "scan", "while_loop that reads a value from outside", "switch", "nested jit", "gather",
         "scatter_add", "sort of two", "reduce of pairs", "reduce_window", "strided convolution", "batched products", "complex product",
         "rfft", "random normal", "cholesky", "top_k", "a constant of int4", "a constant of float8_e4m3fn", "booleans as a constant", "pad",
         "bitcast to bytes", "a tree of every kind")


class Context:
  """The runner interface that self_checking needs."""

  def __init__(self):
    self.ir, self.context = ir, mlir.make_ir_context()


def main():
  made = {}
  for index, name in enumerate(NAMES):
    builder, args = FUNCTIONS[name]
    args = [jax.random.key(3) if arg is KEY else arg for arg in args]
    function = jax.jit(builder(jax), keep_unused=True)
    exported = export.export(function)(*args)
    stem = name.replace(" ", "_")
    made[f"{stem}.exported"] = bytes(exported.serialize(vjp_order=1 if index == 0 else 0))
    made[f"{stem}.mlir"] = exported.mlir_module().encode()
    leaves = [np.asarray(jax.random.key_data(x) if name == "random normal" else x) for x in jax.tree.leaves(args)]
    outputs = [np.asarray(x) for x in jax.tree.leaves(function(*args))]
    text = make_stablehlo.self_checking(Context(), exported.mlir_module(), leaves, outputs)
    for version in VERSIONS[index % len(VERSIONS):]:  # the first version that has all its operations
      try:
        made[f"{stem}.{version}.mlirbc"] = stablehlo.serialize_portable_artifact_str(text, version)
        break
      except ValueError:
        pass
  recordings.pack(recordings.output("artifacts"), {f"artifacts/{file}": content for file, content in made.items()})


if __name__ == "__main__":
  main()
