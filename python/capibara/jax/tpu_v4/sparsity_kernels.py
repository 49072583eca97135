"""Attention over the blocks of keys that a pattern keeps, and over all of them."""
from capibara._modules import explain_missing as _explain_missing

_explain_missing(__name__, later=dict.fromkeys(("flash_attention", "sparse_attention"), "capibara.kernels"))
