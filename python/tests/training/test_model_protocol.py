"""The model protocol: every kind of model trains like a plain jax loop, and objects that no function can handle are rejected by name."""
import importlib
import inspect
import json
import os
import pathlib
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")
optax = pytest.importorskip("optax", reason="the peer of optimizers is not installed")

import capibara
import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import _core
from capibara import mithril as ml
from capibara import training
from capibara.core import tpu
from capibara.gradient_checkpointing import enable_gradient_checkpointing
from capibara.operate.checkpointer import TPUCheckpointer
from capibara.operate.profiler import TPUProfiler

STEPS, RATE = 6, 0.01


def config_of(**changes):
    return training.TrainerConfig(**{"steps": STEPS, "learning_rate": RATE, "warmup": 2, **changes})


def batch_of(number):
    x = np.cos(np.arange(24, dtype=np.float32).reshape(8, 3) + number)
    return x, np.sum(x, 1, keepdims=True)


PARAMS = {"b": np.zeros(1, np.float32), "w": [np.asarray([[0.3], [-0.2], [0.5]], np.float32)]}


class Line:
    """A user's class in a few lines; `calls` counts how often its Python runs."""

    def __init__(self):
        self.calls = 0

    def init(self, key):
        return jax.tree.map(jnp.asarray, PARAMS)

    def apply(self, params, x):
        return x @ params["w"][0] + params["b"]

    def loss(self, params, x, y):
        self.calls += 1
        return jnp.mean((self.apply(params, x) - y) ** 2)


class Tower:
    """Layers of sin(exp(tanh)) whose activations weigh more than their parameters."""
    layer_count = 12

    def __init__(self, width=32):
        self.width = width
        draw = np.random.default_rng(0)
        weights = draw.normal(size=(self.layer_count, width, width)).astype(np.float32) / np.float32(width**0.5)
        self.params = {"layers": [{"w": weight} for weight in weights]}
        self.logical_axes = {f"layers.{i}.w": ("embed", "mlp") for i in range(self.layer_count)}
        self.sizes = {"layers": self.layer_count, "width": width}

    def start(self, params, x):
        return {"x": x}

    def run_layer(self, params, layer, carry):
        h = jnp.tanh(carry["x"] @ params["layers"][layer]["w"])
        return {"x": jnp.sin(jnp.exp(h * jnp.cos(h))) + h}

    def finish(self, params, carry, x):
        return jnp.mean(carry["x"] ** 2)

    def output(self, params, carry):
        return carry["x"]

    def layer_prefix(self, layer):
        return f"layers.{layer}."

    def apply(self, params, x):
        carry = self.start(params, x)
        for layer in range(self.layer_count):
            carry = self.run_layer(params, layer, carry)
        return self.output(params, carry)

    def loss(self, params, x):
        return jnp.mean(self.apply(params, x) ** 2)


def losses_of_a_plain_loop(loss, params, batches, steps=STEPS):
    schedule = optax.warmup_cosine_decay_schedule(0.0, RATE, 2, steps, end_value=RATE / 10)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, b2=0.99, weight_decay=0.1))
    params = oracle.tree.map(oracle.numpy.asarray, params)
    state, losses = optimizer.init(params), []
    for number in range(steps):
        value, gradient = oracle.value_and_grad(loss)(params, *batches(number))
        updates, state = optimizer.update(gradient, state, params)
        params = optax.apply_updates(params, updates)
        losses.append(float(value))
    return losses


def plain_loss(params, x, y):
    return oracle.numpy.mean((x @ params["w"][0] + params["b"] - y) ** 2)


# ---- each kind of model trains as plain jax does -----------------------------------------------------------------------------------------


def test_a_class_trains_as_plain_jax_does_and_its_python_runs_while_tracing_only():
    model = Line()
    trainer = training.Trainer(config_of(), model)
    first = trainer.step(*batch_of(0))["loss"]
    traced = model.calls
    losses = [first] + [trainer.step(*batch_of(number))["loss"] for number in range(1, STEPS)]
    np.testing.assert_allclose(losses, losses_of_a_plain_loop(plain_loss, PARAMS, batch_of), rtol=1e-5)
    assert model.calls == traced
    assert trainer.params["w"][0].shape == (3, 1)
    assert trainer.evaluate(*batch_of(0)) < first


