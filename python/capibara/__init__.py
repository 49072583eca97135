"""capibara: JAX's programming model on a C++ core."""
import importlib
import os

from capibara import _core, _made_modules
from capibara._core import run_stablehlo, version

_core.set_package_folder(os.path.dirname(os.path.abspath(__file__)))
_made_modules.install()

__all__ = ["run_stablehlo", "version"]
__version__ = version()


def __getattr__(name):
    if name in ("core", "kernels", "mithril"):  # imported on first use
        return importlib.import_module(f"capibara.{name}")
    if name in ("Model", "as_model"):
        return getattr(importlib.import_module("capibara.model"), name)
    raise AttributeError(f"module 'capibara' has no attribute '{name}'")
