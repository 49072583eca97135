"""Configurations by subject."""
from capibara._modules import explain_missing as _explain_missing

_explain_missing(__name__, later={"tpu_config": None})