@pytest.mark.parametrize("kind", ["function", "dict", "params", "generator", "dictionaries"])
def test_other_forms_of_models_and_batches_train_the_same(kind):
    line, batches = Line(), batch_of
    model = line
    if kind == "function":
        model = capibara.as_model(line.loss, PARAMS)
    if kind == "dict":
        model = {"params": PARAMS, "loss": line.loss, "apply": line.apply}
    if kind == "params":
        model = capibara.as_model(line, PARAMS)
    if kind == "generator":
        batches = (batch_of(number) for number in range(STEPS))
    if kind == "dictionaries":
        model = {"params": PARAMS, "loss": lambda params, batch: line.loss(params, batch["x"], batch["y"])}
        batches = [dict(zip("xy", batch_of(number))) for number in range(STEPS)]
    losses = training.Trainer(config_of(), model).train(batches)
    np.testing.assert_allclose(losses, losses_of_a_plain_loop(plain_loss, PARAMS, batch_of), rtol=1e-5)


def test_flax_and_equinox_modules_train_as_with_jax_and_optax():
    program = pathlib.Path(__file__).with_name("model_protocol_programs.py")

    def run(*command):
        done = subprocess.run([sys.executable, *command, str(program)], capture_output=True, text=True,
                              env={**os.environ, "JAX_PLATFORMS": "cpu"})
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])
    got, expected = run("-m", "capibara"), run()
    assert sorted(got) == ["equinox", "linen", "nnx"]
    for kind, losses in expected.items():
        np.testing.assert_allclose(got[kind], losses, rtol=2e-4, err_msg=kind)


def compiled_model():
    model = ml.models.Model()
    model |= ml.models.Linear(dimension=1)(input="x", output="prediction")
    train = ml.models.TrainModel(model)
    train.add_loss(ml.models.SquaredError(), reduce_steps=[ml.models.Mean()], input="prediction", target="y")
    return ml.compile(train, ml.JaxBackend(), shapes={"x": (8, 3), "y": (8, 1)}, data_keys={"x", "y"})


def test_a_compiled_named_model_trains_as_plain_jax_does():
    compiled = compiled_model()
    start = {key: np.full(shape, 0.1, np.float32) for key, shape in compiled.get_shapes().items() if key in compiled.trainable_keys}
    model = capibara.as_model(compiled, start, batch=["x", "y"])
    losses = training.Trainer(config_of(), model).train(batch_of)
    weight, bias = sorted(start, key=lambda key: -start[key].ndim)

    def loss(params, x, y):
        return oracle.numpy.mean((x @ params[weight].T + params[bias] - y) ** 2)
    np.testing.assert_allclose(losses, losses_of_a_plain_loop(loss, start, batch_of), rtol=1e-4)


def test_a_language_model_is_one_too():
    model = training.LanguageModel(vocabulary=32, width=16, layers=["attention+mlp"] * 2, heads=2, hidden=24)
    made = capibara.as_model(model)
    params, tokens = model.init(jax.random.key(0)), np.arange(18, dtype=np.int32).reshape(2, 9)
    assert float(made.loss(params, tokens)) == float(model.loss(params, tokens))
    assert made.layers == 2 and made.sizes()["inferred"] is False
    assert made.logical_axes()["of"]["layers.0.mlp.down.weight"] == ["mlp", "embed"]


def test_a_run_of_a_class_resumes_with_the_batches_that_follow(tmp_path):
    whole = training.Trainer(config_of(), Line()).train(batch_of)
    batches = [batch_of(number) for number in range(STEPS)]
    first = training.Trainer(config_of(), Line(), folder=tmp_path)
    part = first.train(batches[:3])
    second = training.Trainer(config_of(), Line(), folder=tmp_path)
    assert part + second.train(iter(batches)) == whole


