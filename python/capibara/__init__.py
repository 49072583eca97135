"""capibara: JAX's programming model on a C++ core."""
import os

from capibara import _core
from capibara._core import run_stablehlo, version

_core.set_package_folder(os.path.dirname(os.path.abspath(__file__)))

__all__ = ["run_stablehlo", "version"]
__version__ = version()
