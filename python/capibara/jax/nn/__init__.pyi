"""Types of capibara.jax.nn. Made by tools/python/make_stubs.py."""
from collections.abc import Sequence
from typing import Any, Literal, overload
from capibara._core import Array
from capibara.jax.typing import ArrayLike, DTypeLike
from capibara.jax.nn import activations as activations
from capibara.jax.nn import initializers as initializers
from capibara.jax.nn._scaled_matmul import scaled_matmul as scaled_matmul

def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where it is positive, else alpha (exp(x / alpha) - 1)."""
def contextual_relu(x: ArrayLike, context: ArrayLike) -> Array:
    """relu(x - tanh(mean(context, axis=-1, keepdims=True))): a ReLU whose threshold follows the context. Capibara's own."""
@overload
def dot_product_attention(query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None, mask: ArrayLike | None = None, *, scale: float | None = None, is_causal: bool = False, query_seq_lengths: ArrayLike | None = None, key_value_seq_lengths: ArrayLike | None = None, local_window_size: int | tuple[int, int] | None = None, implementation: str | None = None, return_residual: Literal[False] = False) -> Array: ...
@overload
def dot_product_attention(query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None, mask: ArrayLike | None = None, *, scale: float | None = None, is_causal: bool = False, query_seq_lengths: ArrayLike | None = None, key_value_seq_lengths: ArrayLike | None = None, local_window_size: int | tuple[int, int] | None = None, implementation: str | None = None, return_residual: Literal[True]) -> tuple[Array, Array]: ...
@overload
def dot_product_attention(query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None, mask: ArrayLike | None = None, *, scale: float | None = None, is_causal: bool = False, query_seq_lengths: ArrayLike | None = None, key_value_seq_lengths: ArrayLike | None = None, local_window_size: int | tuple[int, int] | None = None, implementation: str | None = None, return_residual: bool = False) -> Array | tuple[Array, Array]:
    """softmax(scale query key^T + bias) value, with grouped heads, masks, lengths and windows."""
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where it is positive, else alpha (exp(x) - 1)."""
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x times the normal distribution function of x, by default approximated with tanh."""
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """first half * sigmoid(second half) of an axis."""
def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(x + 3) / 6."""
def hard_silu(x: ArrayLike) -> Array:
    """x hard_sigmoid(x)."""
def hard_swish(x: ArrayLike) -> Array:
    """x hard_sigmoid(x): hard_silu by its other name."""
def hard_tanh(x: ArrayLike) -> Array:
    """x clamped to [-1, 1]."""
def identity(x: ArrayLike) -> Array:
    """x itself."""
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """x where it is not negative, else negative_slope x."""
def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for x >= 0, accurate near 0 and far from it."""
def log_sigmoid(x: ArrayLike) -> Array:
    """The logarithm of the sigmoid."""
def log_softmax(x: ArrayLike, axis: int | Sequence[int] | None = -1, where: ArrayLike | None = None) -> Array:
    """The logarithm of softmax."""
def logmeanexp(x: ArrayLike, axis: int | Sequence[int] | None = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """log(mean(exp(x))) along axes."""
@overload
def logsumexp(a: ArrayLike, axis: int | Sequence[int] | None = None, b: ArrayLike | None = None, keepdims: bool = False, return_sign: Literal[False] = False, where: ArrayLike | None = None) -> Array: ...
@overload
def logsumexp(a: ArrayLike, axis: int | Sequence[int] | None = None, b: ArrayLike | None = None, keepdims: bool = False, *, return_sign: Literal[True], where: ArrayLike | None = None) -> tuple[Array, Array]: ...
@overload
def logsumexp(a: ArrayLike, axis: int | Sequence[int] | None = None, b: ArrayLike | None = None, keepdims: bool = False, return_sign: bool = False, where: ArrayLike | None = None) -> Array | tuple[Array, Array]:
    """log(sum(b exp(a))) along axes; with return_sign, of the absolute sum, and its sign."""
def mish(x: ArrayLike) -> Array:
    """x tanh(softplus(x))."""
def one_hot(x: Any, num_classes: int, *, dtype: DTypeLike | None = None, axis: int | str = -1) -> Array:
    """1 where the class along a new axis is x, else 0; axis may name a mapped axis of that size."""
def relu(x: ArrayLike) -> Array:
    """max(x, 0), with derivative 0 at 0."""
def relu6(x: ArrayLike) -> Array:
    """min(max(x, 0), 6), with derivative 0 at both ends."""
def selu(x: ArrayLike) -> Array:
    """The scaled exponential linear unit, which keeps zero mean and unit variance."""
def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x))."""
def silu(x: ArrayLike) -> Array:
    """x sigmoid(x)."""
def soft_sign(x: ArrayLike) -> Array:
    """x / (|x| + 1)."""
def softmax(x: ArrayLike, axis: int | Sequence[int] | None = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) divided by its sum along axes."""
def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x))."""
def sparse_plus(x: ArrayLike) -> Array:
    """0 up to -1, x from 1 on, and (x + 1)^2 / 4 between."""
def sparse_sigmoid(x: ArrayLike) -> Array:
    """0 up to -1, 1 from 1 on, and (x + 1) / 2 between."""
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x^2 + b)) / 2."""
def standardize(x: ArrayLike, axis: int | Sequence[int] | None = -1, mean: ArrayLike | None = None, variance: ArrayLike | None = None, epsilon: ArrayLike = 1e-05, where: ArrayLike | None = None, *, algorithm: str = 'fast') -> Array:
    """(x - mean) / sqrt(variance + epsilon)."""
def swiglu(x: ArrayLike, axis: int = -1) -> Array:
    """silu(first half) * second half of an axis: a gated linear unit without weights. Capibara's own."""
def swish(x: ArrayLike) -> Array:
    """x sigmoid(x): silu by its other name."""
def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent."""
