"""Four processes train like one, over axes that cross processes, and one process resumes from their checkpoint."""
import json
import os
import subprocess

import pytest
from launching import BUILD, missing, python, run

pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

PROGRAM = """
    import json, os, signal
    import numpy as np
    import capibara.jax as jax
    from capibara import training
    launched = "ALONE" not in os.environ
    if launched:
        jax.distributed.initialize()
    model = training.LanguageModel(vocabulary=64, width=32, layers=["attention+moe"] * 4, heads=4, hidden=32, experts=4)
    config = training.TrainerConfig(steps=4, batch=4, length=8, warmup=1, learning_rate=1e-2, mesh=os.environ.get("MESH", ""))
    trainer = training.Trainer(config, model, folder=os.environ["FOLDER"])
    trainer.resume()
    tokens = lambda n: np.random.default_rng(n).integers(0, 64, (4, 9)).astype("int32")
    losses = []
    for n in range(trainer.steps_done, int(os.environ["STEPS"])):
        losses.append(trainer.step(tokens(n))["loss"])
        if n == 1:
            trainer.save()
        if n == 2 and "KILLED" in os.environ:
            os.kill(os.getpid(), signal.SIGKILL)
    print(json.dumps({"losses": losses, "bytes": trainer.device_bytes(trainer.gradient(tokens(0)))}), flush=True)
    if launched:
        jax.distributed.shutdown()
    """


def alone(folder, steps):
    path = os.environ.get("CAPIBARA_PYTHON_PATH", str(BUILD / "python"))
    done = subprocess.run(python(PROGRAM), capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": path, "ALONE": "1", "FOLDER": str(folder), "STEPS": str(steps)})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["losses"]


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return alone(tmp_path_factory.mktemp("one"), 4)


def launched_losses(expected, mesh, folder, steps, first=0):
    code, launched = run(4, python(PROGRAM), "--devices", 1, MESH=mesh, FOLDER=str(folder), STEPS=str(steps))
    assert code == 0, launched.all
    for number in range(4):
        told = json.loads(launched.text(number).splitlines()[-1])
        assert told["losses"] == pytest.approx(expected[first:steps], rel=3e-5), launched.all
        assert told["bytes"]["held"] == told["bytes"]["planned"], launched.all


@pytest.mark.parametrize("mesh", ["data=4", "data=2,fsdp=2", "fsdp=2,tensor=2", "expert=4", "sequence=4", "stages=4"])
def test_four_processes_train_as_one(expected, tmp_path, mesh):
    launched_losses(expected, mesh, tmp_path, 2)
    if mesh == "data=2,fsdp=2":
        assert alone(tmp_path, 4) == pytest.approx(expected[2:], rel=3e-5)  # on one device, from the checkpoint of four


def test_killed_processes_go_on_over_another_mesh(expected, tmp_path):
    code, launched = run(4, python(PROGRAM), "--devices", 1, MESH="data=2,fsdp=2", FOLDER=str(tmp_path), STEPS="4", KILLED="1")
    assert code != 0, launched.all
    launched_losses(expected, "expert=2,tensor=2", tmp_path, 4, first=2)
