"""Without the code generator's module every compilation fails with its name, in any thread, and nothing hangs."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))
PROGRAM = BUILD / "tests" / "threads_tests"
MODULE = "libcapibara_cpu.so"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")


def test_every_compilation_says_what_is_missing(tmp_path):
    (tmp_path / MODULE).write_text("no module")  # this folder is searched before the program's rpath
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    names = ["EqualFunctionsAgree", "DifferentFunctionsAgree", "OneJittedFunctionIsShared"]
    command = [str(PROGRAM), "--gtest_repeat=2", "--gtest_filter=" + ":".join(f"Threads.{name}" for name in names)]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=120)
    assert ended.returncode == 1, ended.stderr
    assert ended.stdout.count(f"needs the code generator in the module {MODULE}, which cannot be opened") == 2 * len(names)
