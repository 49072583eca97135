"""Trains small models over meshes of eight CPU devices; prints losses, bytes and errors as one JSON line."""

import json
import tempfile

import numpy as np

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import training

STEPS, BATCH, LENGTH = 4, 8, 16
losses, sizes, errors = {}, {}, {}


def language_model(layer="attention+mlp", **fields):
  return training.LanguageModel(**{**dict(vocabulary=128, width=64, layers=[layer] * 4, heads=4, hidden=96, experts=4), **fields})


def config(mesh="", **fields):
  return training.TrainerConfig(**{**dict(steps=STEPS, batch=BATCH, length=LENGTH, warmup=1, learning_rate=1e-2, mesh=mesh), **fields})


def tokens(number, rows=BATCH):
  draw = np.random.default_rng(number)
  return ((draw.integers(0, 128, (rows, 1)) + np.arange(LENGTH + 1) * draw.integers(1, 4, (rows, 1))) % 128).astype("int32")


class Perceptron:
  """A user's class with layers of one kind, which the parent process also trains in plain jax."""

  def init(self, key):
    return initial()

  def start(self, params, x, y):
    return x

  def run_layer(self, params, layer, x):
    own = params["layers"][str(layer)]
    return jnp.tanh(x @ own["w"] + own["b"])

  def finish(self, params, x, x0, y):
    return jnp.mean((x @ params["out"] - y) ** 2)

  layer_count = 4

  def layer_prefix(self, layer):
    return f"layers.{layer}."

  def loss(self, params, x, y):
    carry = self.start(params, x, y)
    for layer in range(4):
      carry = self.run_layer(params, layer, carry)
    return self.finish(params, carry, x, y)

  def logical_axes(self):
    return {"out": ("mlp", ""), **{f"layers.{i}.w": ("", "mlp") for i in range(4)}}


def initial():
  draw = np.random.default_rng(0)
  layers = {str(i): {"w": draw.standard_normal((16, 16)).astype("float32") / 4, "b": np.zeros(16, "float32")} for i in range(4)}
  return {"layers": layers, "out": draw.standard_normal((16, 4)).astype("float32") / 4}


def pairs(number):
  draw = np.random.default_rng(100 + number)
  return draw.standard_normal((16, 16)).astype("float32"), draw.standard_normal((16, 4)).astype("float32")


def train(name, model, settings, batch_of, **options):
  trainer = training.Trainer(settings, model, **options)
  losses[name] = [trainer.step(*batch_of(number))["loss"] for number in range(STEPS)]
  sizes[name] = trainer.device_bytes(trainer.gradient(*batch_of(0)))
  return trainer


def refuses(name, call):
  try:
    call()
    errors[name] = "computed"
  except (ValueError, TypeError) as error:
    errors[name] = str(error)


def named_model():
  import capibara.mithril as ml
  from capibara.mithril.models import Linear, Mean, Model, Relu, SquaredError, TrainModel
  model = Model()
  model |= Linear(dimension=32)(input="input", weight="w0", bias="b0", output="h0")
  model |= Relu()(input="h0", output="a0")
  model |= Linear(dimension=4)(input="a0", weight="w1", bias="b1", output="output")
  train_model = TrainModel(model)
  train_model.add_loss(SquaredError(), input="output", target="target", reduce_steps=[Mean()])
  return lambda mesh=None: ml.compile(train_model, ml.JaxBackend(device_mesh=mesh), shapes={"input": [16, 16], "target": [16, 4]},
                                      data_keys=["input", "target"])


dense = ["", "data=8", "fsdp=8", "data=2,fsdp=2,tensor=2", "sequence=4,data=2", "stages=4,data=2"]
for mesh in dense:
  train(f"dense {mesh}", language_model(), config(mesh), lambda n: (tokens(n),))
for mesh in dense + ["expert=4,data=2"]:
  train(f"experts {mesh}", language_model("attention+moe"), config(mesh), lambda n: (tokens(n),))
for mesh in ("", "data=8", "fsdp=4,tensor=2", "stages=4,data=2"):
  train(f"own {mesh}", Perceptron(), config(mesh), pairs)
compiled = named_model()
for mesh in ("", "data=8", "fsdp=8", "data=2,fsdp=2,tensor=2"):
  train(f"named {mesh}", compiled(), config(mesh), pairs)
for mesh in ((8,), (4, 2)):
  made = train(f"named backend {len(mesh)}", compiled(mesh), config(), pairs)
  losses[f"mesh of backend {len(mesh)}"] = made.mesh
rounds = dict(accumulate=2, max_norm=0.5)
for mesh in ("", "data=2,fsdp=4"):
  train(f"accumulated {mesh}", language_model(), config(mesh, **rounds), lambda n: (tokens(n, 2 * BATCH),))
train("grid", language_model(), config(), lambda n: (tokens(n),), mesh_shape=(4, 2))

with tempfile.TemporaryDirectory() as folder:
  first = training.Trainer(config("data=2,fsdp=4"), language_model(), folder=folder)
  losses["resumed"] = [first.step(tokens(n))["loss"] for n in range(2)]
  first.save()
  second = training.Trainer(config("stages=2,tensor=2"), language_model(), folder=folder)
  assert second.resume() and second.steps_done == 2
  losses["resumed"] += [second.step(tokens(n))["loss"] for n in range(2, STEPS)]
  table = second.sharding_table()
assert table.splitlines()[0].split() == ["parameter", "shape", "spec", "bytes/device", "why"] and "tensor" in table, table

make = lambda settings, model=None, **options: training.Trainer(settings, model or language_model(), **options)
refuses("word", lambda: make(config("rows=2")))
refuses("size", lambda: make(config("data=0")))
refuses("kind", lambda: make(config(8)))
refuses("dict", lambda: make(config({"data": -1})))
refuses("devices", lambda: make(config("data=16")))
refuses("experts", lambda: make(config("expert=2")))
refuses("batch", lambda: make(config("data=8", batch=6)))
refuses("two meshes", lambda: make(config("data=8"), mesh_shape=(8,)))
refuses("three axes", lambda: make(config(), mesh_shape=(2, 2, 2)))
refuses("too small", lambda: make(config(), mesh_shape=(2, 2)))
refuses("no layers", lambda: make(config("stages=2"), {"params": initial(), "loss": Perceptron().loss}))
refuses("nothing over sequence", lambda: make(config("sequence=2"), Perceptron()).step(*pairs(0)))
refuses("uneven batch", lambda: make(config("data=8"), Perceptron()).step(*(x[:12] for x in pairs(0))))
print(json.dumps({"losses": losses, "sizes": sizes, "errors": errors}))
