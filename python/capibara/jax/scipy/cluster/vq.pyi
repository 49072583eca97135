"""Types of jax.scipy.cluster.vq: vector quantization."""
from capibara._core import Array
from capibara.jax.typing import ArrayLike

def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The index of the nearest code for every observation, and the distance to it."""
