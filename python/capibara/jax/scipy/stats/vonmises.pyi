"""Types of capibara.jax.scipy.stats.vonmises. Made by tools/python/make_stubs.py."""
from capibara._core import Array
from capibara.jax.typing import ArrayLike

def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The logarithm of the density of the von Mises distribution."""
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The density of the von Mises distribution."""
