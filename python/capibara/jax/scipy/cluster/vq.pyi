"""Types of jax.scipy.cluster.vq: vector quantization."""
from capibara._core import Array
from capibara.jax.typing import ArrayLike

def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """For every observation the index of the nearest code, and the distance to it."""
