"""Types of capibara.jax.scipy.stats.bernoulli. Made by tools/python/make_stubs.py."""
from capibara._core import Array
from capibara.jax.typing import ArrayLike

def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """The cumulative distribution function of the Bernoulli distribution."""
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability mass of the Bernoulli distribution."""
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability mass of the Bernoulli distribution."""
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """The quantile function, inverse of cdf, of the Bernoulli distribution."""
