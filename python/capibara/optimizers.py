"""Optimizers and schedules with optax's names, arguments and results, computed by capibara's core.

    optimizer = optimizers.adamw(optimizers.cosine_decay_schedule(1e-3, 1000))
    state = optimizer.init(params)
    updates, state = optimizer.update(grads, state, params)
    params = optimizers.apply_updates(params, updates)
"""
from typing import NamedTuple

from capibara import _core
from capibara._modules import explain_missing as _explain_missing
from capibara.jax import tree_util as _tree_util

_native = _core.optimizers

constant_schedule = _native.constant_schedule
polynomial_schedule = _native.polynomial_schedule
linear_schedule = _native.linear_schedule
cosine_decay_schedule = _native.cosine_decay_schedule
warmup_cosine_decay_schedule = _native.warmup_cosine_decay_schedule
exponential_decay = _native.exponential_decay
join_schedules = _native.join_schedules


class GradientTransformation(NamedTuple):
    """init(params) returns the initial state; update(grads, state, params) the updates and the next state."""
    init: object
    update: object
    native: object = None


def _on_trees(native):
    def init(params):
        return native.init_leaves(_tree_util.tree_leaves(params))

    def update(updates, state, params=None):
        leaves, structure = _tree_util.tree_flatten(updates)
        others = leaves if params is None else structure.flatten_up_to(params)
        results, state = native.update_leaves(leaves, state, others)
        return structure.unflatten(results), state

    return GradientTransformation(init, update, native)


def _named(name):
    make = getattr(_native, name)

    def optimizer(*arguments, **options):
        return _on_trees(make(*arguments, **options))

    optimizer.__name__ = optimizer.__qualname__ = name
    optimizer.__doc__ = f"The transformation of optax.{name}, computed by the core."
    return optimizer


sgd = _named("sgd")
adam = _named("adam")
adamw = _named("adamw")
lion = _named("lion")
adafactor = _named("adafactor")
muon = _named("muon")
clip = _named("clip")
clip_by_global_norm = _named("clip_by_global_norm")
scale = _named("scale")
scale_by_adam = _named("scale_by_adam")
scale_by_learning_rate = _named("scale_by_learning_rate")
add_decayed_weights = _named("add_decayed_weights")
trace = _named("trace")


def chain(*transformations):
    """Applies transformations in order: each gets the updates of the previous one."""
    return _on_trees(_native.chain(*(one.native for one in transformations)))


def apply_updates(params, updates):
    """Parameters plus updates, in the dtype of the parameters."""
    leaves, structure = _tree_util.tree_flatten(params)
    return structure.unflatten(_native.add_updates(leaves, structure.flatten_up_to(updates)))


def global_norm(tree):
    """The square root of the sum of squares over all elements."""
    return _native.global_norm(_tree_util.tree_leaves(tree))


_explain_missing(__name__)
