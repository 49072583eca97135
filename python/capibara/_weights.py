"""Conversion of parameters to other dtypes and to quantized codes, and files of them."""
from collections.abc import Mapping
from pathlib import Path

from capibara import _core, _tracebacks
from capibara import jax as _jax
from capibara._arguments import require_path, require_text

_native = _core.training


def require_parameters(operation, params):
    if not isinstance(params, Mapping) or not params:
        raise TypeError(f"{operation}: expected a dict of arrays by name (argument 'params'), got {params!r}")


def convert_weights(params: object, weights: str) -> "dict[str, _jax.Array]":
    """Parameters with weights in 'float32', 'bfloat16', 'int8', 'int4' or 'vq': codes, which the model multiplies by directly."""
    require_parameters("convert_weights", params)
    require_text("convert_weights", "weights", weights)
    return _native.convert_weights(params, weights)


def save_weights(path: str | Path, params: object) -> None:
    """Writes parameters, including codes, to a safetensors file whose metadata has the format of each tensor of codes."""
    require_parameters("save_weights", params)
    require_path("save_weights", "path", path)
    _native.save_weights(str(path), params)


def load_weights(path: str | Path) -> "dict[str, _jax.Array]":
    """Reads a file of save_weights. Raises ValueError if codes, scales and codebooks do not fit or a code is out of range."""
    require_path("load_weights", "path", path)
    return _native.load_weights(str(path))


_tracebacks.guard(__name__)