def test_accumulation_and_mixed_precision_of_a_class():
    whole = training.Trainer(config_of(), Line()).train(batch_of)
    np.testing.assert_allclose(training.Trainer(config_of(accumulate=4), Line()).train(batch_of), whole, rtol=1e-5)
    mixed = training.Trainer(config_of(), Line(), use_bf16=True)
    np.testing.assert_allclose(mixed.train(batch_of), whole, rtol=0.03)
    assert mixed.params["b"].dtype == np.float32


# ---- checkpointing -----------------------------------------------------------------------------------------------------------------------


def temporary_bytes(model, x):
    gradient = jax.jit(jax.grad(model.loss)).lower(model.params, x).compile()
    return gradient.memory_analysis().temp_size_in_bytes


def test_memory_of_the_gradient_falls_with_checkpointing():
    tower, x = Tower(), jnp.asarray(np.random.default_rng(1).normal(size=(1024, 32)), jnp.float32)
    plain = temporary_bytes(tower, x)
    taken = {}
    expected = jax.grad(tower.loss)(tower.params, x)
    for every in (1, 3, 12):
        made = enable_gradient_checkpointing(tower, every)
        for got, want in zip(jax.tree.leaves(jax.grad(made.loss)(tower.params, x)), jax.tree.leaves(expected)):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-6)
        taken[every] = temporary_bytes(made, x)
    assert taken[1] < plain * 2 / 3 and taken[3] < plain * 2 / 3 and taken[3] < taken[12]
    optimized = tpu.MemoryOptimizer("aggressive", activation_checkpointing_layers=3).optimize(tower)
    assert temporary_bytes(optimized, x) == taken[3]
    config = config_of(gradient_checkpointing=True)
    np.testing.assert_allclose(training.Trainer(config, Tower()).train([x] * 2), training.Trainer(config_of(), Tower()).train([x] * 2),
                               rtol=1e-5)


# ---- sharding, quantization, plans -------------------------------------------------------------------------------------------------------


def test_objects_are_sharded_and_quantized_like_trees():
    mesh = jax.make_mesh((1,), ("data",), devices=jax.devices()[:1])
    tower = Tower()
    sharded = tpu.shard_model(tower, mesh)
    assert sharded is not tower and isinstance(sharded.params["layers"][0]["w"].sharding, jax.sharding.NamedSharding)
    assert "layers/0/w" in tpu.sharding_table(tower, mesh)
    language = training.LanguageModel(vocabulary=32, width=16, layers=["attention+mlp"], heads=2, hidden=24)
    assert "embedding" in tpu.sharding_table(language, mesh)
    x = jnp.ones((2, 32))
    quantized = tpu.quantize_for_tpu(tower)
    np.testing.assert_allclose(quantized.apply(quantized.params, x), tower.apply(tower.params, x), atol=0.05)
    assert quantized.params["layers"][0]["w"].nbytes < tower.params["layers"][0]["w"].nbytes / 3


def test_a_checkpointer_takes_a_model_whole(tmp_path):
    model = capibara.as_model(Tower())
    checkpointer = tpu.TPUCheckpointer(tmp_path, async_checkpointing=False)
    checkpointer.save(1, model=model)
    restored = checkpointer.restore(like={"model": model.with_params(jax.tree.map(jnp.zeros_like, model.params))})["model"]
    np.testing.assert_array_equal(restored.params["layers"][3]["w"], model.params["layers"][3]["w"])
    with pytest.raises(TypeError, match="model is a Tower, expected an array or a number"):
        checkpointer.save(2, model=Tower())


