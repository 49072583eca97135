"""Types of capibara.jax.custom_activations. Made by tools/python/make_stubs.py."""
from capibara._core import Array
from capibara.jax.typing import ArrayLike

def contextual_relu(x: ArrayLike, context: ArrayLike) -> Array:
    """relu(x - tanh(mean(context, axis=-1, keepdims=True))): a ReLU whose threshold follows the context. Capibara's own."""
def swiglu(x: ArrayLike, axis: int = -1) -> Array:
    """silu(first half) * second half of an axis: a gated linear unit without weights. Capibara's own."""
