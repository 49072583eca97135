"""The type stubs of the build match the library's table and the modules."""
import pathlib
import subprocess
import sys

import pytest

core = pytest.importorskip("capibara._core", reason="the Python extension is not built")
ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = pathlib.Path(core.__file__).parent  # in the build: stubs next to the extension, modules as links


@pytest.fixture(scope="module")
def made(tmp_path_factory):
  """The stubs made by the script, in a process in which no test has imported anything."""
  folder = tmp_path_factory.mktemp("stubs")
  subprocess.run([sys.executable, ROOT / "tools" / "python" / "make_stubs.py", folder], check=True, capture_output=True, timeout=300)
  return {path.relative_to(folder): path.read_text() for path in folder.rglob("*.pyi")}


def test_a_stub_is_what_the_script_makes(made):
  old = [str(path) for path, text in made.items() if not (PACKAGE / path).exists() or (PACKAGE / path).read_text() != text]
  assert len(made) > 40 and not old, f"build the target capibara_stubs: {old} are old"


def test_every_stub_describes_a_module(made):
  for stub in PACKAGE.rglob("*.pyi"):
    path = stub.relative_to(PACKAGE)
    known = path in made or stub.with_suffix(".py").exists() or path.name == "_stub_types.pyi"
    assert known, f"{path} describes no module"
