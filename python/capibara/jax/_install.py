"""Replaces jax: `import jax` becomes capibara.jax, and reports the coverage of jax versions."""
import importlib
import sys


class _Finder:
    """Resolves `import jax...` to capibara.jax..., and `import jaxlib...` to the few of its names that exist here."""

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
    """From now on, `import jax` in this process imports capibara.jax."""
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


class Compatibility(dict):
    """The result of `check_compatibility`: true if nothing is missing; prints a summary."""

    def __bool__(self):
        return self["compatible"]

    def __str__(self):
        if self:
            return f"True (all {self['names']} public names of jax {self['version']} exist)"
        missing = self["missing"]
        shown = ", ".join(missing[:8]) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
        return f"False ({len(missing)} of {self['names']} public names of jax {self['version']} are missing: {shown})"

    __repr__ = __str__


def check_compatibility(version="0.10.2"):
    """Which public names of a jax version, from 0.4.20 to 0.10.2, exist here: {'version', 'compatible', 'names', 'missing'}.

    The answer is true if all of them do. Only names are compared; the semantics are those of jax 0.10.2.
    """
    from capibara.jax import _ledger
    known = _ledger.versions()
    if not isinstance(version, str) or version not in known:
        raise ValueError(f"check_compatibility: names are known of the releases of jax from {known[0]} to {known[-1]} (argument "
                         f"'version'), got {version!r}")
    names = _ledger.names_of(version)
    missing = [f"{module}.{name}" for module, name in names if not _ledger.exists(module, name)]
    return Compatibility(version=version, compatible=not missing, names=len(names), missing=missing)
