"""jax.example_libraries.optimizers: first-order methods as three functions: init, update and get_params."""
import functools
from typing import Any, NamedTuple

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara._modules import explain_missing
from capibara.jax import tree_util


class Optimizer(NamedTuple):
    """init_fn(params) -> state; update_fn(step, gradients, state) -> state; params_fn(state) -> params."""
    init_fn: Any
    update_fn: Any
    params_fn: Any


class OptimizerState(NamedTuple):
    """The state of all parameters in one flat list: those of the first, of the second, and so on."""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


tree_util.register_pytree_node(OptimizerState, lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
                               lambda fixed, children: OptimizerState(children[0], *fixed))


class JoinPoint:
    """Marks where the tree of parameters ends and the state of one of them begins."""

    def __init__(self, subtree):
        self.subtree = subtree

    def __iter__(self):
        yield self.subtree


def optimizer(opt_maker):
    """Lifts a method for one array, (init, update, get_params), to pytrees of arrays."""
    @functools.wraps(opt_maker)
    def make(*args, **kwargs):
        init, update, get_params = opt_maker(*args, **kwargs)

        def init_all(params):
            leaves, tree = jax.tree.flatten(params)
            states, subtrees = zip(*(jax.tree.flatten(init(leaf)) for leaf in leaves)) if leaves else ((), ())
            return OptimizerState(tuple(map(tuple, states)), tree, tuple(subtrees))

        def update_all(i, gradients, state):
            packed, tree, subtrees = state
            leaves, other = jax.tree.flatten(gradients)
            if other != tree:
                raise TypeError("optimizer update function was passed a gradient tree that did not match the parameter tree structure with "
                                f"which it was initialized: parameter tree {tree} and grad tree {other}.")
            states = [jax.tree.unflatten(subtree, part) for subtree, part in zip(subtrees, packed)]
            flat, after = zip(*(jax.tree.flatten(update(i, g, s)) for g, s in zip(leaves, states))) if leaves else ((), ())
            for subtree, new in zip(subtrees, after):
                if subtree != new:
                    raise TypeError(f"optimizer update function produced an output structure that did not match its input structure: "
                                    f"input {subtree} and output {new}.")
            return OptimizerState(tuple(map(tuple, flat)), tree, subtrees)

        def params_of(state):
            packed, tree, subtrees = state
            return jax.tree.unflatten(tree, [get_params(jax.tree.unflatten(s, part)) for s, part in zip(subtrees, packed)])

        return Optimizer(init_all, update_all, params_of)
    return make


# ---- methods ----------------------------------------------------------------------------------------------------------

@optimizer
def sgd(step_size):
    """Gradient descent."""
    step_size = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - step_size(i) * g, lambda x: x


