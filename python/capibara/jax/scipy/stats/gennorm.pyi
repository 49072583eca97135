"""Types of capibara.jax.scipy.stats.gennorm. Made by tools/python/make_stubs.py."""
from capibara._core import Array
from capibara.jax.typing import ArrayLike

def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The cumulative distribution function of the generalised normal distribution."""
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of the density of the generalised normal distribution."""
def pdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The density of the generalised normal distribution."""
