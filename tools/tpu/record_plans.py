"""Compiles training steps of capibara's own program with libtpu and prints its plans next to the modelled figures, one row for each.

    export TPU_LIBRARY_PATH=.../libtpu.so          # 0.0.51, x86_64
    python3 tools/tpu/record_plans.py >> tests/tpu/own_steps.tsv             # memory: seconds for each row
    build/venv/bin/python tools/tpu/record_plans.py --cycles --rows 10,17,45 > step_cycles.tsv  # published runs: minutes each

Rows that are already in a file given by --known are left out. Nothing runs on a TPU.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("CAPIBARA_COMMAND", str(ROOT / "build" / "capibara"))
GPT_1B3 = "layers=24,width=2048,heads=16,kv_heads=16,hidden=8192,vocab=50304,gated=0"
LLAMA_3B = "layers=28,width=3072,heads=24,kv_heads=8,hidden=8192,vocab=128256"
MOE_1B = "layers=16,width=1024,heads=8,kv_heads=8,hidden=2816,vocab=32000,experts=8,active=2"
MOE_4B = "layers=16,width=2048,heads=16,kv_heads=8,hidden=5632,vocab=32000,experts=8,active=2"
MAMBA_1B = "kind=mamba,layers=48,width=2048,heads=64,hidden=4096,vocab=50304,head_size=64"
MAMBA_3B = "kind=mamba,layers=64,width=2560,heads=80,hidden=5120,vocab=50304,head_size=64"
# model, slice, mesh, global batch, sequence length, remat
STEPS = [
    (MOE_4B, "v5e-64", "fsdp=64", 64, 4096, "full"),
    (MAMBA_1B, "v5e-16", "fsdp=16", 16, 2048, "full"),
    ("llama3.1-8b", "v5e-256", "fsdp=256", 256, 2048, "minimal"),
    ("llama3.1-70b", "v5e-256", "fsdp=32,tensor=8", 128, 4096, "full"),
    (MOE_4B, "v4-32", "fsdp=2,expert=8", 32, 2048, "minimal"),
    (MAMBA_3B, "v6e-64", "fsdp=64", 64, 4096, "minimal"),
    ("mixtral-8x7b", "v6e-64", "fsdp=64", 64, 4096, "full"),
    (MAMBA_1B, "v6e-64", "fsdp=64", 128, 8192, "full"),
    (MOE_1B, "v6e-16", "fsdp=16", 32, 2048, "none"),
    ("mixtral-8x7b", "v5p-128", "fsdp=8,expert=8", 64, 4096, "minimal"),
    (MAMBA_3B, "v5p-64", "fsdp=32", 64, 4096, "minimal"),
    (MAMBA_3B, "v4-32", "fsdp=16", 16, 2048, "none"),
    (GPT_1B3, "v5e-16", "fsdp=16", 32, 2048, "minimal"),
    (GPT_1B3, "v4-32", "fsdp=4,tensor=4", 16, 2048, "qkv"),
    (LLAMA_3B, "v6e-16", "fsdp=16", 32, 4096, "qkv"),
    (LLAMA_3B, "v5p-64", "fsdp=8,tensor=4", 32, 8192, "minimal"),
    ("llama2-7b", "v5e-64", "fsdp=64", 128, 4096, "full"),
    ("llama3.1-8b", "v4-64", "fsdp=8,tensor=4", 32, 4096, "full"),
    ("llama2-13b", "v5p-64", "fsdp=32", 32, 8192, "qkv"),
    ("llama3.1-8b", "v6e-8", "fsdp=8", 8, 4096, "full"),
    (MOE_4B, "v6e-16", "fsdp=16", 16, 4096, "qkv"),
    (MOE_4B, "v5p-32", "fsdp=4,expert=4", 32, 4096, "full"),
    (MAMBA_1B, "v4-16", "fsdp=8", 16, 2048, "qkv"),
    (GPT_1B3, "v6e-16", "tensor=4,fsdp=4", 32, 2048, "none"),
    ("llama2-13b", "v5e-64", "fsdp=16,tensor=4", 32, 4096, "minimal"),
    ("llama3.1-70b", "v5p-128", "fsdp=64", 128, 4096, "full"),
    ("gpt3-6.7b", "v4-32", "fsdp=16", 16, 2048, "minimal"),
    ("llama2-7b", "v6e-16", "data=2,fsdp=8", 16, 2048, "full"),
    ("llama3.1-70b", "v6e-256", "fsdp=64,tensor=4", 128, 4096, "full"),
    (GPT_1B3, "v5p-32", "fsdp=16", 32, 2048, "none"),
    (LLAMA_3B, "v4-32", "fsdp=16", 16, 4096, "minimal"),
    ("llama2-7b", "v5p-64", "fsdp=32", 64, 4096, "minimal"),
    ("llama3.1-8b", "v5p-32", "fsdp=4,tensor=4", 16, 8192, "qkv"),
    ("llama2-13b", "v4-64", "fsdp=32", 32, 2048, "full"),
    (MOE_4B, "v4-64", "fsdp=32", 32, 2048, "qkv"),
    (MOE_1B, "v5e-16", "fsdp=16", 16, 2048, "minimal"),
    (MAMBA_1B, "v5p-32", "fsdp=16", 32, 2048, "none"),
    (MAMBA_3B, "v5e-64", "fsdp=64", 64, 2048, "full"),
    ("llama3.1-70b", "v4-512", "fsdp=64,tensor=4", 256, 4096, "full"),
    ("gpt3-6.7b", "v6e-16", "fsdp=16", 32, 2048, "qkv"),
    (MAMBA_1B, "v6e-16", "fsdp=16", 32, 4096, "minimal"),
    ("llama3.1-70b", "v6e-256", "fsdp=256", 256, 8192, "full"),
    (LLAMA_3B, "v6e-16", "fsdp=16", 32, 4096, "offload"),
    ("llama3.1-8b", "v6e-64", "fsdp=64", 128, 8192, "offload"),
    (GPT_1B3, "v5e-16", "fsdp=16", 32, 2048, "offload"),
    ("llama2-13b", "v5p-64", "fsdp=32", 32, 8192, "offload"),
    ("llama3.1-8b", "v4-64", "fsdp=8,tensor=4", 32, 4096, "offload"),
    (MOE_4B, "v6e-16", "fsdp=16", 16, 4096, "offload"),
    (MAMBA_1B, "v6e-16", "fsdp=16", 32, 4096, "offload"),
    ("llama3.1-70b", "v5p-128", "fsdp=64", 128, 4096, "offload"),
    (LLAMA_3B, "tpu7x-8", "fsdp=8", 16, 4096, "full"),
    (MOE_4B, "tpu7x-8", "fsdp=8", 16, 4096, "full"),
    (MAMBA_1B, "tpu7x-8", "fsdp=8", 16, 4096, "full"),
    (GPT_1B3, "tpu7x-8", "fsdp=2,tensor=4", 16, 2048, "minimal"),
]
NAMES = ("model", "tpu", "mesh", "batch", "seq", "remat")

def plan(step, *words):
    row = dict(zip(NAMES, step))
    command = [COMMAND, "plan", "--json", *words]
    for name, value in row.items():
        command += [f"--{name}", str(value)]
    done = subprocess.run(command, capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout.startswith("{") else {"compiled": {"problem": done.stderr.strip()}}


def published(path):
    """Steps of the published dense runs with complete settings, one for each slice and model, fewest devices first."""
    sys.path.insert(0, str(ROOT / "tests" / "tpu"))
    import recorded_tables
    steps = []
    for number, row in enumerate(recorded_tables.table(path)):
        request = recorded_tables.published_request(row)
        if request is None or request["sequence"] > 8192 or "context" in request["mesh"]:
            continue
        model = ",".join(f"{name}={int(value)}" for name, value in request["model"].items() if name != "name")
        devices = int(row["chips"]) * (2 if row["gen"] == "tpu7x" else 1)
        # The program offloads nothing to the host: for runs that do, the step that recomputes everything is used.
        computed_again = request["recompute"] > 0.9 or "offload" in row["remat"]
        remat = "full" if computed_again else "none" if request["recompute"] == 0 else "minimal"
        step = (model, request["tpu"], request["mesh"], round(request["batch_per_device"] * devices), request["sequence"], remat)
        steps.append((number, row, step))
    return steps


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--cycles", action="store_true")
    words.add_argument("--known", type=Path)
    words.add_argument("--rows", help="rows of the published table, from 0, such as 3,17")
    words.add_argument("--command", default=COMMAND)
    given = words.parse_args()
    known = given.known.read_text() if given.known and given.known.exists() else ""
    if given.cycles:
        numbers = [int(number) for number in given.rows.split(",")] if given.rows else []
        if not known:
            print("row", *NAMES, "published_tflops", "compiled_cycles", "compiled_gib", "open_gib", "compile_s", sep="\t", flush=True)
        for number, row, step in published("published_training_runs.tsv"):
            if number not in numbers:
                continue
            answer = plan(step, "--cycles").get("compiled", {})
            if not answer.get("cycles"):
                problem = answer.get("problem") or "does not fit, so that no code was generated"
                print(f"row {number}: {problem}", file=sys.stderr, flush=True)
                continue
            open_gib = sum(one["open_gib"] for one in answer["collectives"])
            print(number, *step, row["tflops_per_chip"], answer["cycles"], f"{answer['memory_gib']:.3f}", f"{open_gib:.2f}",
                  f"{answer['compile_seconds']:.0f}", sep="\t", flush=True)
        return
    if not known:
        print(*NAMES, "compiled_gib", "modelled_gib", "limit_gib", "fits", sep="\t", flush=True)
    for step in STEPS:
        if "\t".join(map(str, step)) in known:
            continue
        answer = plan(step, "--compile", "--limit", "3600")  # TPU7x takes minutes
        compiled = answer["compiled"]
        if "memory_gib" not in compiled:
            print(f"{step}: {compiled['problem']}", file=sys.stderr, flush=True)
            continue
        fits = "yes" if compiled["fits"] else "no"
        print(*step, f"{compiled['memory_gib']:.3f}", f"{answer['memory_gib']:.3f}", answer["limit_gib"], fits, sep="\t", flush=True)


if __name__ == "__main__":
    main()
