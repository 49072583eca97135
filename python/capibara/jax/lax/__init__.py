"""jax.lax: the primitives as functions, and structured control flow."""
from capibara import _core
from capibara._modules import fill as _fill
from capibara._types import (  # noqa: F401
    ConvDimensionNumbers,
    DotAlgorithmPreset,
    FftType,
    GatherDimensionNumbers,
    GatherScatterMode,
    Precision,
    RaggedDotDimensionNumbers,
    RandomAlgorithm,
    RoundingMethod,
    ScatterDimensionNumbers,
)

PrecisionLike = object
DotDimensionNumbers = tuple
ConvGeneralDilatedDimensionNumbers = object


from capibara.jax.lax import _control  # noqa: E402
from capibara.jax.lax._control import *  # noqa: E402,F401,F403


def _primitives():
    """Every primitive of the catalog under its name and _p."""
    renamed = {"remat2": "remat", "and": "and", "or": "or", "not": "not", "xor": "xor", "while": "while"}
    for primitive in _core.catalog():
        globals().setdefault(f"{renamed.get(primitive.name, primitive.name).replace('-', '_')}_p", primitive)


_primitives()
globals().update(_control.COLLECTIVES)
_fill(__name__, "lax")

from capibara.jax.lax import linalg  # noqa: E402,F401
