"""jax.scipy.stats: densities, one module per distribution."""
import sys as _sys
import types as _types

from capibara import _core
from capibara._modules import fill as _fill
from capibara.jax.scipy.stats._kde import gaussian_kde  # noqa: F401

for _full in _core.library_modules():
    if _full.startswith("scipy.stats."):
        _short = _full.removeprefix("scipy.stats.")
        _module = _types.ModuleType(f"{__name__}.{_short}", f"jax.scipy.stats.{_short}.")
        _sys.modules[_module.__name__] = _module
        globals()[_short] = _module
        _fill(_module.__name__, _full)

_fill(__name__, "scipy.stats")
