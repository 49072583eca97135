"""jax.lax: the primitives as functions, and structured control flow."""
from collections.abc import Sequence as _Sequence
from typing import Union as _Union

from capibara import _core
from capibara._effects import AbstractToken as _AbstractToken
from capibara._modules import fill as _fill
from capibara._types import (  # noqa: F401
    AccuracyMode,
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
    Tolerance,
)

PrecisionLike = _Union[None, str, Precision, tuple[str, str], tuple[Precision, Precision], DotAlgorithmPreset]
DotDimensionNumbers = tuple[tuple[_Sequence[int], _Sequence[int]], tuple[_Sequence[int], _Sequence[int]]]
ConvGeneralDilatedDimensionNumbers = _Union[None, ConvDimensionNumbers, tuple[str, str, str]]


def create_token(_=None):
    """A token: a value that only orders side effects."""
    return create_token_p.bind()


def after_all(*operands):
    """A token that is ready when all the operands are."""
    if not all(isinstance(_core.type_of(operand), _AbstractToken) for operand in operands):
        raise TypeError(f"after_all: the operands must be tokens, got {[type(operand).__name__ for operand in operands]}")
    return after_all_p.bind(*operands)


def with_sharding_constraint(x, shardings):
    """The value of x, placed on devices according to the shardings inside a compiled program."""
    from capibara.jax import _placing
    return _placing.with_sharding_constraint(x, shardings)


from capibara.jax.lax import _control  # noqa: E402
from capibara.jax.lax._control import *  # noqa: E402,F401,F403
from capibara.jax.lax._exchange import *  # noqa: E402,F401,F403
from capibara.jax.lax._reduce import *  # noqa: E402,F401,F403
from capibara.jax.lax._scaled_dot import *  # noqa: E402,F401,F403


def _primitives():
    """Every primitive of the catalog, under its name with the suffix _p."""
    renamed = {"remat2": "remat", "and": "and", "or": "or", "not": "not", "xor": "xor", "while": "while"}
    for primitive in _core.catalog():
        globals().setdefault(f"{renamed.get(primitive.name, primitive.name).replace('-', '_')}_p", primitive)


_primitives()
globals().update(_control.COLLECTIVES)
_fill(__name__, "lax")

from capibara.jax.lax import linalg  # noqa: E402,F401
