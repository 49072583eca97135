"""jax.example_libraries.stax: layers as pairs of functions, (init, apply), and their combinators.

init(key, input_shape) -> (output_shape, params); apply(params, inputs, **options) -> outputs, where the option `rng` is the key
for random layers.
"""
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara._modules import explain_missing
from capibara.jax import Array, lax, nn, random
from capibara.jax.nn.initializers import glorot_normal, normal, ones, zeros

Initializer = Callable[..., Array]
Layer = tuple[Callable[..., Any], Callable[..., Any]]


def _shape_after(function, *shapes):
    """The result shape of a function for an input shape; a dimension of -1 stays unknown."""
    known = [tuple(1 if size == -1 else size for size in shape) for shape in shapes]
    shape = jax.eval_shape(function, *(jax.ShapeDtypeStruct(each, jnp.float32) for each in known)).shape
    return tuple(-1 if any(given[axis] == -1 for given in shapes if axis < len(given)) else size for axis, size in enumerate(shape))


def Dense(out_dim: int, W_init: Initializer = glorot_normal(), b_init: Initializer = normal()) -> Layer:  # noqa: N802, N803 (jax's names)
    """A linear layer: inputs @ W + b."""
    def init(rng, input_shape):
        key_w, key_b = random.split(rng)
        return input_shape[:-1] + (out_dim,), (W_init(key_w, (input_shape[-1], out_dim)), b_init(key_b, (out_dim,)))

    def apply(params, inputs, **_):
        w, b = params
        return jnp.dot(inputs, w) + b
    return init, apply


def _convolution(convolve, dimension_numbers, out_chan, filter_shape, strides, padding, w_init, b_init):
    _, rhs_spec, out_spec = dimension_numbers
    strides = strides or (1,) * len(filter_shape)
    w_init = w_init or glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))

    def run(inputs, w):
        return convolve(inputs, w, strides, padding, dimension_numbers=dimension_numbers)

    def init(rng, input_shape):
        sizes = iter(filter_shape)
        channels = input_shape[dimension_numbers[0].index("C")]
        kernel = [out_chan if c == "O" else channels if c == "I" else next(sizes) for c in rhs_spec]
        bias = [out_chan if c == "C" else 1 for c in out_spec]
        key_w, key_b = random.split(rng)
        w = w_init(key_w, tuple(kernel))
        return _shape_after(run, input_shape, tuple(kernel)), (w, b_init(key_b, tuple(bias)))

    def apply(params, inputs, **_):
        w, b = params
        return run(inputs, w) + b
    return init, apply


