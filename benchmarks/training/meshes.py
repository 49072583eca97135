"""Training over meshes against one device: losses, bytes per device against the plan, a run that is killed and resumes on another mesh.

    PYTHONPATH=build/release/python python3 benchmarks/training/meshes.py [--model dense|experts|named ...] [--parameters 30e6]
        [--steps 50] [--batch 8] [--length 64] [--mesh data=2,fsdp=4 ...] [--processes 4] [--no-kill]

Each mesh trains in its own process with eight CPU devices, the same batches and initial parameters. The last run of a model is killed
(SIGKILL) in the middle of its steps on one mesh and resumes from its checkpoint on another. `--processes` adds runs whose eight devices
are spread over that many MPI processes. A line shows the maximum relative difference of the losses from those of one device, and the
MiB that a device holds (planned in parentheses) of parameters, optimizer state and gradients. Exit code 1 if losses differ by more
than 1e-3 of their size, or a figure from its plan.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

DEVICES = 8
MESHES = {"dense": ["data=8", "fsdp=8", "data=2,fsdp=2,tensor=2", "sequence=4,data=2", "stages=4,data=2"],
          "experts": ["data=8", "fsdp=8", "data=2,fsdp=2,tensor=2", "expert=4,data=2", "sequence=4,data=2", "stages=4,data=2"],
          "named": ["data=8", "fsdp=8", "data=2,fsdp=2,tensor=2"]}
KILLED, RESUMED = "data=2,fsdp=4", "fsdp=4,tensor=2"
TOLERANCE = 1e-3


def language_model(training, kind, parameters):
    """A model of four layers with about this many parameters."""
    layer, vocabulary = ("attention+moe" if kind == "experts" else "attention+mlp"), 512

    def make(width):
        return training.LanguageModel(vocabulary=vocabulary, width=width, layers=[layer] * 4, heads=4, hidden=3 * width, experts=4)
    width = 16
    while make(width + 16).parameter_count <= parameters:
        width += 16
    return make(width)


def named_model(parameters):
    """A named model: an embedding of eight numbers through three dense layers."""
    import capibara.mithril as ml
    from capibara.mithril.models import Linear, Mean, Model, Relu, SquaredError, TrainModel
    width = max(16, int((parameters / 2) ** 0.5) // 16 * 16)
    model = Model()
    model |= Linear(dimension=width)(input="input", weight="w0", bias="b0", output="h0")
    model |= Relu()(input="h0", output="a0")
    model |= Linear(dimension=width)(input="a0", weight="w1", bias="b1", output="h1")
    model |= Relu()(input="h1", output="a1")
    model |= Linear(dimension=width)(input="a1", weight="w2", bias="b2", output="h2")
    model |= Linear(dimension=8)(input="h2", weight="w3", bias="b3", output="output")
    train = TrainModel(model)
    train.add_loss(SquaredError(), input="output", target="target", reduce_steps=[Mean()])
    shapes = {"input": [None, 8], "target": [None, 8]}
    return ml.compile(train, ml.JaxBackend(), shapes=shapes, data_keys=["input", "target"])


def work(options, mesh, folder, kill_at=None):
    """Trains, and prints the measurements as JSON."""
    import numpy as np

    import capibara.jax as jax
    from capibara import training
    if options.launched:
        jax.distributed.initialize()
    length, batch = options.length, options.batch
    model = named_model(options.parameters) if options.model == "named" else language_model(training, options.model, options.parameters)
    config = training.TrainerConfig(steps=options.steps, batch=batch, length=length, learning_rate=1e-3, warmup=5, mesh=mesh)
    trainer = training.Trainer(config, model, folder=folder)

    def batch_of(number):
        draw = np.random.default_rng(number)
        if options.model == "named":
            x = draw.standard_normal((batch, 8)).astype("float32")
            return x, np.tanh(x[:, ::-1])
        start = draw.integers(0, 512, (batch, 1))
        return ((start + np.arange(length + 1) * draw.integers(1, 4, (batch, 1))) % 512).astype("int32"),

    if folder and trainer.resume():
        print(f"resumed after step {trainer.steps_done}", file=sys.stderr)
    first, losses, began = trainer.steps_done, [], None
    while trainer.steps_done < options.steps:
        losses.append(trainer.step(*batch_of(trainer.steps_done))["loss"])
        began = began or time.perf_counter()  # the first step compiles
        if folder and trainer.steps_done % max(1, options.steps // 5) == 0:
            trainer.save()
        if trainer.steps_done == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
    seconds = (time.perf_counter() - began) / max(1, len(losses) - 1)
    bytes_of = trainer.device_bytes(trainer.gradient(*batch_of(0)))
    if not options.launched or jax.process_index() == 0:
        print(json.dumps({"first": first, "losses": losses, "seconds": seconds, "bytes": bytes_of,
                          "parameters": int(sum(np.prod(leaf.shape) for leaf in jax.tree.leaves(trainer.params)))}))
    if options.launched:
        jax.distributed.shutdown()


def run(options, mesh, folder="", kill_at=None, processes=1):
    """The measurements of a run in its own process, None if it was killed."""
    arguments = [sys.executable, os.path.abspath(__file__), "--work", mesh or "-"]
    for name in ("model", "parameters", "steps", "batch", "length"):
        arguments += [f"--{name}", str(getattr(options, name))]
    arguments += ["--folder", folder] if folder else []
    arguments += ["--kill-at", str(kill_at)] if kill_at else []
    environment = dict(os.environ, JAX_NUM_CPU_DEVICES=str(DEVICES), JAX_PLATFORMS="cpu")
    if processes > 1:
        environment["JAX_NUM_CPU_DEVICES"] = str(DEVICES // processes)
        command = os.environ.get("CAPIBARA_COMMAND", os.path.join(os.path.dirname(__file__), "../../build/capibara"))
        arguments = [command, "launch", "-n", str(processes), "--devices", str(DEVICES // processes), "--", *arguments, "--launched"]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    if kill_at:
        assert done.returncode == -signal.SIGKILL, done.stderr
        return None
    if done.returncode != 0:
        raise SystemExit(f"{mesh}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    lines = [line[line.index("{"):] for line in done.stdout.splitlines() if "{" in line]
    return json.loads(lines[-1])


def mib(count):
    return f"{count / 2**20:.2f}"


def line(name, alone, got):
    """Prints a row; returns True if it is as expected."""
    expected = alone["losses"][got["first"]:]
    worst = max(abs(a - b) / abs(b) for a, b in zip(got["losses"], expected))
    held, planned = got["bytes"]["held"], got["bytes"]["planned"]
    cells = [f"{mib(held[what])} ({mib(planned[what])})" if what in held else "" for what in ("parameters", "optimizer", "gradients")]
    print(f"{name:34} {worst:9.1e}  " + "  ".join(f"{cell:>18}" for cell in cells) + f"  {got['seconds']:7.3f}", flush=True)
    return worst < TOLERANCE and all(planned[what] == count for what, count in held.items()) and len(got["losses"]) == len(expected)


def measure(options):
    """Trains one model over its meshes; returns True if every row is as expected."""
    alone = run(options, "")
    print(f"{options.model}, {alone['parameters'] / 1e6:.1f} million parameters, {options.steps} steps of "
          f"{options.batch} x {options.length}: loss {alone['losses'][0]:.4f} to {alone['losses'][-1]:.4f} on one "
          f"device, {alone['seconds']:.3f} s a step")
    print(f"{'mesh':34} {'loss off':>9}  {'parameters MiB':>18}  {'state MiB':>18}  {'gradients MiB':>18}  {'s/step':>7}", flush=True)
    meshes = options.mesh or MESHES[options.model]
    fits = [line(mesh, alone, run(options, mesh)) for mesh in meshes]
    if options.processes:
        for mesh in meshes:
            fits.append(line(f"{mesh}, {options.processes} processes", alone, run(options, mesh, processes=options.processes)))
    if not options.no_kill:
        with tempfile.TemporaryDirectory() as folder:
            run(options, KILLED, folder, kill_at=options.steps // 2 + 1)
            got = run(options, RESUMED, folder)
            fits.append(line(f"{RESUMED} after kill -9", alone, got) and 0 < got["first"] <= options.steps // 2 + 1)
    return all(fits)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=list(MESHES), nargs="*", default=list(MESHES))
    parser.add_argument("--parameters", type=float, default=30e6)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--mesh", nargs="*")
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--no-kill", action="store_true")
    for name in ("--work", "--folder", "--kill-at"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--launched", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    models = options.model
    if options.work:
        options.model = models[0]
        return work(options, "" if options.work == "-" else options.work, options.folder, options.kill_at and int(options.kill_at))
    fits = []
    for options.model in models:
        fits.append(measure(options))
    return 0 if all(fits) else 1


if __name__ == "__main__":
    sys.exit(main())
