"""The tables of compiled and published TPU figures (sources: tables/README.md), and the planner's requests for their rows."""
import csv
import lzma
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("tables")


def table(name):
    """The rows of tables/`name`.xz as dictionaries."""
    with lzma.open(FOLDER / f"{name}.xz", "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def split(name):
    """{row of a table: fitted, judged or left out}, as fixed in split.tsv."""
    with open(Path(__file__).with_name("split.tsv")) as file:
        return {int(row["row"]): row["used"] for row in csv.DictReader(file, delimiter="\t") if row["table"] == name}


def step_request(row):
    """The planner's request for a row of compiled_steps.tsv."""
    sizes = {name: int(row[name] or 0) for name in ("layers", "heads", "kv_heads", "vocab", "experts")}
    model = {**sizes, "name": row["name"], "kind": row["kind"], "width": int(row["d_model"]), "hidden": int(row["d_ff"]),
             "head_size": int(row["head_dim"]), "gated": not row["name"].startswith("gpt"), "tied": False,
             "active": 2 if row["kind"] == "moe" else 0}
    return {"model": model, "tpu": row["topology"].split()[1], "mesh": row["mesh"], "batch_per_device": float(row["batch_per_device"]),
            "sequence": int(row["seq"]), "remat": row["remat"]}


def own_request(row):
    """The planner's request for a row of own_steps.tsv."""
    model = row["model"]
    if "=" in model:
        words = dict(word.split("=") for word in model.split(","))
        kind = words.pop("kind", "moe" if "experts" in words else "dense")
        sizes = {name: int(value) for name, value in words.items() if name not in ("gated", "tied")}
        model = {"name": "given", "kind": kind, "gated": words.get("gated") != "0", "tied": words.get("tied") == "1", **sizes}
    devices = 1
    for axis in row["mesh"].split(","):
        devices *= int(axis.split("=")[1])
    return {"model": model, "tpu": row["tpu"], "mesh": row["mesh"], "batch_per_device": int(row["batch"]) / devices,
            "sequence": int(row["seq"]), "remat": row["remat"]}


def more_request(row):
    """The planner's request for a row of more_steps.tsv."""
    model = {"name": row["name"], "kind": "dense", "layers": int(row["layers"]), "width": int(row["d_model"]), "heads": int(row["heads"]),
             "kv_heads": int(row["kv_heads"]), "head_size": 128, "hidden": int(row["d_ff"]), "vocab": int(row["vocab"]), "gated": True,
             "tied": False}
    return {"model": model, "tpu": row["topology"], "mesh": row["mesh"], "sequence": int(row["seq"]),
            "batch_per_device": float(row["batch_per_device"]), "remat": row["remat"]}


def published_request(row):
    """The planner's request for a row of published_training_runs.tsv; None if the row is incomplete."""
    needed = ("arch", "remat_extra_fwd_frac", "per_device_batch", "sharding")
    if row["precision"] != "bf16" or not all(row[name] for name in needed):
        return None
    slices, _, name = row["hardware"].rpartition("x ") if re.match(r"\d+x ", row["hardware"]) else ("1", "", row["hardware"])
    devices = int(row["chips"]) * (2 if row["gen"] == "tpu7x" else 1)
    axes = {key.removeprefix("ici_"): int(size) for key, size in re.findall(r"(\w+?)(?:_parallelism)?=(-?\d+)", row["sharding"])}
    if "dcn_fsdp" not in axes:
        axes["dcn_data"] = int(slices)
    rest = devices
    for size in axes.values():
        rest //= max(size, 1)
    axes = {key: rest if size == -1 else size for key, size in axes.items()}
    return {"model": published_model(row["arch"]), "tpu": f"{slices}x {name}" if slices != "1" else name,
            "mesh": ",".join(f"{key}={size}" for key, size in axes.items() if size > 1), "batch_per_device": float(row["per_device_batch"]),
            "sequence": int(row["seq_len"]), "recompute": float(row["remat_extra_fwd_frac"]),
            "flash": row["source_id"] not in ("maxtext_v4", "maxtext_v5e", "maxtext_v5p")}  # 2023: attention without a fused kernel


def published_model(arch):
    """Sizes from text like emb4096 q32 kv8 hd128 mlp14336(gated) L32 vocab128256."""
    def size(name, otherwise=None):
        found = re.search(rf"(?:^| ){name}(\d+)", arch)
        return int(found.group(1)) if found else otherwise
    return {"name": "published", "layers": size("L"), "width": size("emb"), "heads": size("q"), "kv_heads": size("kv"),
            "head_size": size("hd"), "hidden": size("mlp"), "vocab": size("vocab", 32768), "gated": "(gated)" in arch, "tied": False}
