"""The judge of our StableHLO text: the installed jaxlib parses, verifies, compiles and runs it on the CPU, and compares.

    python judge.py PATH... [--jobs N] [--verify-only] [--text KEY] [--write-outputs FILE]

A PATH is a folder of NAME.mlir with NAME.arrays next to it, one such .mlir file, or a bundle: a file in the format of
expected.py whose records hold the module as text 'mlir'. A record (NAME.arrays holds one) has arrays 'input' and 'output' and
optionally the fields
    tolerance exact | ulp N | close R A    default: by dtype, see DEFAULT below; integers and bools always exact
    verify_only 1                          parse and verify, do not run
    error TEXT                             the module must be rejected, and the error must contain TEXT
A module without outputs is run and nothing compared. The last line is 'N passed, M failed, K skipped'; exit code 1 on failure.

How raw text runs in jaxlib 0.10.2: parse with ir.Module.parse in mlir.make_ir_context() (which loads stablehlo, chlo, func,
sdy), module.operation.verify(), backend.compile_and_load(module, DeviceList((cpu,)), CompileOptions), then
executable.execute_sharded(device arrays).disassemble_into_single_device_arrays(). The entry is the public func @main.
x64 is on, so that device_put keeps 64-bit inputs. xla_allow_excess_precision is off: low-precision types are rounded at every
operation of the text.
"""
import argparse
import multiprocessing
import os
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import expected  # noqa: E402

# dtype name -> (relative, absolute); complex types are compared by parts, relative to the modulus.
DEFAULT = {
    "float64": (1e-12, 1e-13), "complex128": (1e-12, 1e-13), "float32": (2e-5, 2e-6), "complex64": (2e-5, 2e-6),
    "float16": (4e-3, 1e-3), "bfloat16": (2e-2, 1e-2),
}


class Runner:
  """Holds the client and the MLIR context; run(text, inputs) -> numpy arrays."""

  def __init__(self):
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    jax.config.update("jax_enable_x64", True)
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax, lapack
    from jax._src.lib.mlir import ir
    lapack._lapack.initialize()  # otherwise modules that call @lapack_*_ffi crash: LAPACK is loaded on the first lowering
    self.jax, self.ir, self.context = jax, ir, mlir.make_ir_context()
    self.device = jax.devices("cpu")[0]
    self.devices = _jax.DeviceList((self.device,))
    self.options = compiler.get_compile_options(
        1, 1, env_options_overrides={"xla_allow_excess_precision": False})

  def parse(self, text):
    with self.context:
      module = self.ir.Module.parse(text)
      if not module.operation.verify():
        raise ValueError("the module does not verify")
      return module

  def _input(self, array):
    return self.jax.device_put(array, self.device)

  def run(self, text, inputs):
    with self.context:
      module = self.parse(text)
      if "sym_name" not in module.operation.attributes:
        module.operation.attributes["sym_name"] = self.ir.StringAttr.get("main")
      executable = self.device.client.compile_and_load(module, self.devices, self.options, [])
    results = executable.execute_sharded([self._input(a) for a in inputs])
    shards = results.disassemble_into_single_device_arrays()
    return [np.asarray(out[0]) for out in shards]


def ulps(got, want):
  """Distance in representable numbers, from the integer order of the bits."""
  kind = {2: np.int16, 4: np.int32, 8: np.int64, 1: np.int8}[want.dtype.itemsize]
  def order(a):
    bits = np.ascontiguousarray(a).view(kind).astype(object)
    low = -(1 << (8 * want.dtype.itemsize - 1))
    return np.where(bits < 0, low - bits, bits)
  return np.abs(order(got) - order(want))


