"""capibara.training: the model and its training match plain jax; failed steps are named; runs resume exactly."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
oracle = pytest.importorskip("jax", reason="the peer is not installed")
optax = pytest.importorskip("optax", reason="the peer of optimizers is not installed")

import capibara.jax as jax
import capibara.jax.numpy as jnp
import plain_language_model as plain
from capibara import training

SMALL = {"vocabulary": 256, "width": 32, "layers": ["attention+mlp", "mamba+mlp", "attention+moe"], "heads": 4, "key_heads": 2,
         "hidden": 48, "experts": 4, "state": 8}
TEXT = ("It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife. " * 60)


def small_model(**changes):
    return training.LanguageModel(**{**SMALL, **changes})


def config_of(model):
    return json.loads(model.to_json())


def tokens_of(shape, vocabulary=256, seed=0):
    return np.random.default_rng(seed).integers(0, vocabulary, shape, dtype=np.int32)


def to_peer(params):
    return {name: oracle.numpy.asarray(np.asarray(value)) for name, value in params.items()}


@pytest.fixture
def text_path(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return str(path)


@pytest.mark.wide
@pytest.mark.parametrize("changes", [{}, {"tied": False}, {"norm": "layer", "bias": True, "activation": "gelu", "positions": "learned"}])
def test_loss_and_gradient_are_those_of_plain_jax(changes):
    model = small_model(**changes)
    params, tokens = model.init(jax.random.key(1)), tokens_of((3, 24))
    value, gradient = jax.jit(jax.value_and_grad(model.loss))(params, jnp.asarray(tokens))
    shape = config_of(model)
    peer = oracle.jit(oracle.value_and_grad(lambda params, tokens: plain.loss(params, tokens, shape)))
    peer_value, peer_gradient = peer(to_peer(params), tokens)
    np.testing.assert_allclose(value, peer_value, rtol=1e-5)
    for name, want in peer_gradient.items():
        np.testing.assert_allclose(gradient[name], want, rtol=1e-3, atol=2e-5, err_msg=name)


def test_fifty_steps_are_those_of_plain_jax():
    """Checks that the losses of 50 steps stay within 0.2 % of the same training in plain jax with optax."""
    model = small_model()
    config = training.TrainerConfig(steps=50, batch=4, length=32, warmup=5, learning_rate=3e-3)
    trainer = training.Trainer(config, model)
    params, shape = to_peer(trainer.params), config_of(model)
    schedule = optax.warmup_cosine_decay_schedule(0.0, 3e-3, 5, 50, end_value=3e-4)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, b2=0.99, weight_decay=0.1))
    state = optimizer.init(params)

    @oracle.jit
    def step(params, state, tokens):
        value, gradient = oracle.value_and_grad(plain.loss)(params, tokens, shape)
        updates, state = optimizer.update(gradient, state, params)
        return value, optax.apply_updates(params, updates), state

    text = np.frombuffer(TEXT.encode(), np.uint8).astype(np.int32)
    for number in range(50):
        starts = np.random.default_rng(number).integers(0, len(text) - 33, 4)
        tokens = np.stack([text[start:start + 33] for start in starts])
        value, params, state = step(params, state, tokens)
        report = trainer.step(tokens)
        assert not report["skipped"]
        np.testing.assert_allclose(report["loss"], value, rtol=2e-3, err_msg=f"step {number}")
    assert report["loss"] < 3.2  # from log(256) = 5.5


@pytest.mark.wide
@pytest.mark.parametrize("policy", ["everything", "nothing_saveable", "minimal", "offload"])
def test_gradient_checkpointing_changes_memory_not_values(policy):
    model = small_model()
    params, tokens = model.init(jax.random.key(1)), jnp.asarray(tokens_of((2, 17)))
    again = training.enable_gradient_checkpointing(model, checkpoint_every_n_layers=2, checkpoint_policy=policy)
    want, got = jax.jit(jax.grad(model.loss))(params, tokens), jax.jit(jax.grad(again.loss))(params, tokens)
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_accumulated_gradients_are_those_of_one_large_batch():
    def losses(batch, accumulate):
        model = small_model(layers=["attention+mlp", "mamba"])
        trainer = training.Trainer(training.TrainerConfig(steps=6, batch=batch, length=16, accumulate=accumulate), model)
        return [trainer.step(tokens_of((8, 17), seed=number))["loss"] for number in range(6)]

    np.testing.assert_allclose(losses(2, 4), losses(8, 1), rtol=1e-4)


def test_bfloat16_trains_with_float32_parameters():
    model = small_model()
    trainer = training.TPUTrainer(training.TrainerConfig(steps=20, batch=4, length=32, warmup=2), model)
    wide = training.Trainer(training.TrainerConfig(steps=20, batch=4, length=32, warmup=2), model)
    tokens = np.tile(np.arange(33, dtype=np.int32), (4, 1))
    narrow_losses = [trainer.step(tokens)["loss"] for _ in range(20)]
    wide_losses = [wide.step(tokens)["loss"] for _ in range(20)]
    assert {str(value.dtype) for value in trainer.params.values()} == {"float32"}
    assert narrow_losses != wide_losses and narrow_losses[-1] < narrow_losses[0] - 1
    np.testing.assert_allclose(narrow_losses[:5], wide_losses[:5], rtol=2e-2)


def test_bad_steps_change_nothing_and_name_the_layer():
    model = small_model()
    trainer = training.Trainer(training.TrainerConfig(steps=9, batch=2, length=16, max_bad_steps=3), model)
    broken = trainer.params
    broken["layers.1.mlp.gate_up.weight"] = broken["layers.1.mlp.gate_up.weight"] * 3e38
    trainer.params = broken
    tokens = tokens_of((2, 17))
    for _ in range(2):
        report = trainer.step(tokens)
        assert report["skipped"] and not np.isfinite(report["loss"])
    np.testing.assert_array_equal(trainer.params["norm.scale"], broken["norm.scale"])
    with pytest.raises(FloatingPointError, match=r"3 steps in a row.*first value that is not finite is in layers\.1\.mlp"):
        trainer.step(tokens)
    broken["layers.0.attention.out.weight"] = broken["layers.0.attention.out.weight"].at[0, 0].set(np.nan)
    assert model.first_bad_layer(broken, tokens[:, :-1]) == "parameter layers.0.attention.out.weight"
    assert model.first_bad_layer(model.init(jax.random.key(0)), tokens[:, :-1]) == ""


def test_a_spike_is_left_out():
    model = small_model(layers=["attention+mlp"])
    trainer = training.Trainer(training.TrainerConfig(steps=80, batch=2, length=16, warmup=2, spike_factor=2.0, max_bad_steps=2), model)
    easy = np.tile(np.arange(17, dtype=np.int32), (2, 1))
    for _ in range(70):
        trainer.step(easy)
    before = trainer.params
    reports = [trainer.step(tokens_of((2, 17), seed=9)) for _ in range(3)]
    assert [report["skipped"] for report in reports] == [True, True, False]  # patience runs out
    assert reports[0]["loss"] == reports[1]["loss"] == reports[2]["loss"]
    assert any(not np.array_equal(before[name], value) for name, value in trainer.params.items())


def test_an_interrupted_run_goes_on_with_the_same_losses(text_path, tmp_path, capsys):
    def trainer(folder):
        config = training.TrainerConfig(steps=12, batch=2, length=16, checkpoint_every=4)
        return training.Trainer(config, small_model(layers=["attention", "mamba"]), folder=str(folder))

    whole = trainer(tmp_path / "whole").train(text_path)

    def interrupt(report):
        if report["step"] == 7:
            raise KeyboardInterrupt

    first = trainer(tmp_path / "parts")
    with pytest.raises(KeyboardInterrupt):
        first.train(text_path, on_step=interrupt)
    assert f"stopped after step 7; saved in {tmp_path / 'parts' / 'checkpoints'}" in capsys.readouterr().err
    second = trainer(tmp_path / "parts")
    rest = second.train(text_path)
    assert first.losses == whole[:7] and rest == whole[7:]
    assert second.sample("It is a", 12, temperature=0) == second.sample("It is a", 12, temperature=0)


@pytest.mark.parametrize("name", ["run.lock", "tokens.bin"])
def test_files_of_others_are_not_written_over(name, text_path, tmp_path):
    (tmp_path / name).write_text("mine")
    config = training.TrainerConfig(steps=2, batch=2, length=16)
    with pytest.raises(ValueError, match="holds files that no Trainer has written"):
        training.Trainer(config, small_model(layers=["attention"]), folder=str(tmp_path)).train(text_path)
    assert (tmp_path / name).read_text() == "mine" and not (tmp_path / "tokenizer.txt").exists()


MESH_PROGRAM = """
import numpy as np
from capibara import training

