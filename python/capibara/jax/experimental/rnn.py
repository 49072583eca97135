"""jax.experimental.rnn: multi-layer LSTMs whose weights are one vector, in the order of cuDNN.

Each direction of each layer is a unit; the vector has the input and hidden weights of every unit, then both biases of every unit.
Rows are four blocks, of the gates i, f, g and o.
"""
import functools
import math

from capibara._modules import explain_missing
from capibara.jax import Array, lax, nn, random
from capibara.jax import numpy as jnp
from capibara.jax._api import jit, vmap
from capibara.jax._config import scope
from capibara.jax.lax import PrecisionLike
from capibara.jax.typing import ArrayLike


def _shapes(input_size, hidden_size, num_layers, bidirectional):
    """The shapes of all parts of the vector, in order."""
    directions = 2 if bidirectional else 1
    units = [input_size if unit < directions else directions * hidden_size for unit in range(num_layers * directions)]
    weights = [(4 * hidden_size, width) for own in units for width in (own, hidden_size)]
    return weights + [(4 * hidden_size,)] * (2 * len(units))


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """The length of the vector of weights."""
    return sum(map(math.prod, _shapes(input_size, hidden_size, num_layers, bidirectional)))


def init_lstm_weight(rng: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """Random weights between -k and k, where k is the square root of 1 / hidden_size."""
    k = math.sqrt(1 / hidden_size)
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    return random.uniform(rng, (count,), "float32", minval=-k, maxval=k)


def _parts(weights, shapes):
    ends = [0]
    for shape in shapes:
        ends.append(ends[-1] + math.prod(shape))
    return [weights[begin:end].reshape(shape) for begin, end, shape in zip(ends, ends[1:], shapes)]


def swap_lstm_gates(weights: ArrayLike, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """The weights with the last two gates swapped, for libraries with the other order."""
    def swapped(part):
        first, second, third, fourth = jnp.split(part, 4, axis=0)
        return jnp.concatenate([first, second, fourth, third], axis=0)

    parts = _parts(jnp.asarray(weights), _shapes(input_size, hidden_size, num_layers, bidirectional))
    return jnp.concatenate([swapped(part).ravel() for part in parts])


def unpack_lstm_weights(weights: Array, input_size: int, hidden_size: int, num_layers: int,
                        bidirectional: bool) -> tuple[dict[int, Array], ...]:
    """The parts of the vector: input weights, hidden weights, input biases and hidden biases, each a dictionary by unit."""
    parts = _parts(weights, _shapes(input_size, hidden_size, num_layers, bidirectional))
    half = len(parts) // 2
    return tuple(dict(enumerate(parts[begin:begin + half][kind::2])) for begin in (0, half) for kind in (0, 1))


@functools.partial(jit, static_argnums=(8, 9, 10, 11, 12))
def lstm_ref(x: Array, h_0: Array, c_0: Array, W_ih: dict[int, Array], W_hh: dict[int, Array], b_ih: dict[int, Array],
             b_hh: dict[int, Array], seq_lengths: Array, input_size: int, hidden_size: int, num_layers: int, dropout: float,
             bidirectional: bool) -> tuple[Array, Array, Array]:
    """An LSTM with unpacked weights: (y, h_n, c_n) of x with shape [batch, length, input_size]; y is zero beyond each sequence's length."""
    if seq_lengths.dtype != jnp.int32:
        raise NotImplementedError("`seq_lengths` can only be int32.")
    if dropout != 0.0:
        raise NotImplementedError(f"lstm: dropout between layers is not supported, got dropout={dropout}; apply it to single layers")
    if x.shape[-1] != input_size or h_0.shape[-1] != hidden_size:
        raise ValueError(f"lstm: expected x with {input_size} features and h_0 with {hidden_size}, got shapes {x.shape} and {h_0.shape}")
    steps = jnp.arange(x.shape[1], dtype=jnp.int32)
    within = (steps[:, None] < seq_lengths[None])[..., None]  # [length, batch, 1]

    def run(unit, inputs):
        def step(carry, features):
            h, c = carry
            gates = features @ W_ih[unit].T + b_ih[unit] + h @ W_hh[unit].T + b_hh[unit]
            i, f, g, o = jnp.split(gates, 4, axis=-1)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
            h = nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), (h, c)

        _, (hs, cs) = lax.scan(step, (h_0[unit], c_0[unit]), inputs)
        last = (seq_lengths - 1, jnp.arange(hs.shape[1]))
        return jnp.where(within, hs, 0), hs[last], cs[last]

    def reverse(sequence):
        """Reverses the steps within each sequence's length; those beyond stay at the end."""
        return vmap(lambda own, length: jnp.roll(own, x.shape[1] - length, axis=0)[::-1], (1, 0), 1)(sequence, seq_lengths)

    y, last_h, last_c = jnp.swapaxes(x, 0, 1), [], []
    for layer in range(num_layers):
        unit = layer * (2 if bidirectional else 1)
        results = [run(unit, y)]
        if bidirectional:
            back, h, c = run(unit + 1, reverse(y))
            results.append((reverse(back), h, c))
        y = jnp.concatenate([own for own, _, _ in results], axis=-1)
        last_h += [h for _, h, _ in results]
        last_c += [c for _, _, c in results]
    return jnp.swapaxes(y, 0, 1), jnp.stack(last_h), jnp.stack(last_c)


def lstm(x: Array, h_0: Array, c_0: Array, weights: Array, seq_lengths: Array, input_size: int, hidden_size: int, num_layers: int,
         dropout: float, bidirectional: bool, precision: PrecisionLike = None) -> tuple[Array, Array, Array]:
    """An LSTM with the vector of weights: (y, h_n, c_n). It is a composition, which runs and differentiates on every platform."""
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    call = functools.partial(lstm_ref, x, h_0, c_0, *parts, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional)
    if precision is None:
        return call()
    with scope("default_matmul_precision")(getattr(precision, "name", str(precision)).lower()):
        return call()


explain_missing(__name__)
