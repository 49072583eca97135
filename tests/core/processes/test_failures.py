"""Processes that die, stop, raise, or run something else: every other process gets an error that names them, and nothing is left behind."""
import os
import re
import signal
import time

import pytest
from launching import PROGRAM, Launch, missing, python, run

pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))


def started_loop(*flags):
    """Four processes in an endless loop of sums; returns the launch and their ids."""
    launch = Launch(4, [PROGRAM, "loop"], *flags)
    launch.wait_for("under way", 4)
    return launch, {number: int(line.split()[1]) for number, line in launch.wait_for("pid ", 4).items()}


@pytest.mark.parametrize("victim", [0, 1, 2, 3])
def test_a_killed_process_is_named_by_all_others(victim):
    launch, processes = started_loop()
    time.sleep(0.01 * victim)  # at a different point in the loop
    os.kill(processes[victim], signal.SIGKILL)
    assert launch.finish() == 128 + signal.SIGKILL, launch.all
    for number in set(range(4)) - {victim}:
        assert "DistributedError: " in launch.text(number), launch.all
        named = f"process {victim} \\(\\S+, pid {processes[victim]}\\)(, which coordinates| died)"
        assert re.search(named, launch.text(number)), launch.all
    assert any(f"process {victim} was ended by signal 9" in line for line in launch.said), launch.all
    if victim != 0:
        assert any("wait in psum over 'data' (loop:1)" in launch.text(number) or "waits in psum" in launch.text(number)
                   for number in set(range(4)) - {victim}), launch.all


def test_a_stopped_process_is_named_and_ended():
    launch, processes = started_loop()
    os.kill(processes[2], signal.SIGSTOP)
    found = launch.wait_for("DistributedError: ", 3)
    for number in (0, 1, 3):
        assert re.search(r"process 2 \(.*pid \d+\) has been silent for \d+ s", found[number]), found
    assert launch.finish() == 3, launch.all  # the error's own exit code; the stopped process is killed


RAISES = """
    import capibara.jax as jax, numpy as np
    jax.distributed.initialize()
    from capibara.jax.experimental import multihost_utils
    multihost_utils.process_allgather(np.ones(3))
    if jax.process_index() == 1:
        raise ValueError("the data of process 1 is bad")
    multihost_utils.process_allgather(np.ones(4))
    """


def test_an_exception_reaches_the_others():
    code, launch = run(4, python(RAISES))
    assert code == 1, launch.all
    assert launch.said[-1] == "capibara launch: process 1 exited with 1", launch.all
    assert "ValueError: the data of process 1 is bad" in launch.text(1)
    for number in (0, 2, 3):
        assert "DistributedError" in launch.text(number) and "process 1 (" in launch.text(number), launch.all
        assert "has ended with ValueError: the data of process 1 is bad (<string>:7)" in launch.text(number), launch.all
        assert "process_allgather of float32[4] (<string>:8)" in launch.text(number), launch.all


STALLS = """
    import time
    import capibara.jax as jax, numpy as np
    jax.distributed.initialize(collective_timeout_seconds=4)
    from capibara.jax.experimental import multihost_utils
    multihost_utils.sync_global_devices("start")
    if jax.process_index() == 3:
        while True:
            sum(range(1000))
    multihost_utils.sync_global_devices("end")
    """


def test_a_stalled_process_is_named_with_its_line():
    launch = Launch(4, python(STALLS))
    launch.wait_for("Error: ", 3)
    assert launch.finish() == 1, launch.all
    for number in (0, 1, 2):
        assert re.search(r"process 3 \(.*\) has not come, it is at <string>:(8|9)", launch.text(number)), launch.all
        assert "sync_global_devices('end') (<string>:10)" in launch.text(number), launch.all


def test_a_different_call_is_named():
    code, launch = run(3, [PROGRAM, "mismatch"])
    assert code == 3, launch.all
    for number in range(3):
        assert "broadcast_one_to_all of float32[4]" in launch.text(number), launch.all
        assert "process_allgather of float32[3]" in launch.text(number), launch.all
        found = re.search(r"process \d \(.*pid \d+\) is in.* while (\d) others? waits? in", launch.text(number))
        assert found, launch.all  # the process that detects it first notifies all
        assert int(found[1]) + len(re.findall(r"process \d \(", found[0])) <= 3, launch.all  # a named process is not among the waiting ones


@pytest.mark.parametrize("windows", ["1", "0"])
def test_a_different_shape_is_named(windows):
    program = """
        import capibara.jax as jax, numpy as np
        jax.distributed.initialize()
        from capibara.jax.experimental import multihost_utils
        multihost_utils.process_allgather(np.ones(3 + (jax.process_index() == 2)))
        """
    code, launch = run(3, python(program), CAPIBARA_MPI_WINDOWS=windows)
    assert code == 1, launch.all
    for number in range(3):
        assert "float32[3]" in launch.text(number) and "float32[4]" in launch.text(number), launch.all


def test_a_different_program_is_named():
    code, launch = run(3, [PROGRAM, "agree"])
    assert code == 3, launch.all
    for number in range(3):
        assert launch.lines[number][0] == "agreed", launch.all
        assert "another program" in launch.text(number) and "step of (f32[4])" in launch.text(number), launch.all


DIFFERS = """
    import capibara.jax as jax, capibara.jax.numpy as jnp
    from capibara.jax import lax
    from capibara.jax.sharding import PartitionSpec as P
    jax.distributed.initialize()
    mesh, own = jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Auto,)), jax.process_index()
    def step(x):
        return lax.psum(x * FACTOR, "i")
    f = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=P("i"), out_specs=P()))
    same = jax.jit(jax.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))
    assert same(jnp.ones(2)).tolist() == [2] and same(jnp.ones(2)).tolist() == [2]
    print("agreed", flush=True)
    print(f(jnp.ones(SIZE)), flush=True)
    """


@pytest.mark.parametrize("factor, size", [("(2 + own)", "2"), ("2", "2 + 2 * own")], ids=["another function", "other shapes"])
def test_a_program_that_differs_is_named_before_it_runs(factor, size):
    code, launch = run(2, python(DIFFERS.replace("FACTOR", factor).replace("SIZE", size)), JAX_NUM_CPU_DEVICES="1")
    assert code == 1, launch.all
    for number in range(2):
        assert launch.lines[number][0] == "agreed", launch.all
        assert re.search(r"process \d \(.*\) runs another program: jit\(step\) of \(float32\[\d\]\)", launch.text(number)), launch.all
        assert "(<string>:13)" in launch.text(number), launch.all


def test_a_program_that_one_process_has_run_before_is_named():
    program = DIFFERS.replace("f(jnp.ones(SIZE))", "(f if own else same)(jnp.ones(2))").replace("FACTOR", "2")
    code, launch = run(2, python(program), JAX_NUM_CPU_DEVICES="1")
    assert code == 1, launch.all
    for number in range(2):
        assert "jit(step) of (float32[2])" in launch.text(number) and "psum over 'i' of float32[1,1]" in launch.text(number), launch.all


def test_names_of_barriers_must_agree():
    program = """
        import capibara.jax as jax
        jax.distributed.initialize()
        from capibara.jax.experimental import multihost_utils
        multihost_utils.sync_global_devices(f"step {jax.process_index() // 2}")
        """
    code, launch = run(3, python(program))
    assert code == 1, launch.all
    for number in range(3):
        assert "sync_global_devices('step 0')" in launch.text(number) and "sync_global_devices('step 1')" in launch.text(number), launch.all
