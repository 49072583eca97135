"""Types of capibara.jax.scipy.stats. Made by tools/python/make_stubs.py."""
from typing import NamedTuple
from capibara._core import Array
from capibara.jax.typing import ArrayLike
from capibara.jax.scipy.stats import bernoulli as bernoulli
from capibara.jax.scipy.stats import beta as beta
from capibara.jax.scipy.stats import betabinom as betabinom
from capibara.jax.scipy.stats import binom as binom
from capibara.jax.scipy.stats import cauchy as cauchy
from capibara.jax.scipy.stats import chi2 as chi2
from capibara.jax.scipy.stats import dirichlet as dirichlet
from capibara.jax.scipy.stats import expon as expon
from capibara.jax.scipy.stats import gamma as gamma
from capibara.jax.scipy.stats import gennorm as gennorm
from capibara.jax.scipy.stats import geom as geom
from capibara.jax.scipy.stats import gumbel_l as gumbel_l
from capibara.jax.scipy.stats import gumbel_r as gumbel_r
from capibara.jax.scipy.stats import laplace as laplace
from capibara.jax.scipy.stats import logistic as logistic
from capibara.jax.scipy.stats import multinomial as multinomial
from capibara.jax.scipy.stats import multivariate_normal as multivariate_normal
from capibara.jax.scipy.stats import nbinom as nbinom
from capibara.jax.scipy.stats import norm as norm
from capibara.jax.scipy.stats import pareto as pareto
from capibara.jax.scipy.stats import poisson as poisson
from capibara.jax.scipy.stats import t as t
from capibara.jax.scipy.stats import truncnorm as truncnorm
from capibara.jax.scipy.stats import uniform as uniform
from capibara.jax.scipy.stats import vonmises as vonmises
from capibara.jax.scipy.stats import wrapcauchy as wrapcauchy
from capibara.jax.scipy.stats._kde import gaussian_kde as gaussian_kde

class _ModeResult(NamedTuple):
    mode: Array
    count: Array  # type: ignore[assignment]
def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = 'propagate', keepdims: bool = False) -> _ModeResult:
    """The most frequent value along an axis, and how often it occurs."""
def rankdata(a: ArrayLike, method: str = 'average', *, axis: int | None = None, nan_policy: str = 'propagate') -> Array:
    """The ranks of the elements, from 1."""
def sem(a: ArrayLike, axis: int | None = 0, ddof: ArrayLike = 1, nan_policy: str = 'propagate', *, keepdims: bool = False) -> Array:
    """The standard error of the mean."""
