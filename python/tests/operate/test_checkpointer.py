"""TPUCheckpointer: pytrees saved and restored, errors, links, SIGTERM, devices."""

import os
import signal
import subprocess
import sys
import textwrap
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara._errors import CheckpointError, CorruptCheckpointError
from capibara.core.tpu import TPUCheckpointer
from capibara.operate import checkpointer as checkpointer_module


class Moments(NamedTuple):
    mu: dict
    count: object


@pytest.fixture
def state():
    params = {"layers": [{"w": jnp.arange(6.0).reshape(2, 3)}, {"w": jnp.ones((3, 1), jnp.bfloat16)}], "none": None}
    return {"params": params, "opt_state": (Moments({"w": jnp.arange(3)}, jnp.int32(7)), ())}


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape and np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_the_seed_saves_and_restores(tmp_path, state):
    checkpointer = TPUCheckpointer(checkpoint_dir=str(tmp_path / "run"), max_to_keep=3, async_checkpointing=True)
    checkpointer.save(step=1000, params=state["params"], opt_state=state["opt_state"])
    restored = checkpointer.restore(step=1000)
    assert sorted(restored) == ["opt_state", "params"]
    assert restored["params"]["none"] is None
    same(restored["params"]["layers"][1]["w"], state["params"]["layers"][1]["w"])
    assert isinstance(restored["opt_state"], tuple) and restored["opt_state"][1] == ()
    same(restored["opt_state"][0]["mu"]["w"], jnp.arange(3))  # a named tuple is a dictionary without `like`


def test_like_gives_the_structure_back(tmp_path, state):
    checkpointer = TPUCheckpointer(tmp_path)
    checkpointer.save(1, **state)
    back = checkpointer.restore(like=jax.eval_shape(lambda: state))
    assert jax.tree.structure(back) == jax.tree.structure(state)
    jax.tree.map(same, back, state)
    wrong = r"array params\['layers'\]\[0\]\['w'\]: expected float32\[9\] \(argument 'like'\), got float32\[2,3\]"
    with pytest.raises(ValueError, match=wrong):
        checkpointer.restore(like={"params": {"layers": [{"w": jnp.zeros(9)}, {"w": jnp.ones((3, 1), jnp.bfloat16)}], "none": None}})
    with pytest.raises(ValueError, match="holds no item 'model'"):
        checkpointer.restore(like={"model": {}})
    with pytest.raises(TypeError, match="like is a dictionary"):
        checkpointer.restore(like=[1])


def test_only_reads_what_it_names(tmp_path, state):
    checkpointer = TPUCheckpointer(tmp_path)
    checkpointer.save(1, **state)
    first = checkpointer.restore(only=["params.layers.0"])
    assert jax.tree.structure(first) == jax.tree.structure({"params": {"layers": [{"w": 0}, None]}})
    fresh = jax.tree.map(lambda x: x * 0, state)
    mixed = checkpointer.restore(like=fresh, only="params")
    same(mixed["params"]["layers"][0]["w"], state["params"]["layers"][0]["w"])
    assert "opt_state" not in mixed
    with pytest.raises(ValueError, match="holds no 'params.layer' .argument 'only'.; it holds opt_state.0.mu.w"):
        checkpointer.restore(only=["params.layer"])


def test_numbers_and_numpy_arrays_keep_their_bits(tmp_path):
    checkpointer = TPUCheckpointer(tmp_path)
    items = {"step": 2**40, "rate": 1e-300, "on": True, "wide": np.arange(3, dtype=np.int64) + 2**40, "key": jax.random.key(3)}
    checkpointer.save(1, extra=items, metadata={"name": "run", "losses": [1.5, None]})
    back = checkpointer.restore(like={"extra": items})["extra"]
    assert back["step"] == 2**40 and back["rate"] == 1e-300 and back["on"] is True
    same(back["wide"], items["wide"])
    assert back["key"].dtype == items["key"].dtype and jnp.array_equal(jax.random.key_data(back["key"]), jax.random.key_data(items["key"]))
    assert checkpointer.restore_metadata() == {"name": "run", "losses": [1.5, None]}


def test_steps_stay_and_go(tmp_path):
    checkpointer = TPUCheckpointer(tmp_path, max_to_keep=2)
    assert checkpointer.latest_step() is None
    for step in (1, 2, 30):
        checkpointer.save(step, p={"w": jnp.arange(step)})
    checkpointer.wait()
    assert checkpointer.all_steps() == [2, 30] and checkpointer.latest_step() == 30 and not checkpointer.is_saving()
    assert checkpointer.arrays(2) == {"p.w": jax.ShapeDtypeStruct((2,), jnp.int32)}
    checkpointer.delete(2)
    assert checkpointer.all_steps() == [30]
    with pytest.raises(CheckpointError, match="step 2 is not in .*; it holds 30"):
        checkpointer.restore(2)


