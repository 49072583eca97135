"""Types of capibara.jax.scipy.stats.gumbel_l. Made by tools/python/make_stubs.py."""
from capibara._core import Array
from capibara.jax.typing import ArrayLike

def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The cumulative distribution function of the Gumbel distribution of minima."""
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the cumulative distribution function of the Gumbel distribution of minima."""
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the Gumbel distribution of minima."""
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the survival function of the Gumbel distribution of minima."""
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the Gumbel distribution of minima."""
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantile function, inverse of cdf, of the Gumbel distribution of minima."""
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The survival function, 1 - cdf, of the Gumbel distribution of minima."""
