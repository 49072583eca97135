"""Fused operations: each is a composition of jax operations, for which a device may have its own kernel."""
from capibara import _core
from capibara._modules import fill as _fill
from capibara.jax import tree_util as _tree_util


def adam_update(parameters, gradients, means, squares, step, *, learning_rate=1e-3, b1=0.9, b2=0.999, eps=1e-8, weight_decay=0.0):
    """One step of Adam on all arrays of the trees at once: new parameters, means and squares.

    `step` counts from 1. Means and squares are trees like the parameters, float32 at least.
    """
    leaves, structure = _tree_util.tree_flatten(parameters)
    others = [structure.flatten_up_to(tree) for tree in (gradients, means, squares)]
    update = _core.library_function("capibara.kernels", "adam_update")
    results = update(leaves, *others, step, learning_rate=learning_rate, b1=b1, b2=b2, eps=eps, weight_decay=weight_decay)
    return tuple(structure.unflatten(result) for result in results)


def batch_operations(operation_type, inputs, parameters=None, parallel_execution=True):
    """One operation on each array of a list: 'layer_norm', 'rms_norm', 'softmax', 'gelu' or 'matmul'.

    `parameters` are arrays by name that all inputs share: 'weight', 'bias' and 'epsilon' of the norms, 'b' of matmul. Small inputs
    of the same row length and type are processed together; with parallel_execution=False one input after the other.
    """
    run = _core.library_function("capibara.kernels", "batch_operations")
    return run(operation_type, inputs, parallel_execution=parallel_execution, **(parameters or {}))


_fill(__name__, "capibara.kernels")
