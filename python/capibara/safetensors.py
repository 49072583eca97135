"""Named arrays in safetensors files: load_file and save_file, with the names of the safetensors package."""
import os
from collections.abc import Mapping

from capibara import _core
from capibara._modules import explain_missing as _explain_missing


def load_file(filename: str | os.PathLike[str]) -> "dict[str, _core.Array]":
    """All arrays of a file, by name."""
    return _core.training.load_safetensors(str(filename))


def save_file(tensors: Mapping[str, object], filename: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
    """Writes named arrays and texts; the file appears only once it is complete."""
    _core.training.save_safetensors(str(filename), tensors, metadata or {})


def load_metadata(filename: str | os.PathLike[str]) -> dict[str, str]:
    """The metadata of a file: texts by name."""
    return _core.training.safetensors_metadata(str(filename))


_explain_missing(__name__)
