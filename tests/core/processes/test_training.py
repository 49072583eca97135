"""Four processes train as one does, over axes that cross them, and one goes on from their checkpoint."""
import json
import os
import subprocess

import pytest
from launching import BUILD, missing, python, run

pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

PROGRAM = """
    import json, os
    import numpy as np
    import capibara.jax as jax
    from capibara import training
    launched = "ALONE" not in os.environ
    if launched:
        jax.distributed.initialize()
    model = training.LanguageModel(vocabulary=64, width=32, layers=["attention+moe"], heads=4, hidden=32, experts=4)
    config = training.TrainerConfig(steps=4, batch=4, length=8, warmup=1, learning_rate=1e-2, mesh=os.environ.get("MESH", ""))
    trainer = training.Trainer(config, model, folder=os.environ["FOLDER"])
    trainer.resume()
    tokens = lambda n: np.random.default_rng(n).integers(0, 64, (4, 9)).astype("int32")
    losses = [trainer.step(tokens(n))["loss"] for n in range(trainer.steps_done, int(os.environ["STEPS"]))]
    trainer.save()
    print(json.dumps({"losses": losses, "bytes": trainer.device_bytes()}), flush=True)
    if launched:
        jax.distributed.shutdown()
    """


def alone(folder, steps):
    path = os.environ.get("CAPIBARA_PYTHON_PATH", str(BUILD / "python"))
    done = subprocess.run(python(PROGRAM), capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": path, "ALONE": "1", "FOLDER": str(folder), "STEPS": str(steps)})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["losses"]


def test_four_processes_train_as_one(tmp_path):
    wanted = alone(tmp_path / "one", 4)
    for mesh in ("data=2,fsdp=2", "expert=4"):
        folder = tmp_path / mesh.replace(",", "")
        code, launched = run(4, python(PROGRAM), "--devices", 1, MESH=mesh, FOLDER=str(folder), STEPS="2")
        assert code == 0, launched.all
        for number in range(4):
            told = json.loads(launched.text(number).splitlines()[-1])
            assert told["losses"] == pytest.approx(wanted[:2], rel=3e-5), launched.all
            assert told["bytes"]["held"]["parameters"] == told["bytes"]["planned"]["parameters"], launched.all
        # On one device from the checkpoint of four.
        assert alone(folder, 4) == pytest.approx(wanted[2:], rel=3e-5)