def losses(**options):
    model = training.LanguageModel(width=32, layers=["attention+mlp"], hidden=48)
    trainer = training.Trainer(training.TrainerConfig(steps=5, batch=4, length=16), model, **options)
    return [trainer.step(np.random.default_rng(i).integers(0, 256, (4, 17), dtype=np.int32))["loss"] for i in range(5)]

plain = losses()
np.testing.assert_allclose(losses(mesh_shape=(2, 1)), plain, rtol=1e-5)
np.testing.assert_allclose(losses(enable_xla_optimizations=False), plain, rtol=1e-5)
"""


def test_batches_are_spread_over_a_mesh():
    with pytest.raises(ValueError, match=r"mesh_shape \(8, 8\) needs 64 devices, this process has 1"):
        training.TPUTrainer(training.TrainerConfig(), small_model(), mesh_shape=(8, 8))
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run([sys.executable, "-c", MESH_PROGRAM], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


def test_arguments_of_the_trainer_act_or_are_refused():
    from capibara.core.tpu import TPUConfig, TPUError
    model = small_model(layers=["attention"])
    slice_of_tpu = {"tpu_version": "v6e", "num_chips": 64, "batch_size_per_chip": 3}
    trainer = training.TPUTrainer(TPUConfig(**slice_of_tpu, precision="float32"), model)
    assert not trainer.use_bf16 and trainer._fields["batch"] == 3
    assert training.TPUTrainer(TPUConfig(**slice_of_tpu), model).use_bf16
    full = training.TPUTrainer(TPUConfig(**slice_of_tpu, memory_optimization="aggressive"), model)
    assert config_of(full.model)["checkpoint_every_n_layers"] > 0 == config_of(model)["checkpoint_every_n_layers"]
    with pytest.raises(ValueError, match="use_bf16=True contradicts the configuration's compute_dtype float32"):
        training.TPUTrainer(TPUConfig(**slice_of_tpu, precision="float32"), model, use_bf16=True)
    with pytest.raises(ValueError, match="param_dtype is bfloat16"):
        training.TPUTrainer(TPUConfig(**slice_of_tpu, fp32_params=False), model)
    with pytest.raises((ValueError, TPUError), match="64"):
        training.TPUTrainer(TPUConfig(**slice_of_tpu), model, mesh_shape=(2, 2))
    for mesh_shape in (4, (-1, -1), (0,), "8x8"):
        with pytest.raises(ValueError, match="mesh_shape is a tuple of positive sizes"):
            training.Trainer(training.TrainerConfig(), model, mesh_shape=mesh_shape)
    with pytest.raises(TypeError, match="config is an object with fields"):
        training.Trainer({"steps": 3}, model)
    with pytest.raises(TypeError, match="config comes before the model"):
        training.Trainer(model, training.TrainerConfig())
    with pytest.raises(ValueError, match="held_out is a share"):
        training.Trainer(training.TrainerConfig(held_out=-1.0), model)
    with pytest.raises(ValueError, match="no tokenizer before"):
        training.Trainer(training.TrainerConfig(), model).sample("It is")


def test_errors_name_the_field():
    with pytest.raises(TypeError, match="unknown field 'depth'"):
        training.LanguageModel(depth=3)
    with pytest.raises(ValueError, match="a layer is 'attention' or 'mamba', alone or with .* got 'atention'"):
        training.LanguageModel(layers=["atention"])
    with pytest.raises(ValueError, match="width 30 must be an even multiple of heads 4"):
        training.LanguageModel(width=30)
    with pytest.raises(ValueError, match="optimizer is one of sgd, .* got 'sdg'"):
        training.Trainer(training.TrainerConfig(optimizer="sdg"), small_model())
    with pytest.raises(ValueError, match="checkpoint_policy is one of .* got 'some'"):
        training.enable_gradient_checkpointing(small_model(), 1, "some")
    model = small_model()
    params = model.init(jax.random.key(0))
    del params["layers.0.attention.qkv.weight"]
    with pytest.raises(ValueError, match="'layers.0.attention.qkv.weight' is missing .* the nearest is 'layers.0.attention.out.weight'"):
        model.apply(params, jnp.zeros((1, 4), "int32"))
