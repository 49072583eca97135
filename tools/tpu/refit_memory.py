"""Fits the constants of src/tpu/memory.cpp to compiled steps, cross-validates them and prints the bands of src/tpu/bands.cpp.

    PYTHONPATH=build/release/python:tests/tpu build/venv/bin/python tools/tpu/refit_memory.py [--check]

The formula here is that of memory.cpp, over all rows at once. Cross-validation: ten parts, drawn with a fixed seed; each is judged by
constants fitted to the other nine. --check compares formula and build with the constants in the build, row by row.
"""
import csv
import re
import sys

import numpy as np
from recorded_tables import ROOT, more_request, own_request, step_request, table
from scipy.optimize import least_squares

from capibara import _core

GIB = 2**30
KINDS = ("dense", "moe", "moe_dense", "mamba")
MOMENT = ("weights", "hidden", "input", "whole", "output")
NAMES = (["loss_whole", "gradient_output", "gradient_input"] +
         [f"{kind}_{name}" for kind in KINDS for name in MOMENT] + ["expert_dispatch"] +
         ["none_width", "none_heads", "none_gated", "none_plain", "none_experts", "none_mamba_width", "none_mamba"])
START = [0.5, 2, 3] + [0.227, 4.66, 0.56, 3.81, 0.467] + [1.214, 2.12, 3.81, 6, 0.01] + [1.1, 2.06, 0.01, 3.27, 0.01] + [
    0.01, 4, 0.01, 3.27, 0.01] + [4.57, 18.4, 1.8, 12.4, 14.4, 15.7, 14, 40.4]


def rows():
    """(request, compiled GiB, fits, limit, source) of every compiled step."""
    found = []
    for row in table("compiled_steps.tsv"):
        found.append((step_request(row), float(row["total_gib"]), row["fits"] == "yes", float(row["hbm_limit_gib"]), "jax"))
    with open(ROOT / "tests" / "tpu" / "more_steps.tsv") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            limit = _core.tpu.plan_memory(more_request(row))["limit_gib"]
            if row["name"].startswith("new_"):  # the others are of compiled_steps.tsv
                found.append((more_request(row), float(row["total_gib"]), float(row["total_gib"]) <= limit, limit, "jax"))
    for name in ("own_steps.tsv", "drawn_steps.tsv"):
        path = ROOT / "tests" / "tpu" / name
        with open(path) as file:
            for row in csv.DictReader(file, delimiter="\t"):
                compiled, limit = float(row["compiled_gib"]), float(row["limit_gib"])
                found.append((own_request(row), compiled, row["fits"] == "yes", limit, name.split("_")[0]))
    return found


