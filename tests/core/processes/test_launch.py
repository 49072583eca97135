"""capibara launch: output lines, exit codes, restarts, limits, and how processes connect."""
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from launching import BUILD, COMMAND, PROGRAM, ROOT, Launch, mark, marked_processes, missing, python, run

pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))


def shell(text):
    return ["sh", "-c", text]


def test_lines_are_marked_and_variables_set():
    text = "echo out $JAX_NUM_CPU_DEVICES $CAPIBARA_RESTART; echo err >&2; printf last; echo $CUDA_VISIBLE_DEVICES"
    code, launch = run(2, shell(text), "--devices", 3, CUDA_VISIBLE_DEVICES="0,1,2,3")
    assert code == 0, launch.all
    for number, devices in ((0, "last0,1"), (1, "last2,3")):
        assert sorted(launch.lines[number]) == ["err", devices, "out 3 0"], launch.all


def test_the_exit_code_is_that_of_the_first_failure():
    code, launch = run(3, shell('[ $OMPI_COMM_WORLD_RANK = 1 ] && exit 7; exit 0'))
    assert code == 7, launch.all
    assert any("process 1 exited with 7" in line for line in launch.said), launch.all
    assert run(2, ["a-program-that-does-not-exist"])[0] == 127


def last_said(launch):
    """The launcher's last message; mpirun may print its own."""
    return [line for line in launch.said if line.startswith("capibara launch: ")][-1].removeprefix("capibara launch: ")


def test_processes_that_would_go_on_for_ever_are_ended():
    code, launch = run(3, shell('[ $OMPI_COMM_WORLD_RANK = 1 ] && exit 7; exec sleep 1000'))
    assert code == 7 and last_said(launch) == "process 1 exited with 7", launch.all
    code, launch = run(2, shell('trap "" TERM INT HUP; [ $OMPI_COMM_WORLD_RANK = 1 ] && exit 7; while :; do sleep 0.1; done'))
    assert code == 7 and last_said(launch) == "process 1 exited with 7", launch.all


ENDS = """
    import sys, time
    import capibara.jax as jax, numpy as np
    jax.distributed.initialize()
    from capibara.jax.experimental import multihost_utils
    multihost_utils.process_allgather(np.ones(3))
    if jax.process_index() == {rank}:
        {end}
    multihost_utils.process_allgather(np.ones(4))
    """


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("end, code, words", [
    ('raise ValueError("bad data")', 1, "exited with 1"), ("sys.exit(5)", 5, "exited with 5"), ("sys.exit(0)", 1, "ended with 0 while"),
    ("import os; os._exit(6)", 6, "exited with 6"), ("import os; os.abort()", 134, "was ended by signal 6"),
    ("time.sleep(1); raise KeyError(1)", 1, "exited with 1")], ids=["raises", "exit 5", "exit 0", "vanishes", "aborts", "late"])
def test_the_process_that_failed_first_is_named_last_and_none_lingers(rank, end, code, words):
    got, launch = run(3, python(ENDS.format(rank=rank, end=end)))
    assert got == code and last_said(launch).startswith(f"process {rank} {words}"), launch.all
    assert not any("ending all processes" in line for line in launch.said), launch.all  # each exited in time on its own


@pytest.fixture
def folder_of_a_dead_process():
    """A folder in shared memory with a name like ours, and the id of a process that is not alive."""
    child = subprocess.Popen(["true"])
    child.wait()
    path = Path(f"/dev/shm/capibara-launch-{child.pid}-foreign")
    path.mkdir(mode=0o700)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def launch_true():
    return subprocess.run([str(COMMAND), "launch", "-n", "1", "--", "true"], capture_output=True, text=True, timeout=300).returncode


