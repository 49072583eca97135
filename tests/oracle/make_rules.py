"""Writes rules.expected: which transform rules jax has for each primitive, to compare with rules missing here.

    python make_rules.py [OUTPUT]          (default: tests/data/rules.expected.tar.xz)

One line a primitive: NAME in_lax RULE RULE ... with the rules that exist among
    jvp linearize transpose batch partial_eval partial_eval_custom dce lowering
in_lax is 'lax' where jax.lax exposes it as NAME_p, else 'other'. 'lowering' means any platform of the CPU build;
'transpose' includes rules with accumulators. Names that only exist inside Pallas, Mosaic, Triton or shard_map are left
out. If several primitive objects have the same name, their rules are united.
"""
import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))

import jax  # noqa: E402
import jax.lax  # noqa: E402
import jax.numpy  # noqa: E402
import jax.scipy.special  # noqa: E402,F401
from jax import experimental  # noqa: E402,F401
from jax._src import core  # noqa: E402
from jax._src.interpreters import ad, batching, mlir  # noqa: E402
from jax._src.interpreters import partial_eval as pe  # noqa: E402

import recordings  # noqa: E402


def tables():
  lowering = dict(mlir._lowerings)
  for table in mlir._platform_specific_lowerings.values():
    lowering.update(table)
  return {
      "jvp": ad.primitive_jvps, "linearize": ad.primitive_linearizations,
      "transpose": {**ad.primitive_transposes, **ad.fancy_transposes},
      "batch": batching.fancy_primitive_batchers,
      "partial_eval": pe.custom_partial_eval_rules, "partial_eval_custom": pe.partial_eval_jaxpr_custom_rules,
      "dce": pe.dce_rules, "lowering": lowering,
  }


def main():
  exposed = {v for k, v in vars(jax.lax).items() if k.endswith("_p") and isinstance(v, core.Primitive)}
  exposed |= {v for k, v in vars(jax.lax.linalg).items() if k.endswith("_p") and isinstance(v, core.Primitive)}
  rules, in_lax = {}, {p.name for p in exposed}
  for rule, table in tables().items():
    for primitive in table:
      module = getattr(table[primitive], "__module__", "") or ""
      if not any(word in module for word in ("pallas", "mosaic", "triton", "shard_map")):
        rules.setdefault(primitive.name, set()).add(rule)
  for primitive in exposed:
    rules.setdefault(primitive.name, set())
  order = list(tables())
  text = f"# Rules of jax {jax.__version__} by primitive, made by tests/oracle/make_rules.py.\n"
  for name in sorted(rules):
    found = " ".join(r for r in order if r in rules[name])
    text += f"{name} {'lax' if name in in_lax else 'other'} {found}".rstrip() + "\n"
  recordings.write(recordings.output("rules.expected"), text)
  print(f"{len(rules)} primitives")


if __name__ == "__main__":
  main()