def difference(got, want, tolerance=None):
  """None if equal within the tolerance, else one line with the first difference."""
  if got.dtype != want.dtype or got.shape != want.shape:
    return f"got {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
  if want.size == 0 or got.tobytes() == want.tobytes():
    return None
  name = want.dtype.name
  words = (tolerance or "").split()
  floating = name.startswith(("float", "bfloat", "complex"))
  if not floating or words[:1] == ["exact"]:
    bad = np.atleast_1d(got != want)
    if floating:
      bad &= ~(np.isnan(np.atleast_1d(got)) & np.isnan(np.atleast_1d(want)))
  elif words[:1] == ["ulp"]:
    a, b = (np.atleast_1d(x) for x in (got, want))
    if name.startswith("complex"):
      a, b = (x.view(x.real.dtype) for x in (a, b))
    bad = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (ulps(a, b) <= float(words[1])).astype(bool))
  else:
    relative, absolute = (float(words[1]), float(words[2])) if words else DEFAULT.get(name, (0.13, 0.07))
    wide = np.complex128 if name.startswith("complex") else np.float64
    a, b = (np.atleast_1d(x).astype(wide) for x in (got, want))
    with np.errstate(all="ignore"):
      same = (a == b) | (np.isnan(a) & np.isnan(b))
      bad = ~(same | (np.isfinite(b) & (np.abs(a - b) <= absolute + relative * np.abs(b))))
  if not bad.any():
    return None
  at = tuple(int(i) for i in np.argwhere(bad.reshape(want.shape or (1,)))[0])
  return (f"{int(bad.sum())} of {want.size} elements differ, first at {list(at)}: got "
          f"{np.atleast_1d(got)[at]!r}, expected {np.atleast_1d(want)[at]!r}")


def cases(paths, key="mlir"):
  """Yields (name, module text, record)."""
  for path in paths:
    files = sorted(os.path.join(path, f) for f in os.listdir(path)) if os.path.isdir(path) else [path]
    for file in files:
      if file.endswith(".mlir"):
        arrays = (file[:-13] if file.endswith(".generic.mlir") else file[:-5]) + ".arrays"
        record = next(iter(expected.read(arrays))) if os.path.exists(arrays) else expected.Record(file)
        with open(file, encoding="utf-8") as stream:
          yield os.path.basename(file)[:-5], stream.read(), record
      elif not file.endswith((".arrays", ".npy")):
        for record in expected.read(file):
          if key in record.texts:
            yield record.name, record.texts[key], record


def judge(runner, text, record, verify_only=False):
  """(problem or None, outputs)."""
  refusal = record.get("error")
  try:
    if verify_only or record.get("verify_only") == "1":
      runner.parse(text)
      return (f"accepted, but a refusal with {refusal!r} was expected" if refusal else None), []
    outputs = runner.run(text, record.of("input"))
  except Exception as error:  # jaxlib raises many types; each is a verdict on the text
    message = f"{type(error).__name__}: {error}"
    if refusal is not None and refusal in message:
      return None, []
    return message.replace("\n", " | ")[:600], []
  if refusal is not None:
    return f"accepted, but a refusal with {refusal!r} was expected", outputs
  wants = record.of("output")
  if wants and len(wants) != len(outputs):
    return f"got {len(outputs)} outputs, expected {len(wants)}", outputs
  for index, (got, want) in enumerate(zip(outputs, wants)):
    problem = difference(got, want, record.get("tolerance"))
    if problem:
      return f"output {index}: {problem}", outputs
  return None, outputs


def work(arguments):
  job, paths, options = arguments
  runner, verdicts = Runner(), []
  for index, (name, text, record) in enumerate(cases(paths, options.text)):
    if index % options.jobs == job:
      run = record.get("error") is not None or index // options.jobs % options.share == 0
      problem, outputs = judge(runner, text, record, options.verify_only or not run)
      verdicts.append((index, name, problem, outputs))
  return verdicts


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("paths", nargs="+")
  parser.add_argument("--jobs", type=int, default=1)
  parser.add_argument("--verify-only", action="store_true")
  parser.add_argument("--share", type=int, default=int(os.environ.get("CAPIBARA_SHARE", 1)),
                      help="run one text in so many, verify the others")
  parser.add_argument("--text", default="mlir", help="which text of a bundle's records is the module")
  parser.add_argument("--write-outputs", help="write what jaxlib computed, as records of arrays 'output'")
  options = parser.parse_args()
  start = time.time()
  parts = [(job, options.paths, options) for job in range(options.jobs)]
  if options.jobs == 1:
    verdicts = work(parts[0])
  else:
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
      verdicts = sorted((v for part in pool.map(work, parts) for v in part), key=lambda v: v[0])
  failed = [v for v in verdicts if v[2]]
  for _, name, problem, _ in failed:
    print(f"FAIL {name}: {problem}")
  if options.write_outputs:
    expected.write(options.write_outputs, "What the installed jaxlib computed.", [
        (name, [expected.array_line("output", out) for out in outputs]) for _, name, _, outputs in verdicts])
  print(f"judged in {time.time() - start:.1f} s", file=sys.stderr)
  print(f"{len(verdicts) - len(failed)} passed, {len(failed)} failed, 0 skipped")
  return 1 if failed else 0


if __name__ == "__main__":
  sys.exit(main())