def test_plans_say_what_they_assumed():
    language = training.LanguageModel(vocabulary=512, width=64, layers=["attention+mlp"] * 3, heads=4, hidden=192)
    step = tpu.estimate_step(language, "v4-8", 128, 8)
    assert step["origin"] == "modelled" and step["assumed"] == [] and step["tpu"] == "v4-8"
    step = tpu.estimate_step({"embed": np.zeros((1000, 64)), "up": np.zeros((64, 256)), "down": np.zeros((256, 64))})
    text = "; ".join(step["assumed"])
    assert "width 64: the most frequent side" in text and "slice v4-8: none was given" in text and "one on each device" in text
    batch = tpu.find_optimal_batch_size(language, 128)
    assert f"{batch}".endswith(f"(modelled for {batch.tpu})") and batch == int(batch) and "slice v6e" in batch.assumed[-1]
    memory = tpu.MemoryOptimizer("aggressive", activation_checkpointing_layers=2).estimate_memory(language, 8, 128)
    assert "modelled" in f"{memory['total_gb']:.1f}" and memory["assumed"] == ["slice v4-8: none was given"]
    memory = tpu.MemoryOptimizer("aggressive", activation_checkpointing_layers=2).estimate_memory("1.3b", 128, 2048)
    total = sum(size for _, size in memory["buffers"])
    assert total == pytest.approx(memory["total_gib"], rel=1e-3)
    found = tpu.diagnose_performance(Tower(), target_tflops=1e9)
    assert any("heads" in assumption for assumption in found["assumed"]) and "modelled" in str(found["tflops"])


def test_vector_quantization_names_why_nothing_was_quantized():
    draw = np.random.default_rng(0)
    model = {"params": {"w": draw.normal(size=(64, 64)).astype(np.float32)}, "apply": lambda params, x: x @ params["w"]}
    vq = tpu.TPUv6VQIntegration(vector_length=64, codebook_size=4)
    with pytest.warns(UserWarning, match="nothing was quantized: even the matrix that loses least"):
        vq.quantize_model(model, [draw.normal(size=(4, 64)).astype(np.float32)])
    metrics = vq.get_metrics()
    assert metrics["layers_quantized"] == 0 and "vectors shorter than 64" in metrics["reason"]
    for name in ("inference_speedup", "compression_ratio"):
        assert not metrics[name] and f"{metrics[name]:.1f}" == "-" and "nothing was quantized" in metrics[name].reason


# ---- unsupported objects are rejected --------------------------------------------------------------------------------------------------


class NoParams:
    def loss(self, params, x):
        return x


class HalfLayers(Line):
    layer_count = 3


class OddLoss(Line):
    loss = 3


def trainer(model, config=None):
    return training.Trainer(config or config_of(), model)


MESH = object()
TOKENS = np.zeros((16, 129), np.int32)
NOTHINGS = [None, 3, 2.5, "no such preset", b"bytes", object(), Line, len, [], {}]


def wrong_models(use):
    """Ten objects that are not models, and the text that each error must contain."""
    return [(f"{use.__name__}({thing!r:.30})", lambda thing=thing: use(thing), "") for thing in NOTHINGS]


def mesh_of_one():
    return jax.make_mesh((1,), ("data",), devices=jax.devices()[:1])


