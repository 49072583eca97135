"""Fits the constants of step times to the published runs that tests/tpu/split.tsv assigns to fitting, and prints them.

    PYTHONPATH=build/release/python:tests/tpu build/venv/bin/python tools/tpu/refit.py

Slowdowns go to src/tpu/constants.cpp, exposed shares to src/tpu/step.cpp. The current constants are divided out of the planner's
figures, so a second run changes nothing. Then cross-validates: each row is judged by constants fitted without it and its neighbours.
Matmuls have a separate program, tools/tpu/refit.cpp, memory tools/tpu/refit_memory.py.
"""
import numpy as np
from scipy.optimize import differential_evolution
from recorded_tables import published_request, split, table

from capibara import _core

GENERATIONS = {"v4": 1.116, "v5e": 1.003, "v5p": 1.1, "v6e": 1.346, "tpu7x": 1.111}  # slowdowns in the build
DCN = 0.8  # the share between slices in the build


def pieces():
    """[(generation, compute without its slowdown, gathers, sums, share recomputed, between slices, published seconds,
    seconds at the peak, use)]"""
    rows, used = [], split("published_training_runs.tsv")
    for number, row in enumerate(table("published_training_runs.tsv")):
        request = published_request(row)
        if request is None:
            continue
        step = _core.tpu.plan_step(request)
        causal = row["flops_convention"].startswith("causal")
        modelled = step["tflops_per_chip" if causal else "tflops_per_chip_noncausal"]
        compute = sum(step[kind] for kind in ("matmul", "attention", "recompute", "elementwise")) / GENERATIONS[row["gen"]]
        rows.append((row["gen"], compute, step["weight_collectives"], step["activation_collectives"], request["recompute"],
                     step["dcn"] / DCN, step["seconds"] * modelled / float(row["tflops_per_chip"]),
                     step["seconds"] * modelled / _core.tpu.chip(row["gen"])["bf16_tflops"], used[number]))
    return rows


def seconds(point, c):
    """Step times of all rows from their parts."""
    return (point[c["chip"]] * c["compute"] + point[5] * c["gathers"] + point[6] * c["sums"] * (1 - point[7] * c["recomputed"]) +
            point[8] * c["dcn"])


def fitted(c, which):
    def loss(point):
        errors = np.abs(np.log(seconds(point, c) / c["published"]))[which]
        return np.mean(errors) + 0.15 * np.mean(np.abs(point[:5] - 1.1)) + 0.02 * abs(point[8] - 0.8)  # a prior: generations are similar
    return differential_evolution(loss, [(0.9, 1.8)] * 5 + [(0, 1)] * 3 + [(0.3, 2)], maxiter=300, seed=0, tol=1e-7).x


def fit_steps():
    rows, names = pieces(), list(GENERATIONS)
    columns = ("compute", "gathers", "sums", "recomputed", "dcn", "published", "ideal")
    c = {"chip": np.array([names.index(row[0]) for row in rows])} | {
        name: np.array([row[number] for row in rows]) for number, name in enumerate(columns, 1)}
    use = np.array([row[8] for row in rows])
    best = fitted(c, use == "fitted")
    for name, value in zip([*names, "gathers exposed", "sums exposed", "of sums hidden by recomputing", "between slices"], best):
        print(f"{name:32s} {value:.3f}")
    errors = np.abs(c["published"] / seconds(best, c) - 1)[use == "judged"]
    print(f"judged: {np.mean(errors < 0.1):.0%} within 10 %, worst {max(errors):.0%}")
    kept = np.flatnonzero(use != "left out")
    guess, flat = np.ones(len(rows)), np.ones(len(rows))
    for number in kept:  # each row by constants fitted to the others, and by the median utilisation of its chip's others
        others = np.isin(np.arange(len(rows)), kept) & (np.arange(len(rows)) != number)
        alike = others & (c["chip"] == c["chip"][number])
        flat[number] = np.median((c["published"] / c["ideal"])[alike]) * c["ideal"][number]
        if number % 3 == 0 or number == kept[0]:
            part = others & (np.arange(len(rows)) // 3 != number // 3)
            point = fitted(c, part)
        guess[number] = seconds(point, c)[number]
    ratio = (c["published"] / guess)[kept]
    error = np.abs(1 / ratio - 1)
    print(f"cross-validated: {len(kept)} rows, {np.mean(error < 0.1):.0%} within 10 %, worst {max(error):.0%}; "
          f"band {{{np.quantile(ratio, 0.05):.3f}, {np.quantile(ratio, 0.95):.3f}}}")
    error = np.abs(flat / c["published"] - 1)[kept]
    print(f"one utilisation per chip: {np.mean(error < 0.1):.0%} within 10 %, worst {max(error):.0%}")


if __name__ == "__main__":
    fit_steps()
