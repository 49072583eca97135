"""TPUCheckpointer and training data in an object store: a fake one on loopback (tests/io/checkpoint/fake_store.py)."""

import sys
from pathlib import Path

import numpy as np
import pytest

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import training
from capibara._errors import CheckpointError, CorruptCheckpointError
from capibara.core.tpu import TPUCheckpointer
from capibara.operate.checkpointer import read_checkpoint

sys.path.insert(0, str(Path(__file__).parents[3] / "tests" / "io" / "checkpoint"))
from fake_store import FakeStore  # noqa: E402


@pytest.fixture
def store(monkeypatch):
    fake = FakeStore()
    for name, value in fake.environment().items():
        monkeypatch.setenv(name, value)
    try:
        TPUCheckpointer("gs://bucket/probe")
    except CheckpointError as error:
        fake.close()
        if "libcurl" in str(error):
            pytest.skip("capibara was built without libcurl")
        raise
    yield fake
    fake.close()


def test_pytrees_go_there_and_come_back(store):
    saver = TPUCheckpointer("gs://bucket/run", max_to_keep=2)
    state = {"w": jnp.arange(60_000.0).reshape(300, 200), "b": jnp.ones(3, jnp.bfloat16), "key": jax.random.key(3), "n": 7}
    for step in (1, 2, 3):
        saver.save(step, params=jax.tree.map(lambda x: x, state), metadata={"step": step})
    saver.wait()
    assert saver.all_steps() == [2, 3] and not any(name.startswith("run/1/") for name in store.objects)
    back = saver.restore(like={"params": state})["params"]
    assert np.array_equal(back["w"], state["w"]) and back["b"].dtype == jnp.bfloat16 and back["n"] == 7
    assert saver.restore_metadata() == {"step": 3}
    assert np.array_equal(read_checkpoint("gs://bucket/run/2", only=["params.w"])["params"]["w"], state["w"])
    with pytest.raises(ValueError, match="step 3 is already in gs://bucket/run"):
        saver.save(3, params=state)


def test_a_failed_save_is_raised_later_and_the_training_lives_on(store):
    saver = TPUCheckpointer("gs://bucket/run")
    saver.save(1, params={"w": jnp.ones(9)})
    saver.wait()
    store.faults = [("POST .*zarr", 403)]
    saver.save(2, params={"w": jnp.ones(8)})
    with pytest.raises(CheckpointError, match="status 403"):
        saver.wait()
    assert saver.latest_step() == 1
    saver.save(2, params={"w": jnp.ones(8)})
    saver.wait()
    assert saver.all_steps() == [1, 2]


def test_a_damaged_object_sends_the_restore_to_the_step_before(store):
    saver = TPUCheckpointer("gs://bucket/run", async_checkpointing=False)
    for step in (1, 2):
        saver.save(step, params={"w": jnp.full(1000, float(step))})
    data, _ = store.objects["run/2/params/w/c.0"]
    store.put("run/2/params/w/c.0", data[:-5])
    with pytest.raises(CorruptCheckpointError, match="array params.w, file gs://bucket/run/2/params/w/c.0"):
        saver.restore()
    with pytest.warns(RuntimeWarning, match="step 2 is damaged, taking step 1"):
        assert saver.restore(on_corruption="previous")["params"]["w"][0] == 1


def test_only_the_bytes_of_what_is_named_are_read(store):
    saver = TPUCheckpointer("gs://bucket/run", async_checkpointing=False)
    saver.save(1, params={"large": jnp.zeros(100_000), "small": jnp.arange(3)})
    store.log.clear()
    assert saver.restore(only="params.small")["params"]["small"][2] == 2
    assert not any("large" in path for _, path, *_ in store.log)


def test_training_data_is_read_from_the_store(store, tmp_path):
    store.put("texts/a.txt", b"it is a truth universally acknowledged " * 40)
    store.put("texts/b/c.txt", b"that a single man in possession of a good fortune " * 40)
    store.put("texts/", b"")
    together = b"".join(store.objects[name][0] for name in ("texts/a.txt", "texts/b/c.txt"))
    width = training.write_tokens("gs://bucket/texts", training.Tokenizer(), str(tmp_path / "tokens.bin"))
    assert width == 1 and (tmp_path / "tokens.bin").read_bytes() == together
    training.write_tokens("gs://bucket/texts/a.txt", training.Tokenizer(), str(tmp_path / "one.bin"))
    assert (tmp_path / "one.bin").read_bytes() == store.objects["texts/a.txt"][0]
    with pytest.raises(ValueError, match="there is no object gs://bucket/nothing, and none below it"):
        training.write_tokens("gs://bucket/nothing", training.Tokenizer(), str(tmp_path / "x.bin"))