WRONG = [
    *wrong_models(capibara.as_model), *wrong_models(trainer), *wrong_models(enable_gradient_checkpointing),
    *wrong_models(lambda m: tpu.shard_model(m, mesh_of_one())), *wrong_models(lambda m: tpu.sharding_table(m, mesh_of_one())),
    *wrong_models(tpu.quantize_for_tpu), *wrong_models(tpu.estimate_step), *wrong_models(tpu.analyze_bottlenecks),
    *wrong_models(lambda m: tpu.find_optimal_batch_size(m, 128)), *wrong_models(tpu.diagnose_performance),
    *wrong_models(lambda m: tpu.MemoryOptimizer().estimate_memory(m, 8, 128)), *wrong_models(tpu.MemoryOptimizer().optimize),
    *wrong_models(tpu.MemoryOptimizer("none").optimize),
    *wrong_models(lambda m: tpu.TPUv6VQIntegration().quantize_model(m, [np.ones((2, 3))])),
    ("no params", lambda: trainer(NoParams()), "NoParams has neither params nor init"),
    ("half of the layers", lambda: trainer(HalfLayers()), "HalfLayers has layer_count and no start"),
    ("a loss that is no function", lambda: trainer(OddLoss()), "OddLoss.loss must be a function"),
    ("no loss", lambda: trainer(capibara.as_model(PARAMS)), "has no loss"),
    ("integers", lambda: trainer(capibara.as_model(Line().loss, {"n": np.arange(3)})), "'n' is int32"),
    ("settings in params", lambda: trainer(capibara.as_model(Line().loss, {"w": np.ones(2), "rate": 0.5})), "'rate'"),
    ("model before config", lambda: training.Trainer(Line(), config_of()), "config comes before the model"),
    ("a batch of three", lambda: trainer(Line()).step(1.0, 2.0, 3.0), "argument"),
    ("a batch that is no array", lambda: trainer(Line()).step("x", "y"), "a batch is of arrays"),
    ("batches of two structures", lambda: [trainer_of_two() for _ in "x"], "the first one had"),
    ("text for a class", lambda: trainer(Line()).train("book.txt"), "Line does not take text"),
    ("no batches", lambda: trainer(Line()).train(3), "an iterable of batches"),
    ("sizes for batches", lambda: trainer(Line()).train([], batch_size_per_chip=4), "batch_size_per_chip"),
    ("samples of a class", lambda: trainer(Line()).sample("x"), "Line writes no text"),
    ("uneven accumulation", lambda: trainer(Line(), config_of(accumulate=3)).step(*batch_of(0)), "accumulate = 3 must divide"),
    ("a loss of several numbers", lambda: trainer({"params": PARAMS, "loss": lambda p, x: x}).step(np.ones(3, np.float32)), "scalar"),
    ("params of another structure", lambda: setattr(trainer(Line()), "params", {"w": 1}), "structure"),
    ("params of another shape", lambda: setattr(trainer(Line()), "params", {"b": np.zeros(1), "w": [np.zeros((2, 1))]}), "'w.0' must be"),
    ("a field of a LanguageModel", lambda: capibara.as_model(training.LanguageModel(), loss=len), "has its own loss"),
    ("keys of a class", lambda: capibara.as_model(Line(), batch=["x"]), "'batch'; it is for compiled named models"),
    ("a key that is none", lambda: capibara.as_model(compiled_model(), batch=["x", "z"]), "'z'"),
    ("too few keys", lambda: capibara.as_model(compiled_model(), batch=["x"]), "'y' is missing"),
    ("an unknown key of a dict", lambda: capibara.as_model({"params": PARAMS, "apply": len, "size": 3}), "unknown key 'size'"),
    ("a function to checkpoint", lambda: enable_gradient_checkpointing(lambda x: x), "as one group it would save nothing"),
    ("no layers", lambda: enable_gradient_checkpointing(Line()), "Line has no layers"),
    ("groups of none", lambda: enable_gradient_checkpointing(Tower(), 0), "at least 1, got 0"),
    ("groups of a half", lambda: enable_gradient_checkpointing(Tower(), 0.5), "a number of layers, got 0.5"),
    ("an unknown policy", lambda: enable_gradient_checkpointing(Tower(), 1, "some"), "got 'some'"),
    ("no mesh", lambda: tpu.shard_model(PARAMS, MESH), "expected a Mesh (argument 'mesh')"),
    ("an unknown strategy", lambda: tpu.shard_model(PARAMS, mesh_of_one(), "some"), "got 'some'"),
    ("a model without parameters", lambda: tpu.shard_model(Line(), mesh_of_one()), "Line has no parameters yet"),
    ("a LanguageModel without parameters", lambda: tpu.quantize_for_tpu(training.LanguageModel()), "has no parameters yet"),
    ("three bits", lambda: tpu.quantize_for_tpu(PARAMS, bits=3), "4 or 8, got 3"),
    ("nothing to quantize", lambda: tpu.quantize_for_tpu({"bias": np.zeros(3)}), "has no matrix to quantize"),
    ("no apply to quantize", lambda: tpu.TPUv6VQIntegration().quantize_model(PARAMS, [1]), "has no apply"),
    ("no calibration", lambda: tpu.TPUv6VQIntegration().quantize_model(Tower(), 3), "an iterable of batches, got 3"),
    ("a negative batch", lambda: tpu.estimate_step("1.3b", batch_size=-1), "batch_size is a positive number, got -1"),
    ("no length", lambda: tpu.find_optimal_batch_size("1.3b", None or 0), "sequence_length is a positive number, got 0"),
    ("a loader that is none", lambda: tpu.diagnose_performance("1.3b", 3), "dataloader is an iterable"),
    ("only vectors", lambda: tpu.estimate_step({"b": np.zeros(3)}), "shows no sizes"),
]


