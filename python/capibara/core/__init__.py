"""Kernels and the TPU toolbox."""
from capibara._modules import explain_missing as _explain_missing

_explain_missing(__name__, later={"kernels": None, "tpu": None})
