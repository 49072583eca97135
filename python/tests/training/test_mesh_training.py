"""Training over meshes: the losses of one device and of a plain jax loop, bytes as planned, wrong meshes rejected by name."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")

PROGRAM = Path(__file__).with_name("mesh_training_programs.py")


@pytest.fixture(scope="module")
def answers():
  done = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, timeout=900,
                        env=dict(os.environ, JAX_NUM_CPU_DEVICES="8", JAX_PLATFORMS="cpu"))
  assert done.returncode == 0, done.stderr
  return json.loads(done.stdout)


def test_every_mesh_has_the_losses_of_one_device(answers):
  alone = {name.split()[0]: losses for name, losses in answers["losses"].items() if name.endswith(" ")}
  compared = 0
  for name, losses in answers["losses"].items():
    kind = {"resumed": "dense", "grid": "dense"}.get(name, name.split()[0])
    if kind not in alone: continue
    np.testing.assert_allclose(losses, alone[kind], rtol=3e-5, err_msg=name)
    compared += 1
  assert compared > 18


def test_the_own_class_has_the_losses_of_plain_jax(answers):
  jax, optax = pytest.importorskip("jax"), pytest.importorskip("optax")
  jnp = jax.numpy
  draw = np.random.default_rng(0)
  layers = {str(i): {"w": draw.standard_normal((16, 16)).astype("float32") / 4, "b": np.zeros(16, "float32")} for i in range(4)}
  params = {"layers": layers, "out": draw.standard_normal((16, 4)).astype("float32") / 4}

  def loss(params, x, y):
    for i in range(4):
      x = jnp.tanh(x @ params["layers"][str(i)]["w"] + params["layers"][str(i)]["b"])
    return jnp.mean((x @ params["out"] - y) ** 2)

  rate = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 1, 4, end_value=1e-3)
  optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, b2=0.99, weight_decay=0.1))
  state, expected = optimizer.init(params), []
  for number in range(4):
    source = np.random.default_rng(100 + number)
    x, y = source.standard_normal((16, 16)).astype("float32"), source.standard_normal((16, 4)).astype("float32")
    value, slopes = jax.value_and_grad(loss)(params, x, y)
    updates, state = optimizer.update(slopes, state, params)
    params = optax.apply_updates(params, updates)
    expected.append(float(value))
  for mesh in ("", "data=8", "fsdp=4,tensor=2", "stages=4,data=2"):
    np.testing.assert_allclose(answers["losses"][f"own {mesh}"], expected, rtol=3e-5, err_msg=mesh)


def test_devices_hold_what_is_planned(answers):
  for name, bytes_of in answers["sizes"].items():
    assert bytes_of["held"] == bytes_of["planned"], name
  whole, parts = answers["sizes"]["dense "], answers["sizes"]["dense fsdp=8"]
  for what in ("parameters", "optimizer", "gradients"):
    assert parts["held"][what] * 8 <= whole["held"][what] * 1.05, what
  assert answers["losses"]["mesh of backend 1"] == "fsdp=8"
  assert answers["losses"]["mesh of backend 2"] == "data=4,tensor=2"


REFUSED = {
    "word": "as data=2,fsdp=4, of data, fsdp, expert, sequence, stages, tensor, and microbatches; got 'rows=2'",
    "size": "got 'data=0'",
    "kind": "TrainerConfig: mesh is a text such as 'data=2,fsdp=4', or a dict of such axes, got 8",
    "dict": "got 'data=-1'",
    "devices": "the mesh data=16 needs 16 devices, there are 8",
    "experts": "has an axis that would do nothing: no parameter of 'LanguageModel' has a dimension of experts that it divides, expert=2",
    "batch": "splits batches into 8 parts (data x fsdp), which do not divide batch=6",
    "two meshes": "mesh_shape (8,) and the config's mesh 'data=8' are two meshes; give one",
    "three axes": "mesh_shape has the axes data and tensor, got (2, 2, 2)",
    "too small": "mesh_shape (2, 2) needs 4 devices, this process has 8",
    "no layers": "has stages, and 'model' has no layers to divide among them",
    "nothing over sequence": "has an axis that would do nothing: the loss of 'Perceptron' computes nothing over sequence=2",
    "uneven batch": "into 8 parts (data x fsdp), which do not divide the first dimension of array 0 of the batch, float32[12,16]",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(answers, name):
  assert REFUSED[name] in answers["errors"][name]
