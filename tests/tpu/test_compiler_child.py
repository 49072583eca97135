"""The compiling child of `capibara plan`, with a fake libtpu: each failure is one line and leaves nothing behind."""
import json
import os
import platform
import shutil
import signal
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
COMMAND = os.environ.get("CAPIBARA_COMMAND", str(HERE.parents[1] / "build" / "capibara"))
STEP = ["--model", "layers=3,width=256,heads=2,hidden=512,vocab=512", "--tpu", "v5e-4", "--batch", "4", "--seq", "256"]
COMPILER = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")

pytestmark = [pytest.mark.skipif(platform.machine() != "x86_64", reason="libtpu exists for x86_64 alone"),
              pytest.mark.skipif(COMPILER is None, reason="no C compiler for the fake library")]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("fake") / "libtpu.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", str(path), str(HERE / "fake_libtpu.c")], check=True)
    return path


@pytest.fixture
def environment(library, tmp_path):
    (tmp_path / "scratch").mkdir()
    return {**os.environ, "TPU_LIBRARY_PATH": str(library), "TMPDIR": str(tmp_path / "scratch")}


def start(environment, how, *words):
    return subprocess.Popen([COMMAND, "plan", *STEP, *words], env={**environment, "FAKE_LIBTPU": how}, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def line_of(text):
    lines = [line for line in text.splitlines() if line.startswith("not compiled:")]
    assert len(lines) == 1, text
    return lines[0]


def wait_for_child(environment):
    for _ in range(600):
        if list(Path(environment["TMPDIR"]).glob("*/log.txt")):
            return
        time.sleep(0.1)
    raise AssertionError("the child has not started")


def children_in(folder):
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder) in path.read_text():
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


@pytest.mark.parametrize("how, says", [("crash", "the compiler crashed: signal 11"),
                                       ("kill", "was killed (signal 9), perhaps for lack of memory"),
                                       ("silent", "failed without a word (status 3)"), ("lock", "another process holds libtpu's lock"),
                                       ("refuse", "No such compile option: 'xla_tpu_wish'")])
def test_a_failure_is_one_line(environment, how, says):
    child = start(environment, how, "--compile")
    out, error = child.communicate(timeout=120)
    assert says in line_of(out) and child.returncode == 1, out + error
    assert "modelled by capibara" in out and os.listdir(environment["TMPDIR"]) == []


def test_a_child_that_hangs_is_ended(environment):
    child = start(environment, "hang", "--compile", "--limit", "1")
    out, _ = child.communicate(timeout=120)
    assert "the compiler was ended after 1 s" in line_of(out) and child.returncode == 1
    assert os.listdir(environment["TMPDIR"]) == [] and children_in(environment["TMPDIR"]) == []


def test_two_at_once_do_not_meet(environment):
    both = [start(environment, how, "--compile") for how in ("silent", "crash")]
    said = [line_of(child.communicate(timeout=120)[0]) for child in both]
    assert "status 3" in said[0] and "signal 11" in said[1]
    assert os.listdir(environment["TMPDIR"]) == []


@pytest.mark.parametrize("words", [(), ("--search",)])
def test_an_interruption_leaves_nothing(environment, words):
    child = start(environment, "hang", "--compile", *words)
    wait_for_child(environment)
    child.send_signal(signal.SIGINT)
    out, error = child.communicate(timeout=120)
    assert child.returncode == 130, out + error
    assert os.listdir(environment["TMPDIR"]) == [] and children_in(environment["TMPDIR"]) == []
    assert error.count("compiling ") == (1 if words else 0)  # the search stops


def test_the_child_ends_with_its_parent(environment):
    child = start(environment, "hang", "--compile")
    wait_for_child(environment)
    assert children_in(environment["TMPDIR"])
    child.kill()
    child.wait()
    for _ in range(100):
        if not children_in(environment["TMPDIR"]):
            break
        time.sleep(0.1)
    assert children_in(environment["TMPDIR"]) == []


def test_a_recorded_dump_is_read(environment, tmp_path):
    """dump.tar.gz: STEP compiled by libtpu 0.0.51 for v5e:2x2, up to buffer assignment (CAPIBARA_XLA_OPTIONS=xla_dump_to=...)."""
    with tarfile.open(HERE / "dump.tar.gz") as archive:
        archive.extractall(tmp_path / "dump", filter="data")
    child = start(environment, str(tmp_path / "dump"), "--compile", "--json")
    out, error = child.communicate(timeout=120)
    compiled = json.loads(out)["compiled"]
    parameters = 3 * (4 * 256 * 256 + 3 * 256 * 512 + 2 * 256) + 2 * 512 * 256 + 256
    assert compiled["origin"] == "compiled" and compiled["fits"], error
    assert compiled["argument_gib"] * 2**30 == pytest.approx(3 * 4 * parameters / 4 + 4 * 256, rel=0.02)
    assert compiled["memory_gib"] > compiled["argument_gib"]
    assert max(compiled["timeline_gib"]) <= compiled["memory_gib"] * 1.001
    source = (HERE.parents[1] / "src" / "tpu" / "step_layers.cpp").read_text().splitlines()
    lines = [compiled["peak_at"].split()[0]] + [buffer["source"] for buffer in compiled["buffers"] if buffer["source"]]
    assert all(line.startswith("src/tpu/step_") and int(line.split(":")[1]) <= len(source) for line in lines)
    kinds = {one["kind"]: one for one in compiled["collectives"]}
    assert kinds["all-gather"]["times"] >= 3 and kinds["all-gather"]["gib"] >= kinds["all-gather"]["open_gib"]
