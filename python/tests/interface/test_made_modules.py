"""Modules created on import: every form of import, under both names, in this process and in a fresh one."""
import importlib
import importlib.util
import pathlib
import pickle
import subprocess
import sys

import pytest

core = pytest.importorskip("capibara._core", reason="the Python extension is not built")

from capibara import _made_modules  # noqa: E402

PACKAGE = pathlib.Path(core.__file__).parent
MADE = sorted({**_made_modules._FILLED, **_made_modules._ALIASES})


@pytest.mark.parametrize("name", MADE)
def test_it_has_what_the_table_says(name):
  module = importlib.import_module(f"capibara.{name}")
  assert module.__name__ == f"capibara.{name}" and sys.modules[module.__name__] is module and len(module.__doc__) > 8
  parent, _, own = module.__name__.rpartition(".")
  assert getattr(importlib.import_module(parent), own) is module
  for child in _made_modules._PACKAGES.get(name, "").split():
    assert getattr(module, child) is importlib.import_module(f"{module.__name__}.{child}")
  with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'no_such_name'"):
    module.no_such_name
  with pytest.raises(ImportError):
    importlib.import_module(f"capibara.{name}.no_such_module")


def test_no_module_of_the_table_is_a_file_too():
  folder = pathlib.Path(_made_modules.__file__).resolve().parent
  for name in MADE:
    path = folder.joinpath(*name.split("."))
    assert not path.with_suffix(".py").exists() and not (path / "__init__.py").exists(), name


def test_checkers_read_a_stub_of_every_public_one():
  if not (PACKAGE / "_core.pyi").exists():
    pytest.skip("this build writes no stubs")
  public = [name for name in MADE if "._" not in name and name.partition(".")[0] != "jaxlib"]
  assert len(public) == 13
  paths = {name: PACKAGE.joinpath(*name.split(".")) for name in public}
  assert [name for name, path in paths.items() if not path.with_suffix(".pyi").exists() and not (path / "__init__.pyi").exists()] == []


def test_names_and_modules_import_as_others_do():
  from capibara.jax._src import core as private
  from capibara.jax._src.core import ShapedArray
  from capibara.jax._src.lib import xla_client
  from capibara.jax.image import ResizeMethod, resize
  import capibara.jax._src.interpreters.ad as ad
  import capibara.jax as jax
  assert private.ShapedArray is ShapedArray is jax.core.ShapedArray
  assert xla_client.HloSharding and ad.instantiate_zeros
  assert jax.image.resize is resize and jax.image.ResizeMethod is ResizeMethod
  assert jax.scipy.special.gammaln is importlib.import_module("capibara.jax.scipy.special").gammaln
  assert jax._src.interpreters.partial_eval is sys.modules["capibara.jax._src.interpreters.partial_eval"]


def test_what_is_pickled_comes_back():
  import capibara.jax as jax
  for value in (jax._src.core.ShapedArray, jax._src.partition_spec.PartitionSpec, jax._src.named_sharding.NamedSharding,
                jax.image.ResizeMethod.CUBIC, jax._src.ad_util.Zero):
    again = pickle.loads(pickle.dumps(value))
    assert again is value or again == value


def test_a_module_can_be_loaded_again():
  module = importlib.import_module("capibara.jax.ops")
  assert importlib.reload(module) is module and module.segment_sum


PROGRAM = """
import jax._src.core
import jax._src.interpreters.ad as ad
import jax.numpy.linalg
from jax._src.lax import parallel
from jax._src.lax.parallel import psum
from jax._src.lib import xla_client
from jax._src.random import prng
from jax.scipy.special import gammaln
import jax, pickle, sys
assert jax._src.core.ShapedArray is jax.core.ShapedArray and ad.instantiate_zeros and parallel.psum is psum
assert jax.__name__ == 'capibara.jax' and sys.modules['jax._src.core'] is sys.modules['capibara.jax._src.core']
assert jax.numpy.linalg.norm(jax.numpy.ones(4)) == 2 and prng.random_seed and xla_client.OpSharding
assert pickle.loads(pickle.dumps(jax._src.mesh.Mesh)) is jax.sharding.Mesh
print('all of it')
"""


@pytest.mark.parametrize("words", [["-m", "capibara"], []], ids=["runner", "install"])
def test_programs_that_say_jax_import_them(words, tmp_path):
  script = tmp_path / "script.py"
  script.write_text(PROGRAM if words else "import capibara.jax\ncapibara.jax.install()\n" + PROGRAM)
  done = subprocess.run([sys.executable, *words, script], capture_output=True, text=True)
  assert (done.stdout, done.stderr) == ("all of it\n", "")