def trainer_of_two():
    made = trainer(Line())
    made.step(*batch_of(0))
    made.step(batch_of(1))


@pytest.mark.parametrize(("use", "text"), [(use, text) for _, use, text in WRONG], ids=[name for name, _, _ in WRONG])
def test_wrong_uses_are_named(use, text):
    with pytest.raises(Exception) as caught:
        use()
    assert isinstance(caught.value, (TypeError, ValueError, KeyError, tpu.TPUError)), repr(caught.value)
    assert text in str(caught.value) and "incompatible function arguments" not in str(caught.value)


def modules_below(name):
    module = importlib.import_module(name)
    yield module
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        yield from modules_below(f"{name}.{found.name}")


# How to construct objects of classes that need arguments; and classes of results, which users do not construct.
MADE = {
    "MeshConfig": lambda folder: tpu.MeshConfig((1,), ("data",)),
    "MultiHostConfig": lambda folder: tpu.MultiHostConfig(1, 0),
    "Rule": lambda folder: tpu.Rule("w", ("data",)),
    "Model": lambda folder: capibara.as_model({"w": np.ones(3, np.float32)}),
    "TPUCheckpointer": TPUCheckpointer,
    "TPUProfiler": lambda folder: TPUProfiler(folder / "profiles"),
}
RESULTS = {"Figure", "Absent", "PlannedBatch", "QuantizedWeight"}


def public_functions(folder):
    """Every public function of capibara.core and capibara.config, and every public method of an object of each public class."""
    seen = set()
    for root in ("capibara.core", "capibara.config"):
        for module in modules_below(root):
            for name, value in vars(module).items():
                home = getattr(value, "__module__", None) or ""
                if name.startswith("_") or id(value) in seen or not home.startswith("capibara.") or home.startswith("capibara.jax"):
                    continue
                seen.add(id(value))
                if inspect.isclass(value):
                    if name in RESULTS:
                        continue
                    made = MADE[name](folder) if name in MADE else value()
                    for method, function in inspect.getmembers(made, callable):
                        if not method.startswith("_"):
                            yield f"{module.__name__}.{name}.{method}", function
                elif callable(value):
                    yield f"{module.__name__}.{name}", value


class Opaque:
    """An object that nothing can handle."""


def test_no_public_function_returns_what_it_cannot_handle(monkeypatch, tmp_path):
    for name, value in os.environ.items():  # restored after functions that write to the environment
        monkeypatch.setenv(name, value)
    before, walked, returned = dict(os.environ), 0, []
    for name, function in public_functions(tmp_path):
        thing = Opaque()
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):  # functions of the extension: try any number of arguments
            calls = {f"{count} arguments": [thing] * count for count in range(1, 7)}
        else:
            named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
            # As each argument in turn, with defaults for the other arguments.
            calls = {changed.name: [thing if p is changed or p.default is p.empty else p.default for p in named] for changed in named}
        walked += bool(calls)
        for changed, arguments in calls.items():
            try:
                result = function(*arguments)
            except Exception:
                continue
            finally:
                if _core.profile_active():  # some start a profile
                    _core.profile_stop()
            inside = jax.tree_util.tree_leaves(result) if isinstance(result, (list, tuple, dict)) else [result]
            if any(leaf is thing for leaf in inside):
                returned.append(f"{name} ({changed})")
    for name in set(os.environ) - set(before):
        monkeypatch.delenv(name)
    assert walked > 60
    assert not returned, f"returned what they were given: {', '.join(returned)}"