def test_folders_without_a_free_lock_belong_to_others(folder_of_a_dead_process):
    segment = folder_of_a_dead_process / "vader_segment.node.1"
    segment.write_text("another container's")
    assert launch_true() == 0 and segment.exists()  # no lock: does not belong to a launch
    with open(folder_of_a_dead_process / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert launch_true() == 0 and segment.exists()  # its launch is alive, in whichever container
    (folder_of_a_dead_process / "thesis.tex").write_text("years")
    assert launch_true() == 0
    assert not segment.exists() and (folder_of_a_dead_process / "thesis.tex").exists()  # only MPI's files are removed
    (folder_of_a_dead_process / "thesis.tex").unlink()
    assert launch_true() == 0 and not folder_of_a_dead_process.exists()


def test_a_group_is_started_anew():
    text = 'echo attempt $CAPIBARA_RESTART; [ $CAPIBARA_RESTART = 2 ] || exit 5'
    code, launch = run(2, shell(text), "--restarts", 3)
    assert code == 0, launch.all
    assert launch.lines[0] == ["attempt 0", "attempt 1", "attempt 2"]
    code, launch = run(2, shell(text), "--restarts", 1)
    assert code == 5, launch.all


def test_a_group_that_takes_too_long_is_ended():
    code, launch = run(2, ["sleep", "1000"], "--timeout", 2)
    assert code == 124, launch.all


def test_an_interruption_ends_all():
    launch = Launch(3, [PROGRAM, "loop"])
    launch.wait_for("under way", 3)
    launch.child.send_signal(signal.SIGINT)
    assert launch.finish() == 128 + signal.SIGINT, launch.all


def test_a_killed_launcher_leaves_no_process():
    launch = Launch(2, [PROGRAM, "loop"])
    launch.wait_for("under way", 2)
    launch.child.kill()
    assert launch.child.wait(timeout=60) == -signal.SIGKILL
    for _ in range(600):
        if not marked_processes(mark(launch)):
            break
        signal.sigtimedwait([], 0.1)
    assert not marked_processes(mark(launch)), launch.all
    run(1, ["true"])  # the next launch removes the killed one's files in shared memory
    assert not [name for name in os.listdir("/dev/shm") if name.startswith(f"capibara-launch-{launch.child.pid}-")]


def test_wrong_command_lines():
    for words in ([], ["-n", "2"], ["-n"], ["-n", "0", "--", "true"], ["-n", "two", "--", "true"], ["--nonsense", "--", "true"]):
        done = subprocess.run([str(COMMAND), "launch", *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "usage: capibara launch" in done.stderr, (words, done)


def test_under_plain_mpirun(tmp_path):
    # Each process writes its own file, since mpirun may join the lines of two.
    program = python(f"""
        import capibara.jax as jax
        jax.distributed.initialize()
        said = [f"{{jax.process_index()}} {{jax.process_count()}}"]
        try:
            jax.distributed.initialize()
        except RuntimeError as error:
            said.append(str(error))
        with open(r"{tmp_path}/" + str(jax.process_index()), "w") as out:
            out.write("\\n".join(said))
        """)
    flags = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    done = subprocess.run(["mpirun", *flags, "--oversubscribe", "-n", "2", *program], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": os.environ.get("CAPIBARA_PYTHON_PATH", str(BUILD / "python"))})
    assert done.returncode == 0, done
    for index in range(2):
        said = (tmp_path / str(index)).read_text().splitlines()
        assert said == [f"{index} 2", "distributed.initialize should only be called once."], done


def test_initialize_comes_before_computations():
    program = """
        import capibara.jax as jax, capibara.jax.numpy as jnp
        jnp.ones(3) + 1
        try:
            jax.distributed.initialize()
        except RuntimeError as error:
            print(error)
        """
    code, launch = run(2, python(program))
    assert code == 0, launch.all
    assert "jax.distributed.initialize() must be called before any JAX calls" in launch.text(0)
    assert re.search("started by `capibara launch`, but has not called jax.distributed.initialize", launch.text(1)), launch.all


def test_collectives_without_mpi_say_what_to_do(tmp_path):
    program = python("""
        import socket, numpy as np
        import capibara.jax as jax
        from capibara import _core
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        jax.distributed.initialize(f"127.0.0.1:{port}", 1, 0)
        try:
            _core.process_barrier("here", "")
        except RuntimeError as error:
            print(error)
        """)
    done = subprocess.run(program, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": os.environ.get("CAPIBARA_PYTHON_PATH", str(BUILD / "python"))})
    assert "these processes were not started by MPI" in done.stdout and "capibara launch -n 4" in done.stdout, done


def test_a_missing_library_is_named():
    # The loader searches LD_LIBRARY_PATH for libmpi first: an empty file there cannot be loaded.
    program = """
        import capibara.jax as jax
        try:
            jax.distributed.initialize()
        except RuntimeError as error:
            print(error)
        """
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, "libmpi.so.40"), "w").close()
        done = subprocess.run(python(program), capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PYTHONPATH": os.environ.get("CAPIBARA_PYTHON_PATH", str(BUILD / "python")),
                                   "LD_LIBRARY_PATH": folder, "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"})
    assert "collectives between processes need the module libcapibara_mpi.so" in done.stdout, done
    assert "libopenmpi-dev" in done.stdout, done


def numbers(lines):
    return [float(word) for line in lines for word in line.replace(":", " ").split() if word.replace(".", "").replace("-", "").isdigit()]


@pytest.mark.skipif(not (BUILD / "examples" / "09_processes").exists(), reason="the examples are not built")
def test_the_example_learns_the_same_in_one_and_in_four_processes():
    # Four shares of equal size: the mean of their gradients is the gradient on all data.
    import numpy as np
    x = np.arange(128.0).reshape(64, 2) / 128
    y = x @ [3.0, -2.0] + 0.5
    w, b, expected = np.zeros(2), 0.0, []
    for step in range(5):
        off = x @ w + b - y
        expected += [step, np.mean(off ** 2)]
        w, b = w - 0.5 * 2 * x.T @ off / 64, b - 0.5 * 2 * np.mean(off)
    expected += [*w, b]
    for program in ([sys.executable, ROOT / "examples" / "09_processes.py"], [BUILD / "examples" / "09_processes"]):
        code, launch = run(4, program)
        assert code == 0, launch.all
        assert np.allclose(numbers(launch.lines[0]), expected, atol=2e-3), (launch.lines[0], expected)
        assert not launch.lines.keys() - {0}, launch.all


@pytest.mark.skipif(not (BUILD / "examples" / "15_mesh_of_processes").exists(), reason="the examples are not built")
def test_a_mesh_over_four_processes_learns_what_one_process_learns():
    program = [BUILD / "examples" / "15_mesh_of_processes"]
    alone = subprocess.run(list(map(str, program)), capture_output=True, text=True, timeout=300, check=True).stdout
    for layout in (program, [sys.executable, ROOT / "examples" / "15_mesh_of_processes.py"]):
        code, launch = run(4, layout, JAX_NUM_CPU_DEVICES="2")
        assert code == 0, launch.all
        assert launch.lines[0] == alone.splitlines(), launch.all
        assert not launch.lines.keys() - {0}, launch.all
