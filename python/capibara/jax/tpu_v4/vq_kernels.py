"""Vector quantization: nearest codes, and learned codebooks."""
from capibara._modules import explain_missing as _explain_missing

_explain_missing(__name__, later=dict.fromkeys((
    "kmeans", "kmeans_plus_plus", "vq_decode", "vq_encode", "vq_quantize", "vq_state", "vq_update"
), "capibara.kernels"))
