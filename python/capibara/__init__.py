"""capibara: JAX's programming model on a C++ core."""
from capibara._core import run_stablehlo, version

__all__ = ["run_stablehlo", "version"]
__version__ = version()