def GeneralConv(dimension_numbers: Sequence[str], out_chan: int, filter_shape: Sequence[int],  # noqa: N802
                strides: Sequence[int] | None = None, padding: str | Sequence[tuple[int, int]] = "VALID",
                W_init: Initializer | None = None, b_init: Initializer = normal(1e-6)) -> Layer:  # noqa: N803
    """A convolution with a bias, with any order of dimensions."""
    return _convolution(lax.conv_general_dilated, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


def GeneralConvTranspose(dimension_numbers: Sequence[str], out_chan: int, filter_shape: Sequence[int],  # noqa: N802
                         strides: Sequence[int] | None = None, padding: str | Sequence[tuple[int, int]] = "VALID",
                         W_init: Initializer | None = None, b_init: Initializer = normal(1e-6)) -> Layer:  # noqa: N803
    """A transposed convolution with a bias, with any order of dimensions."""
    return _convolution(lax.conv_transpose, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(axis: int | Sequence[int] = (0, 1, 2), epsilon: float = 1e-5, center: bool = True, scale: bool = True,  # noqa: N802
              beta_init: Initializer = zeros, gamma_init: Initializer = ones) -> Layer:
    """Inputs with mean 0 and variance 1 over `axis`, then scaled and shifted by parameters."""
    axis = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng, input_shape):
        shape = tuple(size for i, size in enumerate(input_shape) if i not in axis)
        key_beta, key_gamma = random.split(rng)
        return input_shape, (beta_init(key_beta, shape) if center else (), gamma_init(key_gamma, shape) if scale else ())

    def apply(params, x, **_):
        beta, gamma = params
        spread = tuple(None if i in axis else slice(None) for i in range(jnp.ndim(x)))
        z = nn.standardize(x, axis, epsilon=epsilon)
        z = z * gamma[spread] if scale else z
        return z + beta[spread] if center else z
    return init, apply


def elementwise(fun: Callable[..., Array], **fun_kwargs: object) -> Layer:
    """A layer without parameters."""
    def init(rng, input_shape):
        del rng
        return input_shape, ()
    return init, lambda params, inputs, **_: fun(inputs, **fun_kwargs)


Tanh = elementwise(jnp.tanh)
Relu = elementwise(nn.relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(nn.log_softmax, axis=-1)
Softmax = elementwise(nn.softmax, axis=-1)
Softplus = elementwise(nn.softplus)
Sigmoid = elementwise(nn.sigmoid)
Elu = elementwise(nn.elu)
LeakyRelu = elementwise(nn.leaky_relu)
Selu = elementwise(nn.selu)
Gelu = elementwise(nn.gelu)
Identity = elementwise(lambda x: x)


def _pooling(reducer, start, rescale=None):
    def layer(window_shape, strides=None, padding="VALID", spec=None):
        """Pooling over windows in the dimensions between batch and channels."""
        sizes, steps = iter(window_shape), iter(strides or (1,) * len(window_shape))
        spec = spec or "N" + "W" * len(window_shape) + "C"
        dims = tuple(1 if c in "NC" else next(sizes) for c in spec)
        hops = tuple(1 if c in "NC" else next(steps) for c in spec)

        def pool(inputs):
            out = lax.reduce_window(inputs, start, reducer, dims, hops, padding)
            return rescale(out, inputs, dims, hops, padding) if rescale else out

        def init(rng, input_shape):
            del rng
            return _shape_after(pool, input_shape), ()
        return init, lambda params, inputs, **_: pool(inputs)
    return layer


def _mean_of_window(out, inputs, dims, hops, padding):
    return out / lax.reduce_window(jnp.ones_like(inputs), 0.0, lax.add, dims, hops, padding)


MaxPool = _pooling(lax.max, -jnp.inf)
SumPool = _pooling(lax.add, 0.0)
AvgPool = _pooling(lax.add, 0.0, _mean_of_window)


def _flatten():
    def init(rng, input_shape):
        del rng
        return (input_shape[0], math.prod(input_shape[1:])), ()
    return init, lambda params, inputs, **_: jnp.reshape(inputs, (inputs.shape[0], -1))


Flatten = _flatten()


def FanOut(num: int) -> Layer:  # noqa: N802
    """The input, num times."""
    def init(rng, input_shape):
        del rng
        return [input_shape] * num, ()
    return init, lambda params, inputs, **_: [inputs] * num


def _fan_in_sum():
    def init(rng, input_shape):
        del rng
        return input_shape[0], ()
    return init, lambda params, inputs, **_: sum(inputs)


FanInSum = _fan_in_sum()


def FanInConcat(axis: int = -1) -> Layer:  # noqa: N802
    """Concatenates several inputs along an axis."""
    def init(rng, input_shape):
        del rng
        shape = list(input_shape[0])
        shape[axis] = sum(each[axis] for each in input_shape)
        return tuple(shape), ()
    return init, lambda params, inputs, **_: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:  # noqa: N802
    """Keeps each element with probability `rate`, scaled by 1 / rate, while training; the option rng is its key."""
    def init(rng, input_shape):
        del rng
        return input_shape, ()

    def apply(params, inputs, **options):
        rng = options.get("rng")
        if rng is None:
            raise ValueError("Dropout layer requires apply_fun to be called with a PRNG key argument: "
                             "apply_fun(params, inputs, rng) with rng=jax.random.key(...)")
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)
    return init, apply


def serial(*layers: Layer) -> Layer:
    """Applies layers in sequence."""
    inits, applies = zip(*layers)

    def init(rng, input_shape):
        params = []
        for each in inits:
            rng, key = random.split(rng)
            input_shape, param = each(key, input_shape)
            params.append(param)
        return input_shape, params

    def apply(params, inputs, **options):
        rng = options.pop("rng", None)
        keys = random.split(rng, len(layers)) if rng is not None else (None,) * len(layers)
        for each, param, key in zip(applies, params, keys):
            inputs = each(param, inputs, rng=key, **options)
        return inputs
    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Applies layers in parallel, each to its own input, such as the outputs of FanOut."""
    inits, applies = zip(*layers)

    def init(rng, input_shape):
        keys = random.split(rng, len(layers))
        return zip(*[each(key, shape) for each, key, shape in zip(inits, keys, input_shape)])

    def apply(params, inputs, **options):
        rng = options.pop("rng", None)
        keys = random.split(rng, len(layers)) if rng is not None else (None,) * len(layers)
        return [each(param, x, rng=key, **options) for each, param, x, key in zip(applies, params, inputs, keys)]
    return init, apply


def shape_dependent(make_layer: Callable[[tuple[int, ...]], Layer]) -> Layer:
    """A layer created once the shape of its input is known: make_layer(input_shape) -> (init, apply)."""
    def init(rng, input_shape):
        return make_layer(input_shape)[0](rng, input_shape)

    def apply(params, inputs, **options):
        return make_layer(inputs.shape)[1](params, inputs, **options)
    return init, apply


glorot, randn = glorot_normal, normal

explain_missing(__name__)
