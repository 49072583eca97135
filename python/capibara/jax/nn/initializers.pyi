"""Types of capibara.jax.nn.initializers. Made by tools/python/make_stubs.py."""
from typing import Any

class Initializer(Any): ...
def constant(value: Any, dtype: Any = ...) -> Any:
    """An initializer that fills with a value."""
def delta_orthogonal(scale: Any = ..., column_axis: Any = ..., dtype: Any = ...) -> Any:
    """An initializer of convolution kernels: orthogonal in the middle, zero elsewhere."""
def glorot_normal(in_axis: Any = ..., out_axis: Any = ..., batch_axis: Any = ..., dtype: Any = ...) -> Any:
    """Truncated normal with variance 1 / average fan."""
def glorot_uniform(in_axis: Any = ..., out_axis: Any = ..., batch_axis: Any = ..., dtype: Any = ...) -> Any:
    """Uniform with variance 1 / average fan."""
def he_normal(in_axis: Any = ..., out_axis: Any = ..., batch_axis: Any = ..., dtype: Any = ...) -> Any:
    """Truncated normal with variance 2 / fan in."""
def he_uniform(in_axis: Any = ..., out_axis: Any = ..., batch_axis: Any = ..., dtype: Any = ...) -> Any:
    """Uniform with variance 2 / fan in."""
def kaiming_normal(in_axis: Any = ..., out_axis: Any = ..., batch_axis: Any = ..., dtype: Any = ...) -> Any:
    """Truncated normal with variance 2 / fan in: he_normal."""
def kaiming_uniform(in_axis: Any = ..., out_axis: Any = ..., batch_axis: Any = ..., dtype: Any = ...) -> Any:
    """Uniform with variance 2 / fan in: he_uniform."""
def lecun_normal(in_axis: Any = ..., out_axis: Any = ..., batch_axis: Any = ..., dtype: Any = ...) -> Any:
    """Truncated normal with variance 1 / fan in."""
def lecun_uniform(in_axis: Any = ..., out_axis: Any = ..., batch_axis: Any = ..., dtype: Any = ...) -> Any:
    """Uniform with variance 1 / fan in."""
def normal(stddev: Any = ..., dtype: Any = ...) -> Any:
    """An initializer that draws from the normal distribution with this standard deviation."""
def ones(key: Any, shape: Any, dtype: Any = ..., out_sharding: Any = ...) -> Any:
    """Ones, whatever the key."""
def orthogonal(scale: Any = ..., column_axis: Any = ..., dtype: Any = ...) -> Any:
    """An initializer of orthonormal columns, or rows where there are fewer, times scale."""
def truncated_normal(stddev: Any = ..., dtype: Any = ..., lower: Any = ..., upper: Any = ...) -> Any:
    """An initializer that draws from the normal distribution cut off at lower and upper, then scales."""
def uniform(scale: Any = ..., dtype: Any = ...) -> Any:
    """An initializer that draws uniformly from [0, scale)."""
def variance_scaling(scale: Any, mode: Any, distribution: Any, in_axis: Any = ..., out_axis: Any = ..., batch_axis: Any = ..., dtype: Any = ...) -> Any:
    """An initializer whose variance is scale divided by the fan that the mode names."""
def xavier_normal(in_axis: Any = ..., out_axis: Any = ..., batch_axis: Any = ..., dtype: Any = ...) -> Any:
    """Truncated normal with variance 1 / average fan: glorot_normal."""
def xavier_uniform(in_axis: Any = ..., out_axis: Any = ..., batch_axis: Any = ..., dtype: Any = ...) -> Any:
    """Uniform with variance 1 / average fan: glorot_uniform."""
def zeros(key: Any, shape: Any, dtype: Any = ..., out_sharding: Any = ...) -> Any:
    """Zeros, whatever the key."""