def test_donated_arrays_are_saved_as_they_were(tmp_path):
    update = jax.jit(lambda x: x + 1, donate_argnums=0)
    checkpointer = TPUCheckpointer(tmp_path)
    x = jnp.arange(300_000.0)
    for step in range(5):
        checkpointer.save(step, p={"x": x})
        x = update(x)
    checkpointer.wait()
    for step in range(5):
        assert np.array_equal(checkpointer.restore(step)["p"]["x"], np.arange(300_000, dtype=np.float32) + step)


def test_arrays_are_restored_onto_devices(tmp_path):
    checkpointer = TPUCheckpointer(tmp_path)
    w = jnp.arange(32.0).reshape(8, 4)
    checkpointer.save(1, params={"w": w})
    device = jax.devices()[0]
    back = checkpointer.restore(shardings={"params": {"w": jax.sharding.SingleDeviceSharding(device)}})["params"]["w"]
    assert back.sharding == jax.sharding.SingleDeviceSharding(device)
    same(back, w)
    with pytest.raises(ValueError, match="shardings names 'model'"):
        checkpointer.restore(shardings={"model": None})


def test_saved_on_eight_devices_restored_on_fewer(tmp_path):
    script = textwrap.dedent("""
        import sys
        import numpy as np
        import capibara.jax as jax, capibara.jax.numpy as jnp
        from capibara.core.tpu import TPUCheckpointer
        jax.config.update("jax_num_cpu_devices", 8)
        def sharded(shape, *names):
            mesh = jax.sharding.Mesh(np.array(jax.devices()[:int(np.prod(shape))]).reshape(shape), names)
            return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*names))
        w = jnp.arange(64.0).reshape(8, 8)
        checkpointer = TPUCheckpointer(sys.argv[1])
        checkpointer.save(1, params={"w": jax.device_put(w, sharded((8,), "x"))})
        for shape, names in (((1,), "x"), ((2,), "x"), ((4, 2), "xy")):
            back = checkpointer.restore(shardings={"params": {"w": sharded(shape, *names)}})["params"]["w"]
            assert len(back.sharding.device_set) == int(np.prod(shape)), back.sharding
            assert np.array_equal(back, w)
        print("same")
    """)
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True)
    assert done.stdout == "same\n", done.stderr


def test_a_damaged_step_is_an_error_or_the_one_before(tmp_path):
    checkpointer = TPUCheckpointer(tmp_path, link_unchanged=False)
    for step in (1, 2):
        checkpointer.save(step, params={"w": jnp.arange(1000.0) + step})
    checkpointer.wait()
    data = tmp_path / "2" / "params" / "w" / "c.0"
    flipped = bytearray(data.read_bytes())
    flipped[1234] ^= 4
    data.write_bytes(flipped)
    with pytest.raises(CorruptCheckpointError, match="array params.w, file .*/2/params/w/c.0, chunk 0 of 1: the checksum is"):
        checkpointer.restore()
    with pytest.warns(RuntimeWarning, match="step 2 is damaged, taking step 1 instead"):
        back = checkpointer.restore(on_corruption="previous")
    assert back["params"]["w"][0] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert checkpointer.restore(1)["params"]["w"][0] == 1
    with pytest.raises(ValueError, match="on_corruption is 'error' or 'previous', got 'ignore'"):
        checkpointer.restore(on_corruption="ignore")


def test_wrong_arguments_are_named(tmp_path):
    checkpointer = TPUCheckpointer(tmp_path)
    with pytest.raises(TypeError, match=r"checkpoint: p\['name'\] is a str, expected an array or a number"):
        checkpointer.save(1, p={"name": "x"})
    with pytest.raises(ValueError, match="expected at least one item"):
        checkpointer.save(1)
    with pytest.raises(ValueError, match="two arrays of 'p' are called 'a.b'"):
        checkpointer.save(1, p={"a": {"b": 1}, "a.b": 2})
    with pytest.raises(TypeError, match="is a tracer"):
        jax.jit(lambda x: checkpointer.save(1, p=x))(1.0)
    with pytest.raises(ValueError, match="max_to_keep is a number of steps from 1"):
        TPUCheckpointer(tmp_path, max_to_keep=0)
    checkpointer.save(1, p=jnp.ones(2))
    with pytest.raises(ValueError, match="step 1 is already in"):
        checkpointer.save(1, p=jnp.ones(2))
    assert checkpointer.all_steps() == [1]


def test_a_folder_that_cannot_be_written_is_an_error():
    with pytest.raises(CheckpointError, match="making the folder /sys/capibara failed: .*; name a folder that this user may write|"
                                              "making the folder /sys/capibara failed: "):
        TPUCheckpointer("/sys/capibara/run")


