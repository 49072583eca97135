"""The type stubs hold every function of the library's table."""
import importlib.util
import pathlib

import pytest

pytest.importorskip("capibara._core", reason="the Python extension is not built")
ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = importlib.util.spec_from_file_location("make_stubs", ROOT / "tools" / "python" / "make_stubs.py")
make_stubs = importlib.util.module_from_spec(SCRIPT)
SCRIPT.loader.exec_module(make_stubs)


@pytest.mark.parametrize("module", make_stubs.MODULES)
def test_a_stub_is_what_the_script_makes(module):
  stub = ROOT / "python" / "capibara" / make_stubs.path_of(module)
  assert stub.read_text() == make_stubs.text_of(module), f"run tools/python/make_stubs.py: {stub} is old"
