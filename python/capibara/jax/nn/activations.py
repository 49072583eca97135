"""The activation functions of jax.nn, and capibara's own."""
from capibara import _core
from capibara._modules import explain_missing as _explain_missing

_NAMES = (
    "celu", "contextual_relu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "leaky_relu",
    "log_sigmoid", "log_softmax", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus",
    "sparse_plus", "sparse_sigmoid", "squareplus", "swiglu", "swish", "tanh",
)
globals().update((name, _core.library_function("nn", name)) for name in _NAMES)

_explain_missing(__name__)
