"""Types of capibara.jax.custom_activations. Made by tools/python/make_stubs.py."""
from typing import Any

def contextual_relu(x: Any, context: Any) -> Any:
    """relu(x - tanh(mean(context, axis=-1, keepdims=True))): a ReLU whose threshold follows the context. Capibara's own."""
def swiglu(x: Any, axis: Any = ...) -> Any:
    """silu(first half) * second half of an axis: a gated linear unit without weights. Capibara's own."""
