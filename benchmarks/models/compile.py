"""Times the compilation of a named model of 12 transformer layers, next to Mithril's own if a checkout of it is given.

    build/venv/bin/python benchmarks/models/compile.py [--mithril FOLDER --python PYTHON] [--rounds N]

FOLDER is a checkout of github.com/synnada-ai/mithril: its name on PyPI belongs to an unrelated, empty package. It needs Python 3.12 with
jax, and its C library built by mithril/cores/c/raw_c/compile.sh; PYTHON is that interpreter. Each round runs a fresh process for each
library, one after the other; the fastest round counts. "first step" is the first evaluation with gradients: tracing, XLA's or
capibara's compilation, one run.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYERS, WIDTH, HIDDEN, BATCH, LENGTH = 12, 64, 256, 2, 16


def layer(models):
    """Attention and a feed-forward layer, each with a norm before it and a residual connection."""
    model = models.Model()
    model |= models.LayerNorm().connect(input="input", output="normed")
    for name in ("query", "key", "value"):
        model |= models.Linear(WIDTH).connect(input="normed", weight=f"{name}_weight", bias=f"{name}_bias", output=name)
    model |= models.ScaledDotProduct().connect(query="query", key="key", value="value", output="mixed")
    model |= models.Linear(WIDTH).connect(input="mixed", weight="out_weight", bias="out_bias", output="projected")
    model |= models.Add().connect(left="input", right="projected", output="middle")
    model |= models.LayerNorm().connect(input="middle", output="normed_again")
    model |= models.Linear(HIDDEN).connect(input="normed_again", weight="up_weight", bias="up_bias", output="up")
    model |= models.Gelu().connect(input="up", output="active")
    model |= models.Linear(WIDTH).connect(input="active", weight="down_weight", bias="down_bias", output="down")
    model |= models.Add().connect(left="middle", right="down", output="output")
    model.expose_keys("output")
    return model


def measure(library):
    """Seconds of each stage in this process, not counting imports."""
    if library == "capibara":
        import capibara.mithril as ml
        from capibara.mithril import models
    else:
        import mithril as ml
        from mithril import models
    backend = ml.JaxBackend(dtype=ml.float32)
    backend.ones(2) + backend.ones(2)  # starts the backend before the timing
    started = time.perf_counter()
    model = models.Model()
    for number in range(LAYERS):
        model |= layer(models).connect(input=f"h{number}", output="y" if number == LAYERS - 1 else f"h{number + 1}")
    model.expose_keys("y")
    built = time.perf_counter()
    compiled = ml.compile(model, backend, shapes={"h0": [BATCH, LENGTH, WIDTH]}, data_keys={"h0"}, safe_names=False)
    done = time.perf_counter()
    params = compiled.randomize_params()
    outputs, gradients = compiled.evaluate(params, {"h0": backend.ones(BATCH, LENGTH, WIDTH)},
                                           output_gradients={"y": backend.ones(BATCH, LENGTH, WIDTH)})
    float(outputs["y"].sum() + sum(value.sum() for value in gradients.values()))
    return {"building the model": built - started, "ml.compile": done - built, "first step": time.perf_counter() - done,
            "parameters": len(params)}


def run(library, arguments):
    environment = dict(os.environ, JAX_PLATFORMS="cpu", CAPIBARA_CACHE="off")
    ours = library == "capibara"
    environment["PYTHONPATH"] = str(ROOT / "build" / "release" / "python") if ours else arguments.mithril
    done = subprocess.run([sys.executable if ours else arguments.python, __file__, "--measure", library], env=environment, text=True,
                          capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{library}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mithril", help="a checkout of Mithril")
    parser.add_argument("--python", default=sys.executable, help="the Python that runs Mithril")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return print(json.dumps(measure(arguments.measure)))
    libraries = ["capibara"] + (["mithril"] if arguments.mithril else [])
    found = {library: [] for library in libraries}
    for _ in range(arguments.rounds):
        for library in libraries:
            found[library].append(run(library, arguments))
    counts = {library: rounds[0].pop("parameters") for library, rounds in found.items()}
    print(f"{LAYERS} layers; parameters by name: " + ", ".join(f"{library} {count}" for library, count in counts.items()))
    for stage in found["capibara"][0]:
        least = {library: min(one[stage] for one in rounds) for library, rounds in found.items()}
        ratio = f"  ratio {least['mithril'] / least['capibara']:.1f}" if "mithril" in least else ""
        print(f"{stage:<20}" + "".join(f"  {library} {1e3 * seconds:9.1f} ms" for library, seconds in least.items()) + ratio)


main()
