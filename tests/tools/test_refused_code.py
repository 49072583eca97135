"""C++ that looks valid but could not work: the compiler rejects it and says what to write."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CAPIBARA_BUILD", ROOT / "build" / "release"))


def compiler():
    cache = BUILD / "CMakeCache.txt"
    found = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache.read_text(), re.MULTILINE) if cache.exists() else None
    return found[1] if found else shutil.which("c++")


def compiled(tmp_path, body):
    if not compiler():
        pytest.skip("there is no C++ compiler")
    (tmp_path / "program.cpp").write_text(
        f"#include <capibara/indexing.h>\n#include <utility>\nvoid program(capibara::Array x, capibara::Array y) {{ {body} }}\n")
    return subprocess.run([compiler(), "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", str(tmp_path / "program.cpp")],
                          capture_output=True, text=True, timeout=300, env={**os.environ, "LC_ALL": "C"})


@pytest.mark.parametrize("body", ["x = y; x = std::move(y);", "x = 5; x = 2.5; x = true;", "x = x(0); x = x[0];", "x = x.at(0).set(5);",
                                  "std::swap(x, y);"])
def test_arrays_are_assigned(tmp_path, body):
    done = compiled(tmp_path, body)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("body", ["x[0] = 5;", "x(0) = 5;", "x(0, 1) = 2.5;", "x[0] = y;", "x(0) = std::move(y);",
                                  "x(capibara::slice()) = 1.0f;", "(x + y) = 3;", "x.reshape({2, 3}) = y;"])
def test_parts_and_results_are_not(tmp_path, body):
    done = compiled(tmp_path, body)
    assert done.returncode != 0, "it compiles and does nothing"
    assert "x = x.at(i).set(v)" in done.stderr, done.stderr  # the header's line says what to write
