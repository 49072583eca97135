"""Checkpoints of arrays that span processes: saved by all, restored on other meshes, where each process reads its own devices' chunks."""
import pytest
from launching import missing, python, run

pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

BEGIN = """
    import os
    import numpy as np
    import capibara.jax as jax, capibara.jax.numpy as jnp
    from capibara._errors import CheckpointError
    from capibara.core.tpu import TPUCheckpointer, TPUMonitor
    from capibara.jax.sharding import NamedSharding, PartitionSpec as P
    jax.distributed.initialize()
    values = np.arange(512 * 256, dtype=np.float32).reshape(512, 256)

    def spread(x, shape, names, spec):
        sharding = NamedSharding(jax.make_mesh(shape, names), spec)
        return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])

    def check(array, expected):
        for shard in array.addressable_shards:
            assert np.array_equal(np.asarray(shard.data), expected[shard.index]), shard.index
    """

SAVE = BEGIN + """
    saver = TPUCheckpointer(os.environ["FOLDER"], chunk_bytes=16384)
    state = {"w": spread(values, (8,), ("i",), P("i")), "t": spread(values, (4, 2), ("a", "b"), P("b", "a")), "n": jnp.arange(5)}
    saver.save(1, params=state)
    saver.wait()
    assert saver.all_steps() == [1]
    saver.save(2, params=state)
    saver.wait()
    try:
        saver.save(2, params=state)
        print("saved twice")
    except (ValueError, CheckpointError) as error:
        print("refused", "already" in str(error) or "process 0 failed" in str(error))
    print("done", flush=True)
    """

RESTORE = BEGIN + """
    saver = TPUCheckpointer(os.environ["FOLDER"])
    mesh = jax.make_mesh((4, 2), ("a", "b"))
    rows, cells = NamedSharding(mesh, P("a")), NamedSharding(mesh, P("a", "b"))
    like = {"params": {"w": jax.ShapeDtypeStruct((512, 256), jnp.float32)}}
    monitor = TPUMonitor(1000)
    before = monitor.get_current_metrics()["checkpoint_read_gb"]
    extra = {"params": {"w": like["params"]["w"], "t": like["params"]["w"], "n": jax.ShapeDtypeStruct((5,), jnp.int32)}}
    got = saver.restore(1, like=extra, shardings={"params": {"w": rows, "t": cells, "n": NamedSharding(mesh, P())}})["params"]
    read = monitor.get_current_metrics()["checkpoint_read_gb"] * 1e9 - before * 1e9
    check(got["w"], values)
    check(got["t"], values)
    check(got["n"], np.arange(5))
    share = read / (2 * values.nbytes)
    print("share", f"{share:.2f}", "of", jax.process_count(), flush=True)
    """


def test_saved_by_four_processes_and_read_by_two(tmp_path):
    folder = str(tmp_path / "steps")
    code, saved = run(4, python(SAVE), "--devices", 2, FOLDER=folder)
    assert code == 0, saved.all
    assert all("refused True" in saved.text(number) and "done" in saved.text(number) for number in range(4)), saved.all
    code, restored = run(2, python(RESTORE), "--devices", 4, FOLDER=folder)
    assert code == 0, restored.all
    for number in range(2):
        share = float(restored.text(number).split("share ")[1].split()[0])
        assert share < 0.6, restored.all  # half of the rows, and the small files