@optimizer
def momentum(step_size, mass):
    """Gradient descent with a velocity that decays by `mass`."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - step_size(i) * velocity, velocity

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def nesterov(step_size, mass):
    """Nesterov momentum: applies the velocity once more, looking ahead."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - step_size(i) * (mass * velocity + g), velocity

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adagrad(step_size, momentum=0.9):
    """Steps divided by the square root of the sum of all squared gradients so far."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, squares, mean = state
        squares = squares + jnp.square(g)
        mean = (1 - momentum) * (g * jnp.where(squares > 0, 1 / jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0)) + momentum * mean
        return x - step_size(i) * mean, squares, mean

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def rmsprop(step_size, gamma=0.9, eps=1e-8):
    """Steps divided by the square root of an exponential moving average of squared gradients."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, squares = state
        squares = gamma * squares + (1 - gamma) * jnp.square(g)
        return x - step_size(i) * g / jnp.sqrt(squares + eps), squares

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def rmsprop_momentum(step_size, gamma=0.9, eps=1e-8, momentum=0.9):
    """rmsprop with a velocity."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, squares, velocity = state
        squares = gamma * squares + (1 - gamma) * jnp.square(g)
        velocity = momentum * velocity + step_size(i) * g / jnp.sqrt(squares + eps)
        return x - velocity, squares, velocity

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adam(step_size, b1=0.9, b2=0.999, eps=1e-8):
    """Exponential moving averages of the gradient and its square, with bias correction."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, mean, squares = state
        mean, squares = (1 - b1) * g + b1 * mean, (1 - b2) * jnp.square(g) + b2 * squares
        unbiased = mean / (1 - jnp.asarray(b1, mean.dtype) ** (i + 1))
        root = jnp.sqrt(squares / (1 - jnp.asarray(b2, squares.dtype) ** (i + 1)))
        return x - step_size(i) * unbiased / (root + eps), mean, squares

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adamax(step_size, b1=0.9, b2=0.999, eps=1e-8):
    """adam with a decaying maximum in place of the mean of squares."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, mean, largest = state
        mean, largest = (1 - b1) * g + b1 * mean, jnp.maximum(b2 * largest, jnp.abs(g))
        return x - (step_size(i) / (1 - jnp.asarray(b1, mean.dtype) ** (i + 1))) * mean / (largest + eps), mean, largest

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def sm3(step_size, momentum=0.9):
    """adagrad with one accumulator per slice along each dimension; an element uses the minimum of its accumulators."""
    step_size = make_schedule(step_size)

    def along(values, axis, ndim):
        return values.reshape([-1 if d == axis else 1 for d in range(ndim)])

    def init(x):
        return x, jnp.zeros_like(x), [jnp.zeros(size, x.dtype) for size in x.shape] or [jnp.zeros_like(x)]

    def update(i, g, state):
        x, mean, sums = state
        bound = functools.reduce(jnp.minimum, [along(values, axis, g.ndim) for axis, values in enumerate(sums)])
        squares = bound + jnp.square(g)
        scaled = g * jnp.where(squares > 0, 1 / jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0)
        mean = (1 - momentum) * scaled + momentum * mean
        sums = [squares.max(tuple(d for d in range(g.ndim) if d != axis)) for axis in range(g.ndim)] or [squares]
        return x - step_size(i) * mean, mean, sums

    return init, update, lambda state: state[0]


# ---- step sizes --------------------------------------------------------------------------------------------------------

def constant(step_size):
    return lambda i: step_size


def exponential_decay(step_size, decay_steps, decay_rate):
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size, decay_steps, decay_rate, staircase=False):
    def at(i):
        periods = jnp.floor(i / decay_steps) if staircase else i / decay_steps
        return step_size / (1 + decay_rate * periods)
    return at


def polynomial_decay(step_size, decay_steps, final_step_size, power=1.0):
    def at(i):
        left = (1 - jnp.minimum(i, decay_steps) / decay_steps) ** power
        return left * (step_size - final_step_size) + final_step_size
    return at


def piecewise_constant(boundaries, values):
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if not boundaries.ndim == values.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if boundaries.shape[0] != values.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule):
    """A function of the step: the given one, or a constant."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))


# ---- gradients and states ------------------------------------------------------------------------------------------------

def l2_norm(tree):
    """The Euclidean norm over all leaves."""
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in jax.tree.leaves(tree)))


def clip_grads(grad_tree, max_norm):
    """Gradients scaled down to a maximum norm."""
    norm = l2_norm(grad_tree)
    return jax.tree.map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


def unpack_optimizer_state(opt_state):
    """A pytree like the parameters, with a JoinPoint holding the state of each: for saving."""
    packed, tree, subtrees = opt_state
    return jax.tree.unflatten(tree, [JoinPoint(jax.tree.unflatten(s, part)) for s, part in zip(subtrees, packed)])


def pack_optimizer_state(marked_pytree):
    """The inverse of unpack_optimizer_state."""
    points, tree = jax.tree.flatten(marked_pytree)
    if not all(isinstance(point, JoinPoint) for point in points):
        raise TypeError("pack_optimizer_state: expected a pytree whose leaves are JoinPoints")
    states, subtrees = zip(*(jax.tree.flatten(point.subtree) for point in points)) if points else ((), ())
    return OptimizerState(tuple(map(tuple, states)), tree, tuple(subtrees))


explain_missing(__name__)
