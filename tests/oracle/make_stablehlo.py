"""Writes jax's own StableHLO text of the functions in stablehlo_functions.py with inputs and expected outputs.

    python make_stablehlo.py FOLDER [NAME...]

FOLDER gets stablehlo.bundle: records in the format of expected.py with arrays 'input' and 'output', the field 'tolerance'
if it is not the default, and the texts
    mlir      jit(f).lower(...).as_text()
    generic   the same module in generic form
    located   the same with locations, as written by as_text(debug_info=True)
and for the command line NAME.mlir, NAME.generic.mlir, NAME.arrays, and NAME.in0.npy ... if numpy has the dtype (others
only in .arrays). FOLDER/check holds the same modules closed over their inputs, with custom calls @check.expect_eq (integers,
bools) and @check.expect_almost_eq (the rest) of the expected values, for 'capibara check'. judge.py accepts the folder and the bundle: that is how this script checks itself (--judge).
Values are those of the text run by jaxlib with excess precision off, as judge.py runs it.
"""
import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import jax  # noqa: E402
import numpy as np  # noqa: E402

import expected  # noqa: E402
import judge  # noqa: E402
from stablehlo_functions import FUNCTIONS  # noqa: E402


def texts_of(function, arguments):
  lowered = jax.jit(function, keep_unused=True).lower(*arguments)
  operation = lowered.compiler_ir("stablehlo").operation
  return {"mlir": lowered.as_text(), "generic": operation.get_asm(print_generic_op_form=True),
          "located": lowered.as_text(debug_info=True)}


def relative_locations(text):
  """Locations contain paths of this machine: keeps only the file name."""
  here = os.path.dirname(os.path.abspath(__file__)) + os.sep
  text = text.replace(here, "")
  return "\n".join(line if '"/' not in line else strip_folders(line) for line in text.split("\n"))


def strip_folders(line):
  parts = line.split('"')
  return '"'.join(os.path.basename(p) if p.startswith("/") else p for p in parts)


def self_checking(runner, text, inputs, outputs):
  """The module with a main that passes the inputs and checks the outputs, like StableHLO's golden files."""
  from jax._src.interpreters import mlir
  from jax._src.lib.mlir.dialects import func, hlo
  ir = runner.ir
  with runner.context, ir.Location.unknown():
    module = ir.Module.parse(text)
    program = next(op for op in module.body if ir.StringAttr(op.attributes["sym_name"]).value == "main")
    program.attributes["sym_name"] = ir.StringAttr.get("program")
    program.attributes["sym_visibility"] = ir.StringAttr.get("private")
    entry = func.FuncOp("main", ir.FunctionType.get([], []), ip=ir.InsertionPoint.at_block_begin(module.body))
    with ir.InsertionPoint(entry.add_entry_block()):
      results = func.CallOp(program, [mlir.ir_constant(a) for a in inputs]).results
      for result, want in zip(results, outputs, strict=True):
        check = "expect_eq" if want.dtype.kind in "biu" else "expect_almost_eq"
        hlo.custom_call([], [result, mlir.ir_constant(want)], call_target_name=f"check.{check}", has_side_effect=True)
      func.ReturnOp([])
    return str(module)


def main():
  arguments = [a for a in sys.argv[1:] if a != "--judge"]
  folder, chosen = arguments[0], arguments[1:]
  os.makedirs(os.path.join(folder, "check"), exist_ok=True)
  shapes = {name: texts_of(f, args) for name, (f, args, _) in FUNCTIONS.items() if not chosen or name in chosen}
  runner = judge.Runner()  # enables x64, so only after everything is lowered
  records = []
  for name, texts in shapes.items():
    _, inputs, tolerance = FUNCTIONS[name]
    texts["located"] = relative_locations(texts["located"])
    lines = [f"field tolerance {tolerance}"] if tolerance else []
    outputs = runner.run(texts["mlir"], inputs)
    for kind, arrays in (("input", inputs), ("output", outputs)):
      lines += [expected.array_line(kind, a) for a in arrays]
      for index, array in enumerate(arrays):
        if array.dtype.isbuiltin == 1:
          np.save(os.path.join(folder, f"{name}.{kind[:-3]}{index}.npy"), array)
    expected.write(os.path.join(folder, f"{name}.arrays"), "Inputs and jaxlib's outputs.", [(name, lines)])
    for suffix, kind in (("", "mlir"), (".generic", "generic")):
      with open(os.path.join(folder, f"{name}{suffix}.mlir"), "w", encoding="utf-8") as file:
        file.write(texts[kind])
    with open(os.path.join(folder, "check", f"{name}.mlir"), "w", encoding="utf-8") as file:
      file.write(self_checking(runner, texts["mlir"], inputs, outputs))
    for kind, text in texts.items():
      lines = lines + expected.text_lines(kind, text)
    records.append((name, lines))
  bundle = os.path.join(folder, "stablehlo.bundle")
  expected.write(bundle, f"jax {jax.__version__}'s StableHLO text of tests/oracle/stablehlo_functions.py.", records)
  print(f"{len(records)} functions")
  if "--judge" in sys.argv:
    sys.argv = ["judge.py", bundle]
    return judge.main()
  return 0


if __name__ == "__main__":
  sys.exit(main())
