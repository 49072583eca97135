"""Loops of equinox, lineax, diffrax and optimistix, and how often a compiled one calls Python: never."""

import sys
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks" / "drop_in"))
import loop_programs  # noqa: E402

NAMES = ["equinox", "lineax LU in", "lineax Cholesky", "lineax CG", "lineax LU, 32", "diffrax 64", "diffrax stiff", "optimistix Newton"]


def calls_of(function, arguments):
    """Calls of Python on this thread, and those that programs have counted themselves."""
    count = 0

    def see(frame, event, argument):
        nonlocal count
        count += event == "call"

    counted = next((module.host_calls for name, module in sys.modules.items() if name.endswith("._core") and hasattr(module, "host_calls")),
                   lambda: 0)
    before = counted()
    sys.setprofile(see)
    results = function(*arguments)
    sys.setprofile(None)
    jax.block_until_ready(results)
    return count + counted() - before


for name, maker in loop_programs.programs(NAMES).items():
    function, arguments = maker()
    function = jax.jit(function)
    for leaf in jax.tree.leaves(function(*arguments)):
        values = np.asarray(leaf)
        print(name, values.shape, values.ravel()[:4].tolist(), float(np.sum(values, where=np.isfinite(values))))
    print(name, "calls of Python:", calls_of(function, arguments))
