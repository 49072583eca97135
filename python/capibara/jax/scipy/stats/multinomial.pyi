"""Types of capibara.jax.scipy.stats.multinomial. Made by tools/python/make_stubs.py."""
from capibara._core import Array
from capibara.jax.typing import ArrayLike

def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithm of the probability mass of the multinomial distribution."""
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The probability mass of the multinomial distribution."""
