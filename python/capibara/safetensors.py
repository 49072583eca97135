"""Arrays by name in safetensors files: load_file and save_file, as the package safetensors names them."""
from capibara import _core
from capibara._modules import explain_missing as _explain_missing


def load_file(filename):
    """All arrays of a file, by name."""
    return _core.training.load_safetensors(str(filename))


def save_file(tensors, filename, metadata=None):
    """Writes arrays by name, and texts by name; the file appears when it is whole."""
    _core.training.save_safetensors(str(filename), tensors, metadata or {})


def load_metadata(filename):
    """The texts of a file, by name."""
    return _core.training.safetensors_metadata(str(filename))


_explain_missing(__name__)
