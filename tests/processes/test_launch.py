"""capibara launch: lines, exit codes, restarts, limits, and how processes meet."""
import os
import re
import signal
import subprocess
import sys
import tempfile

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
    run(1, ["true"])  # the next launch removes what the killed one left in shared memory
    assert not [name for name in os.listdir("/dev/shm") if name.startswith(f"capibara-launch-{launch.child.pid}-")]


def test_wrong_command_lines():
    for words in ([], ["-n", "2"], ["-n"], ["-n", "0", "--", "true"], ["-n", "two", "--", "true"], ["--nonsense", "--", "true"]):
        done = subprocess.run([str(COMMAND), "launch", *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "usage: capibara launch" in done.stderr, (words, done)


def test_under_plain_mpirun(tmp_path):
    # Each process has a file of its own: mpirun may join the lines of two.
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
    # The loader looks for libmpi in LD_LIBRARY_PATH first: an empty file there cannot be opened.
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
    # Four shares of equal size: the mean of their gradients is that of all data.
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
