"""Fits the constants of step times to the published runs that tests/tpu/split.tsv assigns to fitting, and prints them.

    PYTHONPATH=build/release/python:tests/tpu build/venv/bin/python tools/tpu/refit.py

Slowdowns go to src/tpu/constants.cpp, exposed shares to src/tpu/step.cpp. The current constants are divided out of the planner's
figures, so a second run changes nothing. Memory: `--memory` prints the errors of every row of compiled_steps.tsv and own_steps.tsv,
for fitting by hand.
Matmuls have a separate program, tools/tpu/refit.cpp.
"""
import csv
import sys

import numpy as np
from scipy.optimize import differential_evolution
from recorded_tables import ROOT, own_request, published_request, split, step_request, table

from capibara import _core

GENERATIONS = {"v4": 1.092, "v5e": 0.968, "v5p": 1.1, "v6e": 1.365, "tpu7x": 1.101}  # slowdowns in the build
DCN = 0.8  # the share between slices in the build


def pieces():
    """[(generation, compute without its slowdown, gathers, sums, share recomputed, between slices, published seconds, use)]"""
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
                     step["dcn"] / DCN, step["seconds"] * modelled / float(row["tflops_per_chip"]), used[number]))
    return rows


def fit_steps():
    rows, names = pieces(), list(GENERATIONS)

    def seconds(point, row):
        return (point[names.index(row[0])] * row[1] + point[5] * row[2] + point[6] * row[3] * (1 - point[7] * row[4]) + point[8] * row[5])

    def loss(point):
        errors = [abs(np.log(seconds(point, row) / row[6])) for row in rows if row[7] == "fitted"]
        return np.mean(errors) + 0.15 * np.mean(np.abs(point[:5] - 1.1)) + 0.02 * abs(point[8] - 0.8)  # a prior: generations are similar

    best = differential_evolution(loss, [(0.9, 1.8)] * 5 + [(0, 1)] * 3 + [(0.3, 2)], maxiter=400, seed=0, tol=1e-7)
    for name, value in zip([*names, "gathers exposed", "sums exposed", "of sums hidden by recomputing", "between slices"], best.x):
        print(f"{name:32s} {value:.3f}")
    errors = [abs(row[6] / seconds(best.x, row) - 1) for row in rows if row[7] == "judged"]
    print(f"judged: {np.mean(np.array(errors) < 0.1):.0%} within 10 %, worst {max(errors):.0%}")


def show_memory():
    for row in table("compiled_steps.tsv"):
        plan = _core.tpu.plan_memory(step_request(row))
        print(f"{row['name']:60s} {float(row['total_gib']):8.2f} {plan['total_gib'] / float(row['total_gib']) - 1:+.1%}")
    with open(ROOT / "tests" / "tpu" / "own_steps.tsv") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            plan, compiled = _core.tpu.plan_memory(own_request(row)), float(row["compiled_gib"])
            name = f"{row['model'][:28]} {row['tpu']} {row['mesh']} {row['remat']}"
            print(f"{name:60s} {compiled:8.2f} {plan['total_gib'] / compiled - 1:+.1%}")


if __name__ == "__main__":
    show_memory() if "--memory" in sys.argv else fit_steps()
