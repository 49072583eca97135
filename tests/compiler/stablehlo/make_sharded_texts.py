"""Records jax's own texts of sharded_functions.py over eight devices, closed over their arguments, with jax's values.

    python make_sharded_texts.py [NAME...]          writes NAME.mlir of tests/data/sharded.tar.xz; all of them without NAMEs

Each module checks itself: @main calls @program, which is jax's text, and compares with custom calls @check.expect_*. Each function
runs in its own process, repeatedly if it dies: jax's threads can crash a process with eight devices on few cores.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "data"))

import recordings  # noqa: E402


def record(name, output):
  sys.path.insert(0, str(HERE.parents[1] / "oracle"))
  import jax
  import numpy as np
  from jax._src.interpreters import mlir
  from jax._src.lib.mlir import ir

  import make_stablehlo
  from sharded_functions import FUNCTIONS

  class Context:
    """The runner interface that self_checking needs."""
    def __init__(self):
      self.ir, self.context = ir, mlir.make_ir_context()

  function, arguments = FUNCTIONS[name]
  jitted = jax.jit(function, keep_unused=True)
  lowered = jitted.lower(*arguments)
  outputs = [np.asarray(leaf) for leaf in jax.tree.leaves(jitted(*arguments))]
  text = make_stablehlo.self_checking(Context(), lowered.as_text(), [np.asarray(a) for a in arguments], outputs)
  pathlib.Path(output).write_text(text)


def start(name, folder, tries=4):
  environment = dict(os.environ, XLA_FLAGS="--xla_force_host_platform_device_count=8", JAX_PLATFORMS="cpu")
  for _ in range(tries):
    try:
      done = subprocess.run([sys.executable, __file__, "--record", name, f"{folder}/{name}.mlir"], capture_output=True, text=True,
                            env=environment, timeout=120)
    except subprocess.TimeoutExpired:
      continue
    if done.returncode == 0:
      return True
    last = done.stderr
  print(f"jax does not answer to {name}:\n{last[-2000:]}")
  return False


if __name__ == "__main__":
  if sys.argv[1:2] == ["--record"]:
    record(*sys.argv[2:])
  else:
    source = (HERE / "sharded_functions.py").read_text()
    names = sys.argv[1:] or re.findall(r'^add_map\("(\w+)"', source, re.M) + re.findall(r"^@add\(.*\)\ndef (\w+)\(", source, re.M)
    kept = recordings.texts("sharded") if sys.argv[1:] else {}
    with tempfile.TemporaryDirectory() as folder:
      broken = [name for name in names if not start(name, folder)]
      made = {path.name: path.read_text() for path in pathlib.Path(folder).iterdir()}
    recordings.write(recordings.path("sharded"), kept | made)
    sys.exit(1 if broken else 0)
