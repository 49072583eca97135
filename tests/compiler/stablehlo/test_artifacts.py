"""Tests of artifacts through the command line: conversions, values, and damaged bytes, which are errors and take little memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))
COMMAND = Path(os.environ.get("CAPIBARA_COMMAND", BUILD / "capibara"))

sys.path.append(str(ROOT / "tests" / "data"))
import recordings  # noqa: E402

pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason=f"{COMMAND} is not built")


def start(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("artifacts")
    for name, content in recordings.members("artifacts").items():
        (place / Path(name).name).write_bytes(content)
    return place


def test_check_runs_artifacts(folder):
    done = start(COMMAND, "check", folder)
    assert done.returncode == 0, done.stdout
    passed, failed, _ = (int(part.split()[0]) for part in done.stdout.strip().splitlines()[-1].split(","))
    assert passed == len(list(folder.glob("*.mlirbc"))) >= 20 and failed == 0


def test_text_bytecode_and_exported_functions_become_one_another(folder, tmp_path):
    source, text = folder / "scan.exported", start(COMMAND, "show", folder / "scan.exported", "--stablehlo").stdout
    assert "stablehlo.while" in text
    for suffix in ("mlirbc", "mlir", "exported", "mlirbc"):
        target = tmp_path / f"{source.suffix[1:]}_as.{suffix}"
        done = start(COMMAND, "show", source, "--write", target)
        assert done.returncode == 0 and f"{target.stat().st_size} bytes" in done.stdout, done.stderr
        assert start(COMMAND, "show", target, "--stablehlo").stdout == text
        source = target
    assert start(COMMAND, "show", source, "--write", tmp_path / "a.txt").returncode == 2


def damaged(folder, samples):
    program = BUILD / "tests" / "hostile_bytes_program"
    if not program.exists():
        pytest.skip(f"{program} is not built")
    done = start(program, folder, samples)
    assert done.returncode == 0, done.stdout + done.stderr
    words = done.stdout.split()
    assert int(words[0]) > 0.6 * samples and int(words[4]) < 64 * 1024, done.stdout


def test_damaged_bytes_are_refused(folder):
    damaged(folder, 1000)


@pytest.mark.slow
def test_many_damaged_bytes_are_refused(folder):
    damaged(folder, 10000)