def sizes(request):
    """Buffers of one row in GiB, as memory.cpp names them."""
    model = request["model"]
    if isinstance(model, str):
        preset = next(one for one in _core.tpu.models() if one["name"] == model)
        model = preset
    m = {"head_size": 128, "experts": 0, "active": 0, "state": 128, "gated": True, "tied": False} | model
    m["kv_heads"] = m.get("kv_heads") or (0 if m["kind"] == "mamba" else m["heads"])
    axes = dict.fromkeys(("data", "fsdp", "expert", "tensor", "context", "dcn_data", "dcn_fsdp"), 1)
    axes |= {name: int(size) for name, size in re.findall(r"(\w+)=(\d+)", request["mesh"].replace("model=", "tensor="))}
    tensor, shards = axes["tensor"], axes["fsdp"] * axes["expert"] * axes["tensor"] * axes["dcn_fsdp"]
    tokens, mamba, moe = request["batch_per_device"] * request["sequence"], m["kind"] == "mamba", m["kind"] == "moe"
    width, layers, hidden = m["width"], m["layers"], m["hidden"]
    heads = (m["heads"] + 2 * m["kv_heads"]) * m["head_size"]
    parameters, tied = _core.tpu.parameters(request["model"]), m["tied"]
    table_size = m["vocab"] * width
    copies = m["active"] * 1.25 if moe else 1
    matrices_count = 3 if m["gated"] else 2
    products = 2 if mamba else matrices_count - 1
    matrices = 3 * width * hidden if mamba else matrices_count * width * hidden * max(m["experts"], 1)
    attention = 0 if mamba else width * heads + m["heads"] * m["head_size"] * width
    projections = 2 * m["state"] if mamba else heads
    remat, chip = request["remat"], re.split("[-:]", request["tpu"].split("x ")[-1])[0]
    kept = {"minimal": (projections if mamba else heads + width) + products * hidden * copies, "qkv": 0 if mamba else heads}.get(remat, 0)
    offload, none = remat == "offload", remat == "none"
    per_width, per_hidden = (0.0, 0.0) if not none else (tokens * layers * width / GIB, tokens * layers * hidden / GIB)
    slots = 2 * tokens * tensor * copies * request["sequence"] / GIB
    inputs = 2 * tokens * width / GIB
    return {
        "certain": tensor == 1 and chip in ("v5e", "v6e"),
        "kind": KINDS.index(m["kind"]), "remat": remat,
        "state": 12 * parameters / shards / GIB,
        "saved": 0 if offload or none else layers * inputs + 2 * tokens * layers * kept / GIB,
        "none_width": 0 if mamba else per_width, "none_heads": 0 if mamba or not none else tokens * layers * heads / GIB,
        "none_gated": per_hidden * copies if m["kind"] in ("dense", "moe") and m["gated"] else 0,
        "none_plain": per_hidden * copies if m["kind"] in ("dense", "moe") and not m["gated"] else 0,
        "none_experts": per_hidden * m["experts"] if m["kind"] == "moe_dense" else 0,
        "none_mamba_width": per_width if mamba else 0, "none_mamba": per_hidden if mamba else 0,
        "none_slots": layers * ((2 + m["active"] / m["experts"]) * slots + 2 * copies * inputs) if none and moe else 0,
        "layer_gradients": 4 * (parameters - (1 if tied else 2) * table_size) / shards / GIB,
        "table_gradients": 4 * table_size / shards / GIB,
        "input": inputs, "whole": inputs * tensor if tensor > 1 else 0, "logits": 2 * tokens * m["vocab"] / GIB,
        "output": 2 * table_size / tensor / GIB, "layer": 2 * (attention + matrices / axes["expert"]) / tensor / GIB,
        "hidden": 2 * tokens * hidden * products * (m["experts"] if m["kind"] == "moe_dense" else copies) / GIB,
        "slots": slots if moe else 0,
        "wide_stack": 2 * tokens * layers * width / GIB if offload and not mamba else 0,
        "narrow_stack": 2 * tokens * layers * (m["kv_heads"] * m["head_size"] if chip not in ("v5e", "v6e") else width) / GIB
        if offload and not mamba else 0,
        "stack": 2 * tokens * layers * (m["kv_heads"] * m["head_size"] if chip not in ("v5e", "v6e") and m["gated"] else width) / GIB
        if offload and not mamba else 0,
    }


def columns(found):
    all_sizes = [sizes(row[0]) for row in found]
    return {name: np.array([one[name] for one in all_sizes]) for name in all_sizes[0]}


def moments(point, c, copies=None, stack="stack"):
    """(at the loss, at the gradient of the output matrix, inside a layer's backward) over the rows."""
    p = dict(zip(NAMES, point))
    saved = c["saved"] + sum(p[name] * c[name] for name in NAMES if name.startswith("none_")) + c["none_slots"]
    beside = c["state"] + saved + c["layer_gradients"] / 2
    if copies is None:
        copies = np.where(c["certain"], 1, 2)
    loss = beside + copies * c["logits"] + p["loss_whole"] * c["whole"]
    gradient = beside + c["logits"] + p["gradient_output"] * c["output"] + p["gradient_input"] * c["input"] + 2 * c[stack]
    own = {name: np.array([p[f"{kind}_{name}"] for kind in KINDS])[c["kind"]] for name in MOMENT}
    backward = beside + c["layer_gradients"] + c["table_gradients"] + own["weights"] * c["layer"] + own["hidden"] * c["hidden"] + (
        own["input"] * c["input"] + own["whole"] * c["whole"] + own["output"] * c["output"] + p["expert_dispatch"] * c["slots"])
    return loss, gradient, backward


def modelled(point, c):
    return np.maximum.reduce(moments(point, c))


def lowest(point, c):
    """With one copy of the logits and the narrower of the stacks that may return from the host as a whole."""
    return np.maximum.reduce(moments(point, c, 1, "narrow_stack"))


def highest(point, c):
    return np.maximum.reduce(moments(point, c, 2, "wide_stack"))


