"""`jax` as a test file sees it: capibara's modules, JAX's own test support from its sources, and names that are absent."""
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from pathlib import Path

import absent

import capibara.jax

SOURCES = Path(os.environ["JAX_TESTS_SOURCES"])
capibara.jax.install()

# JAX's own files: test support, and the modules that it uses.
SUPPORT = {"jax._src." + name for name in (
    "test_util public_test_util test_loader test_warning_util lax_reference util config deprecations logging_config monitoring path "
    "hypothesis_test_util internal_test_util").split()}
BELOW_SUPPORT = "jax._src.internal_test_util."

# Public modules with the names of a private module, if capibara has no private module of that name.
PUBLIC = {name: places.split() for name, places in {
    "core": "jax._src.core jax.core jax.extend.core jax", "api": "jax", "api_util": "jax.api_util jax", "array": "jax jax.sharding",
    "pjit": "jax jax.lax", "ad_util": "jax.core jax.interpreters.ad", "linear_util": "jax.extend.linear_util",
    "tree_util": "jax.tree_util", "sharding": "jax.sharding jax", "sharding_impls": "jax.sharding jax", "named_sharding": "jax.sharding",
    "partition_spec": "jax.sharding", "mesh": "jax.sharding jax", "random": "jax.random", "prng": "jax.random jax.extend.random",
    "shard_map": "jax", "stages": "jax.stages", "typing": "jax.typing jax", "errors": "jax.errors", "effects": "jax.core",
    "debugging": "jax.debug", "source_info_util": "jax.extend.source_info_util", "callback": "jax jax.experimental", "earray": "jax",
    "lax.lax": "jax.lax", "lax.control_flow": "jax.lax", "lax.slicing": "jax.lax", "lax.parallel": "jax.lax",
    "lax.linalg": "jax.lax.linalg", "lax.fft": "jax.lax", "lax.convolution": "jax.lax", "lax.special": "jax.lax",
    "numpy.util": "jax.numpy", "numpy.lax_numpy": "jax.numpy", "numpy.reductions": "jax.numpy",
    "interpreters.ad": "jax.interpreters.ad", "interpreters.batching": "jax.interpreters.batching",
    "interpreters.partial_eval": "jax.interpreters.partial_eval jax.core", "interpreters.mlir": "jax.interpreters.mlir",
    "interpreters.pxla": "jax.interpreters.pxla jax.sharding", "dlpack": "jax.dlpack", "xla_bridge": "jax",
    "dispatch": "jax._src.dispatch jax", "nn.functions": "jax.nn", "nn.initializers": "jax.nn.initializers", "export": "jax.export",
    "export._export": "jax.export", "export.shape_poly": "jax.export", "custom_derivatives": "jax.custom_derivatives jax",
    "ad_checkpoint": "jax.ad_checkpoint jax", "layout": "jax.experimental.layout"}.items()}


def source_of(name):
    """The file of a module in JAX's sources, a folder for a package, or None."""
    place = SOURCES.joinpath(*name.removeprefix("capibara.").split("."))
    return place if place.is_dir() else place.with_suffix(".py") if place.with_suffix(".py").exists() else None


def capibara_module(name):
    """capibara's module for a name that begins with jax, or None."""
    try:
        if importlib.util.find_spec("capibara." + name) is None:
            return None
        found = importlib.import_module("capibara." + name)
    except (ImportError, AttributeError, ValueError):
        return None
    return None if isinstance(found, absent.AbsentModule) else found


class Private(types.ModuleType):
    """A module of jax._src: looks names up in capibara's own module of that name, then in public ones; others are absent."""

    def __init__(self, name):
        super().__init__(name)
        short = name.removeprefix("jax._src").lstrip(".")
        parts = short.split(".")
        places = PUBLIC.get(short) or ["jax." + ".".join(parts[:count]) for count in range(len(parts), 0, -1) if short]
        chain = [capibara_module(name)] if short else []
        chain += [capibara_module(place) for place in places]
        vars(self).update(__path__=[], _chain=[module for module in chain if module is not None])

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        path = f"{self.__name__}.{name}"
        if path in sys.modules:
            return sys.modules[path]
        if path in SUPPORT:
            return importlib.import_module(path)
        for module in self._chain:
            try:
                return getattr(module, name)
            except AttributeError:
                pass
        return importlib.import_module(path) if source_of(path) else absent.absent(path)


class _PrivateFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of jax._src before any other finder, and rejects jaxlib."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "jaxlib":
            raise ModuleNotFoundError("jaxlib is not to be used", name=name)
        if name != "jax._src" and not name.startswith("jax._src."):
            return None
        file = source_of(name)
        if file is not None and (name in SUPPORT or name.startswith(BELOW_SUPPORT)):
            if file.is_dir():
                return importlib.machinery.ModuleSpec(name, self, is_package=True)
            return importlib.util.spec_from_file_location(name, file)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Private(spec.name)

    def exec_module(self, module):
        pass


class _LastFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Public modules that capibara does not have: test support from JAX's sources, others as absent modules."""

    def find_spec(self, name, path=None, target=None):
        short = name.removeprefix("capibara.")
        if not short.startswith("jax.") or short.startswith("jax._") or source_of(short) is None:
            return None
        if short.endswith(".test_util"):
            return importlib.util.spec_from_file_location(name, source_of(short))
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        short = spec.name.removeprefix("capibara.")
        for known in (short, "capibara." + short):  # one module under both names
            if isinstance(sys.modules.get(known), absent.AbsentModule):
                return sys.modules[known]
        return absent.AbsentModule(short, lambda path: importlib.import_module(path) if source_of(path) else None)

    def exec_module(self, module):
        pass


def define(name, **names):
    """Adds names to a module of jax._src."""
    module = importlib.import_module(name)
    vars(module).update(names)
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(importlib.import_module(parent), last, module)
    return module


def install():
    """Redirects imports of jax, jax._src and their submodules from now on, as this file describes."""
    for name in [name for name in sys.modules if name == "jax._src" or name.startswith("jax._src.")]:
        del sys.modules[name]
    sys.meta_path.insert(0, _PrivateFinder())
    sys.meta_path.append(_LastFinder())
    vars(capibara.jax)["_src"] = define("jax._src")


def permit_absent_names():
    """While a test file is imported, names missing from capibara's modules become absent ones."""
    for name, module in list(sys.modules.items()):
        if not name.startswith("capibara.jax") or not isinstance(module, types.ModuleType) or isinstance(module, absent.AbsentModule):
            continue
        answer = vars(module).get("__getattr__")
        if answer is None or getattr(answer, "permits_absent", False):
            continue

        def look_up(attribute, answer=answer, name=name):
            try:
                return answer(attribute)
            except AttributeError:
                asker = sys._getframe(1).f_code.co_filename
                if not absent.is_importing() or attribute.startswith("__") or not (
                        asker.startswith(str(SOURCES)) or "importlib" in asker):
                    raise
            below = f"{name}.{attribute}"
            try:
                if hasattr(sys.modules[name], "__path__") and importlib.util.find_spec(below) is not None:
                    return importlib.import_module(below)
            except (ImportError, ValueError, AttributeError):
                pass
            return absent.absent(below)
        look_up.permits_absent = True
        module.__getattr__ = look_up
