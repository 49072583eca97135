"""Types of capibara.jax.nn. Made by tools/python/make_stubs.py."""
from typing import Any

def celu(x: Any, alpha: Any = ...) -> Any:
    """x where it is positive, else alpha (exp(x / alpha) - 1)."""
def contextual_relu(x: Any, context: Any) -> Any:
    """relu(x - tanh(mean(context, axis=-1, keepdims=True))): a ReLU whose threshold follows the context. Capibara's own."""
def dot_product_attention(query: Any, key: Any, value: Any, bias: Any = ..., mask: Any = ..., *, scale: Any = ..., is_causal: Any = ..., query_seq_lengths: Any = ..., key_value_seq_lengths: Any = ..., local_window_size: Any = ..., implementation: Any = ..., return_residual: Any = ...) -> Any:
    """softmax(scale query key^T + bias) value, with grouped heads, masks, lengths and windows."""
def elu(x: Any, alpha: Any = ...) -> Any:
    """x where it is positive, else alpha (exp(x) - 1)."""
def gelu(x: Any, approximate: Any = ...) -> Any:
    """x times the normal distribution function of x, by default approximated with tanh."""
def glu(x: Any, axis: Any = ...) -> Any:
    """first half * sigmoid(second half) of an axis."""
def hard_sigmoid(x: Any) -> Any:
    """relu6(x + 3) / 6."""
def hard_silu(x: Any) -> Any:
    """x hard_sigmoid(x)."""
def hard_swish(x: Any) -> Any:
    """x hard_sigmoid(x): hard_silu by its other name."""
def hard_tanh(x: Any) -> Any:
    """x clamped to [-1, 1]."""
def identity(x: Any) -> Any:
    """x itself."""
from . import initializers as initializers
def leaky_relu(x: Any, negative_slope: Any = ...) -> Any:
    """x where it is not negative, else negative_slope x."""
def log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) for x >= 0, accurate near 0 and far from it."""
def log_sigmoid(x: Any) -> Any:
    """The logarithm of the sigmoid."""
def log_softmax(x: Any, axis: Any = ..., where: Any = ...) -> Any:
    """The logarithm of softmax."""
def logmeanexp(x: Any, axis: Any = ..., where: Any = ..., keepdims: Any = ...) -> Any:
    """log(mean(exp(x))) along axes."""
def logsumexp(a: Any, axis: Any = ..., b: Any = ..., keepdims: Any = ..., return_sign: Any = ..., where: Any = ...) -> Any:
    """log(sum(b exp(a))) along axes; with return_sign, of the absolute sum, and its sign."""
def mish(x: Any) -> Any:
    """x tanh(softplus(x))."""
def one_hot(x: Any, num_classes: Any, *, dtype: Any = ..., axis: Any = ...) -> Any:
    """1 where the class along a new axis is x, else 0; axis may name a mapped axis of that size."""
def relu(x: Any) -> Any:
    """max(x, 0), with derivative 0 at 0."""
def relu6(x: Any) -> Any:
    """min(max(x, 0), 6), with derivative 0 at both ends."""
def selu(x: Any) -> Any:
    """The scaled exponential linear unit, which keeps zero mean and unit variance."""
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
def silu(x: Any) -> Any:
    """x sigmoid(x)."""
def soft_sign(x: Any) -> Any:
    """x / (|x| + 1)."""
def softmax(x: Any, axis: Any = ..., where: Any = ...) -> Any:
    """exp(x) divided by its sum along axes."""
def softplus(x: Any) -> Any:
    """log(1 + exp(x))."""
def sparse_plus(x: Any) -> Any:
    """0 up to -1, x from 1 on, and (x + 1)^2 / 4 between."""
def sparse_sigmoid(x: Any) -> Any:
    """0 up to -1, 1 from 1 on, and (x + 1) / 2 between."""
def squareplus(x: Any, b: Any = ...) -> Any:
    """(x + sqrt(x^2 + b)) / 2."""
def standardize(x: Any, axis: Any = ..., mean: Any = ..., variance: Any = ..., epsilon: Any = ..., where: Any = ..., *, algorithm: Any = ...) -> Any:
    """(x - mean) / sqrt(variance + epsilon)."""
def swiglu(x: Any, axis: Any = ...) -> Any:
    """silu(first half) * second half of an axis: a gated linear unit without weights. Capibara's own."""
def swish(x: Any) -> Any:
    """x sigmoid(x): silu by its other name."""
def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
