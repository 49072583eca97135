"""XLA FFI handlers, compiled with jaxlib's headers: on capibara.jax, on jax with the plugin, and on XLA:CPU."""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ.get("CAPIBARA_BUILD", HERE.parents[2] / "build" / "release"))
PROGRAMS = HERE / "foreign_programs.py"
LIBRARIES = {"capibara.jax": (["-m", "capibara"], {}), "plugin": ([], {"JAX_PLATFORMS": "capibara"}),
             "XLA:CPU": ([], {"JAX_PLATFORMS": "cpu"})}
NAMES = re.search(r"PROGRAMS = \[(.*)\]", PROGRAMS.read_text())[1].split(", ")

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++")


@pytest.fixture(scope="module")
def handlers(tmp_path_factory):
    jax = pytest.importorskip("jaxlib")
    library = tmp_path_factory.mktemp("handlers") / "libhandlers.so"
    subprocess.run(["g++", "-std=c++17", "-w", "-shared", "-fPIC", f"-I{pathlib.Path(jax.__file__).parent / 'include'}",
                    HERE / "foreign_handlers.cpp", "-o", library], check=True)
    return library


@functools.cache
def answers(library, handlers):
    words, variables = LIBRARIES[library]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    environment |= variables | {"PYTHONPATH": str(BUILD / "python")}
    done = subprocess.run([sys.executable, *words, PROGRAMS, handlers], capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("program", NAMES)
def test_programs(library, program, handlers):
    if library == "plugin" and not (BUILD / "lib" / "libcapibara_pjrt.so").exists():
        pytest.skip("the plugin is not built")
    assert answers(library, handlers)[program] == ""
