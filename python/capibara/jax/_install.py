"""Standing in for jax: `import jax` as capibara.jax, and what is covered of a version."""
import importlib
import sys


class _Finder:
    """Answers `import jax...` with the module capibara.jax..., and `import jaxlib...` with the few names of it that mean something here."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in ("jax", "jaxlib"):
            return None
        import importlib.util
        try:
            found = importlib.util.find_spec("capibara." + name)
        except (ImportError, AttributeError):
            found = None
        if found is None and "capibara." + name not in sys.modules:
            return None
        return importlib.util.spec_from_loader(name, self, is_package=bool(found and found.submodule_search_locations))

    def create_module(self, spec):
        return importlib.import_module("capibara." + spec.name)

    def exec_module(self, module):
        pass


_finder = _Finder()


def install():
    """From here on `import jax` in this process means capibara.jax."""
    loaded = sys.modules.get("jax")
    if loaded is not None and not loaded.__name__.startswith("capibara."):
        raise ImportError("capibara.jax.install: the real jax is already imported in this process; call install first")
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    prefix = "capibara.jax"
    for name in sys.modules[prefix]._MODULES:
        importlib.import_module(f"{prefix}.{name}")
    for name, module in list(sys.modules.items()):
        if module is not None and (name == prefix or name.startswith(prefix + ".")):
            sys.modules[name.removeprefix("capibara.")] = module


def check_compatibility(version="0.10.2"):
    """Which public names of a jax version exist here: {'version', 'compatible', 'missing'}."""
    from capibara.jax._ledger import missing_names
    if tuple(map(int, version.split(".")[:3])) > (0, 10, 2):
        raise ValueError(f"check_compatibility: names are known up to jax 0.10.2, got {version}")
    missing = missing_names()
    return {"version": version, "compatible": not missing, "missing": missing}
