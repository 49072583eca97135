"""Unmodified scripts that `import jax` print the same numbers on jax and under `python -m capibara`.

jax's output is kept in build/drop_in, and recorded in tests/data for each kind of processor. To record the kept output:

    build/venv/bin/python tests/drop_in/test_scripts.py
"""

import functools
import hashlib
import os
import platform
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "tests" / "data"))

import recordings  # noqa: E402

KEPT = ROOT / "build" / "drop_in"  # jax's output, keyed by its version and the script's text
RECORDED = f"drop_in_{platform.machine()}"
SCRIPTS = sorted((HERE / "scripts").glob("*.py"))
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|inf|nan)")


def module_path():
    given = os.environ.get("CAPIBARA_PYTHON_PATH")
    build = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))
    return Path(given) if given else build / "python"


def run(command, **variables):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600,
                          env={**os.environ, "JAX_PLATFORMS": "cpu", **variables})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@functools.cache
def recorded():
    return recordings.texts(RECORDED) if recordings.path(RECORDED).exists() else {}


def kept_file(script):
    digest = hashlib.sha256(script.read_bytes() + metadata.version("jax").encode()).hexdigest()[:24]
    return KEPT / f"{script.stem}-{digest}.txt"


def printed_by_jax(script):
    kept = kept_file(script)
    if not kept.exists() and kept.name in recorded():
        return recorded()[kept.name]
    if not kept.exists():
        text = run([sys.executable, script])
        KEPT.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(f".{os.getpid()}")
        partial.write_text(text)
        partial.replace(kept)
    return kept.read_text()


def assert_alike(expected, got, relative=2e-3, absolute=2e-4):
    """Asserts the same words, and numbers within a tolerance; whitespace is ignored."""
    def words(text):
        return re.sub(r"[\s]+", "", NUMBER.sub("#", text))

    assert words(expected) == words(got), f"jax printed\n{expected}\ncapibara printed\n{got}"
    wrong = []
    for first, second in zip(NUMBER.findall(expected), NUMBER.findall(got)):
        a, b = float(first), float(second)
        if not (first == second or abs(a - b) <= relative * abs(a) + absolute):
            wrong.append(f"{second} in place of {first}")
    assert not wrong, f"{wrong}\njax printed\n{expected}\ncapibara printed\n{got}"


def test_there_are_scripts_that_say_import_jax():
    assert len(SCRIPTS) >= 14
    for script in SCRIPTS:
        text = script.read_text()
        assert "\nimport jax\n" in text and "capibara" not in text.lower()


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_script_prints_the_numbers_of_jax(script, tmp_path):
    watched = tmp_path / "modules"
    path = os.pathsep.join([str(module_path()), str(HERE / "watch")])
    got = run([sys.executable, "-m", "capibara", script], PYTHONPATH=path, WATCHED_MODULES=str(watched))
    modules = watched.read_text().split()
    assert "capibara" in modules and "jaxlib" not in modules
    assert_alike(printed_by_jax(script), got)


if __name__ == "__main__":
    found = [kept_file(script) for script in (*SCRIPTS, *(HERE / "libraries").glob("*.py"))]
    recordings.write(recordings.path(RECORDED), {kept.name: kept.read_text() for kept in found if kept.exists()})
