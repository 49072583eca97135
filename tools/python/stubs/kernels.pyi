from collections.abc import Mapping, Sequence
from typing import TypeVar

_Tree = TypeVar("_Tree")

def adam_update(parameters: _Tree, gradients: _Tree, means: _Tree, squares: _Tree, step: ArrayLike, *, learning_rate: ArrayLike = 1e-3, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, weight_decay: float = 0.0) -> tuple[_Tree, _Tree, _Tree]:
    """One step of Adam on all arrays of trees at once: new parameters, means and squares."""
def batch_operations(operation_type: str, inputs: Sequence[ArrayLike], parameters: Mapping[str, ArrayLike] | None = None, parallel_execution: bool = True) -> list[Array]:
    """One operation on each array of a list: 'layer_norm', 'rms_norm', 'softmax', 'gelu' or 'matmul'."""