def fit(c, truth, start=START):
    start = np.array(start, dtype=float)

    def residuals(point):
        return np.concatenate([np.log(modelled(point, c) / truth) / 0.03, 0.5 * (point - start) / (0.3 + start)])
    return least_squares(residuals, np.maximum(start, 1e-3), bounds=(0, 60), loss="soft_l1", x_scale=0.3 + start, max_nfev=150).x


def part(c, mask):
    return {name: values[mask] for name, values in c.items()}


def cross_validated(c, truth, start, parts=10):
    """(modelled, lowest, highest) of each row by constants that were fitted without it."""
    order = np.random.default_rng(44).permutation(len(truth))
    guesses = np.zeros((3, len(truth)))
    for number in range(parts):
        judged = np.isin(np.arange(len(truth)), order[number::parts])
        point = fit(part(c, ~judged), truth[~judged], start)
        guesses[:, judged] = [model(point, part(c, judged)) for model in (modelled, lowest, highest)]
    return guesses


def group_of(kind, remat):
    """Rows that share a band."""
    return ("none" if remat == "none" else "kept") if kind == 0 else "experts" if kind in (1, 2) else "mamba"


def band(below, above, share):
    """Factors on the lowest and the highest estimate that leave out (1 - share) / 2 of the rows on each side."""
    return min(1, np.quantile(below, (1 - share) / 2)), max(1, np.quantile(above, (1 + share) / 2))


def show_bands(found, c, truth, guesses, share=0.9):
    groups = np.array([group_of(kind, row[0]["remat"]) for kind, row in zip(c["kind"], found)])
    below, above = truth / guesses[1], truth / guesses[2]
    low, high = np.zeros(len(truth)), np.zeros(len(truth))
    for name in sorted(set(groups)):
        members = groups == name
        print(f"band {name:8s} {members.sum():4d} rows  {{{band(below[members], above[members], share)[0]:.3f}, "
              f"{band(below[members], above[members], share)[1]:.3f}}}")
        for number in np.flatnonzero(members):  # the band of the other rows
            others = members & (np.arange(len(truth)) != number)
            factors = band(below[others], above[others], share)
            low[number], high[number] = factors[0] * guesses[1][number], factors[1] * guesses[2][number]
    limit, fits = np.array([row[3] for row in found]), np.array([row[2] for row in found])
    near = abs(truth / limit - 1) < 0.15
    inside = (truth >= low) & (truth <= high)
    lines = {}
    for label, which in (("all rows", truth > 0), ("drawn", np.array([row[4] == "drawn" for row in found])), ("near the limit", near)):
        open_ = (low <= limit) & (high > limit)
        wrong = which & ~open_ & ((high <= limit) != fits)
        lines[label] = (f"{which.sum()} steps: {100 * np.mean(inside[which]):.0f} % inside their band; "
                        f"verdict cannot tell on {np.sum(which & open_)}, wrong on {wrong.sum()}")
        print(f"{label:16s}", lines[label])
    return lines


def figures(ratio):
    error = abs(ratio - 1)
    return (f"{len(ratio):4d} rows, median {np.median(error):5.1%}, within 5 % {np.mean(error < .05):4.0%}, "
            f"within 10 % {np.mean(error < .1):4.0%}, worst {error.max():.0%}")


def main():
    found = rows()
    c, truth = columns(found), np.array([row[1] for row in found])
    if "--check" in sys.argv:
        built = np.array([_core.tpu.plan_memory(row[0])["total_gib"] for row in found])
        print("build against compiled", figures(built / truth))
        return
    point = fit(c, truth)
    guesses = cross_validated(c, truth, START)
    guess = guesses[0]
    for name, value in zip(NAMES, point):
        print(f"{name:20s} {value:.3f}")
    source = np.array([row[4] for row in found])
    print("fitted              ", figures(modelled(point, c) / truth))
    print("cross-validated     ", figures(guess / truth))
    for name in ("jax", "own", "drawn"):
        print(f"  {name:18s}", figures((guess / truth)[source == name]))
    show_bands(found, c, truth, guesses)
    for number in np.argsort(-abs(np.log(guess / truth)))[:25]:
        request = found[number][0]
        print(f"{guess[number] / truth[number] - 1:+.1%} of {truth[number]:.2f} {found[number][4]}", request["tpu"], request["mesh"],
              request["remat"], f"{request['batch_per_device']:g} x {request['sequence']}", request["model"])


if __name__ == "__main__":
    main()