def test_a_full_disk_is_an_error_and_training_goes_on(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", small], capture_output=True).returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    try:
        checkpointer = TPUCheckpointer(small / "run")
        checkpointer.save(1, p={"w": jnp.ones(1000)})
        checkpointer.save(2, p={"w": jnp.arange(1_000_000)})
        with pytest.raises(CheckpointError, match="failed: No space left on device; free space"):
            checkpointer.wait()
        checkpointer.save(3, p={"w": jnp.ones(2000)})
        checkpointer.wait()
        assert checkpointer.all_steps() == [1, 3] and sorted(os.listdir(small / "run")) == ["1", "3"]
    finally:
        subprocess.run(["umount", small], check=True)


def test_sigterm_saves_the_next_step_and_ends(tmp_path):
    script = textwrap.dedent("""
        import sys
        import capibara.jax.numpy as jnp
        from capibara.core.tpu import TPUCheckpointer
        checkpointer = TPUCheckpointer(sys.argv[1], save_interval_steps=1_000_000_000)
        for step in range(1, 1_000_000_000):
            checkpointer.maybe_save(step, params={"w": jnp.arange(3) + step})
            print(step, flush=True)
    """)
    with subprocess.Popen([sys.executable, "-c", script, tmp_path], stdout=subprocess.PIPE, text=True) as training:
        for _ in range(3):
            training.stdout.readline()
        training.send_signal(signal.SIGTERM)
        last = [line for line in training.stdout.read().split("\n") if line]
    assert training.returncode == -signal.SIGTERM
    checkpointer = TPUCheckpointer(tmp_path)
    step = checkpointer.latest_step()
    assert step is not None and step >= (int(last[-1]) if last else 3)
    assert checkpointer.restore()["params"]["w"][0] == step


def test_a_signal_that_comes_while_the_processes_agree_is_not_lost(tmp_path, monkeypatch):
    ends = []
    monkeypatch.setattr(TPUCheckpointer, "_end_as_signalled", lambda self: ends.append(True))

    def signalled_after_the_look(flag):
        if not ends:
            signal.raise_signal(signal.SIGTERM)
        return [flag]

    monkeypatch.setattr(checkpointer_module, "_flags", signalled_after_the_look)
    with TPUCheckpointer(tmp_path, save_interval_steps=1_000_000_000) as checkpointer:
        assert not checkpointer.maybe_save(1, params={"w": jnp.arange(3)})
        assert checkpointer.reached_preemption
        assert checkpointer.maybe_save(2, params={"w": jnp.arange(3)})
        assert ends and checkpointer.all_steps() == [2]


ON_DEVICES = """
import sys
import numpy as np
import capibara.jax as jax, capibara.jax.numpy as jnp
from capibara.core.tpu import TPUCheckpointer, TPUMonitor
from capibara.jax.sharding import NamedSharding, PartitionSpec as P
folder, count = sys.argv[1], int(sys.argv[2])
values = np.arange(256 * 512, dtype=np.float32).reshape(256, 512)
saver = TPUCheckpointer(folder, async_checkpointing=False, chunk_bytes=16384)
if sys.argv[3] == "save":
    mesh = jax.make_mesh((8,), ("i",))
    saver.save(1, params={"rows": jax.device_put(values, NamedSharding(mesh, P("i"))),
                          "columns": jax.device_put(values, NamedSharding(mesh, P(None, "i"))),
                          "whole": jax.device_put(values, NamedSharding(mesh, P()))})
    sys.exit()
mesh = jax.make_mesh((4, 2), ("a", "b")) if count == 8 else jax.make_mesh((count, 1), ("a", "b"))
monitor = TPUMonitor(1000)
before = monitor.get_current_metrics()["checkpoint_read_gb"]
got = saver.restore(shardings={"params": {"rows": NamedSharding(mesh, P("a", "b")), "columns": NamedSharding(mesh, P("b", "a")),
                                          "whole": NamedSharding(mesh, P(("a", "b")))}})["params"]
read = (monitor.get_current_metrics()["checkpoint_read_gb"] - before) * 1e9
for name, array in got.items():
    assert len(array.sharding.device_set) == count and np.array_equal(array, values), name
print(read / (3 * values.nbytes))
"""


def test_saved_on_eight_devices_and_restored_on_others_with_every_byte_read_once(tmp_path):
    def on(count, verb):
        done = subprocess.run([sys.executable, "-c", ON_DEVICES, tmp_path, str(count), verb], capture_output=True, text=True,
                              env={**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={count}"})
        assert done.returncode == 0, done.stderr
        return done.stdout

    on(8, "save")
    for count in (1, 2, 8):
        assert 1 <= float(on(count, "restore")) < 1.01
