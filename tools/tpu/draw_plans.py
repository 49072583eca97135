"""Draws training steps and matmuls at random, compiles them with libtpu and prints them beside the modelled figures.

    export TPU_LIBRARY_PATH=.../libtpu.so PYTHONPATH=build/release/python CAPIBARA_COMMAND=build/release/capibara
    build/venv/bin/python tools/tpu/draw_plans.py steps --seed 44 --count 64 > drawn_steps.tsv        # about ten seconds each
    build/venv/bin/python tools/tpu/draw_plans.py matmuls --seed 44 --count 100 > drawn_matmuls.tsv   # about three seconds each

A third of the steps is drawn so that the modelled memory is within 15 % of the limit. Rows of a file given by --known are left out, so an
interrupted run can continue; --jsonl keeps the compiler's whole answers. Nothing runs on a TPU.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tpu"))
from recorded_tables import own_request  # noqa: E402

from capibara import _core  # noqa: E402

COMMAND = os.environ.get("CAPIBARA_COMMAND", str(ROOT / "build" / "release" / "capibara"))
SLICES = {"v4-16": 8, "v4-32": 16, "v4-64": 32, "v4-128": 64, "v5e-16": 16, "v5e-64": 64, "v5e-256": 256, "v5p-16": 8, "v5p-32": 16,
          "v5p-64": 32, "v5p-128": 64, "v6e-8": 8, "v6e-16": 16, "v6e-64": 64, "v6e-256": 256, "2x v5e-64": 128, "2x v6e-16": 32}
PRESETS = ["1.3b", "2.7b", "gpt3-6.7b", "gpt3-13b", "llama2-7b", "llama2-13b", "llama2-70b", "llama3.1-8b", "llama3.1-70b", "mixtral-8x7b",
           "mixtral-8x22b", "gemma-2b", "gemma-7b"]
STEP = ("model", "tpu", "mesh", "batch", "seq", "remat")
MATMUL = ("generation", "dtype", "batch", "M", "N", "K", "vmem_limit_kib")
GENERATIONS = {"v4": ("v4:2x2x1", "megacore", 24576), "v5e": ("v5e:2x2", "", 98304), "v5p": ("v5p:2x2x1", "megacore", 49152),
               "v6e": ("v6e:2x2", "", 98304)}


def draw_model(dice):
    if dice.random() < 0.3:
        return dice.choice(PRESETS)
    kind = dice.choices(("dense", "moe", "moe_dense", "mamba"), (70, 15, 5, 10))[0]
    vocab = dice.choice((32000, 50304, 128256, 151936, 256000))
    layers = dice.choice((8, 12, 16, 20, 24, 28, 32, 40, 48, 60, 64, 80))
    tied = dice.choice((0, 0, 1))
    if kind == "mamba":
        width = 256 * dice.randint(4, 16)
        return f"kind=mamba,layers={layers},width={width},heads={width // 32},hidden={2 * width},vocab={vocab},head_size=64,tied={tied}"
    heads = dice.choice((8, 16, 16, 24, 32, 32, 40, 48, 64))
    size = dice.choice((128, 128, 128, 64, 256)) if heads < 40 else 128
    width = heads * 128
    kv_heads = dice.choice([heads, 8, max(8, heads // 4)])
    hidden = 256 * round(width * dice.choice((1.4, 2.67, 3.5, 4)) / 256)
    if kind != "dense":
        experts = dice.choice((4, 8, 16))
        more = f",experts={experts},active={dice.choice((1, 2, 2, 4))},kind={kind}"
        layers, width = min(layers, 32), min(width, 4096)
    else:
        more = f",gated={dice.choice((0, 1, 1, 1))}"
    return (f"layers={layers},width={width},heads={heads},kv_heads={kv_heads},head_size={size},hidden={hidden},vocab={vocab},"
            f"tied={tied}{more}")


def draw_step(dice, near):
    """One step that the planner accepts; its modelled memory is within 15 % of the limit if `near`."""
    while True:
        model, tpu, remat = draw_model(dice), dice.choice(list(SLICES)), dice.choice(("none", "minimal", "qkv", "full", "full", "offload"))
        sequence, devices = dice.choice((1024, 2048, 2048, 4096, 4096, 8192)), SLICES[tpu]
        tensor, expert, data = dice.choice((1, 1, 1, 2, 4, 8)), 1, dice.choice((1, 1, 1, 2, 4))
        if "experts" in model or "mixtral" in model:
            expert = dice.choice((1, 1, 4, 8))
        slices = 2 if tpu.startswith("2x") else 1
        fsdp = devices // (tensor * expert * data * slices)
        if fsdp < 1 or fsdp * tensor * expert * data * slices != devices:
            continue
        axes = {"dcn_data": slices, "data": data, "fsdp": fsdp, "expert": expert, "tensor": tensor}
        mesh = ",".join(f"{name}={size}" for name, size in axes.items() if size > 1)
        multiples = list(range(1, 65)) if near else [1, 2, 3, 4, 6, 8, 12, 16]
        dice.shuffle(multiples)
        for multiple in multiples:
            row = dict(zip(STEP, (model, tpu, mesh, multiple * devices // tensor, sequence, remat)))
            try:
                plan = _core.tpu.plan_memory(own_request(row))
            except ValueError:
                break
            share = plan["total_gib"] / plan["limit_gib"]
            if (0.85 < share < 1.15) if near else (0.05 < share < 1.6):
                return row, plan


def compile_step(row, answers):
    command = [COMMAND, "plan", "--json", "--compile", "--limit", "300"]
    for name, value in row.items():
        command += [f"--{name}", str(value)]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        return {"problem": done.stderr.strip()}
    answer = json.loads(done.stdout)
    if answers:
        with open(answers, "a") as file:
            file.write(json.dumps(answer | row) + "\n")
    return answer["compiled"]


def steps(given, known):
    dice = random.Random(given.seed)
    if not known:
        print("draw", "near", *STEP, "compiled_gib", "modelled_gib", "limit_gib", "fits", "host_gib", "compile_s", sep="\t", flush=True)
    for number in range(given.count):
        near = number % 3 == 0
        row, plan = draw_step(dice, near)
        label = f"{given.seed}.{number}"
        if label in known:
            continue
        compiled = compile_step(row, given.jsonl)
        if "memory_gib" not in compiled:
            print(f"{label} {row}: {compiled.get('problem')}", file=sys.stderr, flush=True)
            continue
        fits = "yes" if compiled["fits"] else "no"
        print(label, "yes" if near else "no", *row.values(), f"{compiled['memory_gib']:.4f}", f"{plan['total_gib']:.4f}", plan["limit_gib"],
              fits, f"{compiled['host_gib']:.3f}", f"{compiled['compile_seconds']:.1f}", sep="\t", flush=True)


def draw_matmul(dice):
    def size():
        return 128 * round(2 ** dice.uniform(0, 7)) if dice.random() < 0.85 else 8 * dice.randint(8, 1200)
    while True:
        batch = dice.choice((2, 4, 8, 16, 32, 64)) if dice.random() < 0.3 else 1
        generation, dtype = dice.choice(list(GENERATIONS)), dice.choices(("bf16", "int8", "f32"), (70, 20, 10))[0]
        m, n, k = size(), size(), size()
        large = GENERATIONS[generation][2] if dice.random() < 0.5 else "default"
        if 2 ** 30 <= batch * m * n * k <= 2 ** 40 and batch * (m * n + m * k + n * k) <= 2 ** 30:
            return dict(zip(MATMUL, (generation, dtype, batch, m, n, k, large)))


def matmul_text(row):
    element, result = {"bf16": ("bf16", "bf16"), "int8": ("i8", "i32"), "f32": ("f32", "f32")}[row["dtype"]]
    lead = f"{row['batch']}x" if row["batch"] > 1 else ""
    left, right = f"tensor<{lead}{row['M']}x{row['K']}x{element}>", f"tensor<{lead}{row['K']}x{row['N']}x{element}>"
    out = f"tensor<{lead}{row['M']}x{row['N']}x{result}>"
    dims = "batching_dims = [0] x [0], contracting_dims = [2] x [1]" if lead else "contracting_dims = [1] x [0]"
    return (f"module @matmul {{\n  func.func public @main(%0: {left}, %1: {right}) -> {out} {{\n"
            f"    %2 = stablehlo.dot_general %0, %1, {dims} : ({left}, {right}) -> {out}\n    return %2 : {out}\n  }}\n}}\n")


def compiled_cycles(row):
    """The sum of estimated_cycles over the entry computation, which has no loops."""
    topology, config, _ = GENERATIONS[row["generation"]]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "matmul.mlir"
        program.write_text(matmul_text(row))
        options = f"xla_dump_to={folder}/dump xla_dump_hlo_as_text=True"
        if row["vmem_limit_kib"] != "default":
            options += f" xla_tpu_scoped_vmem_limit_kib={row['vmem_limit_kib']}"
        command = [COMMAND, "compile", str(program), f"--topology={topology}", f"--output={folder}/out.bin"]
        if config:
            command.append(f"--options=chip_config_name={config}")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300,
                                  env=os.environ | {"CAPIBARA_XLA_OPTIONS": options, "ALLOW_MULTIPLE_LIBTPU_LOAD": "true"})
        except subprocess.TimeoutExpired:
            return "more than 300 s", 0
        found = [path for path in Path(folder).glob("dump/*after_codegen.txt") if ".extracted." not in path.name]
        if done.returncode or not found:
            return (done.stderr.strip().splitlines() or ["no dump"])[-1], 0
        entry = found[0].read_text().split("\nENTRY ", 1)[1]
        return "", sum(int(cycles) for cycles in re.findall(r'"estimated_cycles":"(\d+)"', entry))


def matmuls(given, known):
    dice = random.Random(given.seed)
    if not known:
        print("draw", *MATMUL, "estimated_cycles", "time_us", "modelled_us", sep="\t", flush=True)
    for number in range(given.count):
        row = draw_matmul(dice)
        label = f"{given.seed}.{number}"
        if label in known:
            continue
        problem, cycles = compiled_cycles(row)
        if not cycles:
            print(f"{label} {row}: {problem}", file=sys.stderr, flush=True)
            continue
        time = cycles / _core.tpu.chip(row["generation"])["clock_ghz"] / 1e3
        modelled = _core.tpu.matmul(row["generation"], row["batch"], row["M"], row["N"], row["K"], row["dtype"],
                                    row["vmem_limit_kib"] != "default")["seconds"] * 1e6
        print(label, *row.values(), cycles, f"{time:.3f}", f"{modelled:.3f}", sep="\t", flush=True)


def main():
    words = argparse.ArgumentParser()
    words.add_argument("what", choices=("steps", "matmuls"))
    words.add_argument("--seed", type=int, default=44)
    words.add_argument("--count", type=int, default=64)
    words.add_argument("--known", type=Path)
    words.add_argument("--jsonl", help="appends the compiler's whole answers to this file")
    given = words.parse_args()
    known = set()
    if given.known and given.known.exists():
        known = {line.split("\t")[0] for line in given.known.read_text().splitlines()}
    (steps if given.what == "steps" else matmuls)(given, known)


if __name__ == "__main__":
    main()
