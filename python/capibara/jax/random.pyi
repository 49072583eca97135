"""Types of capibara.jax.random. Made by tools/python/make_stubs.py."""
from collections.abc import Sequence
import numpy as np
from typing import Any
from capibara._core import Array, CatalogPrimitive
from capibara._stub_types import Shape
from capibara.jax._mesh import PartitionSpec
from capibara.jax._sharding import Sharding
from capibara.jax.typing import ArrayLike, DTypeLike

def PRNGKey(seed: ArrayLike, *, impl: str | np.dtype[Any] | None = None) -> Array:
    """A key from an integer, as its uint32 words."""
def ball(key: ArrayLike, d: int, p: float = 2, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Uniform points of the unit ball of the p-norm in d dimensions."""
def bernoulli(key: ArrayLike, p: ArrayLike = 0.5, shape: Shape | None = None, mode: str = 'low', *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """True with probability p."""
def beta(key: ArrayLike, a: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Beta numbers."""
def binomial(key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """The number of successes in n trials of probability p."""
def bits(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Uniform bits as unsigned integers."""
def categorical(key: ArrayLike, logits: ArrayLike, axis: int = -1, shape: Shape | None = None, replace: bool = True, mode: str | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Positions along an axis with probabilities softmax(logits)."""
def cauchy(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Standard Cauchy numbers."""
def chisquare(key: ArrayLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Chi-square numbers with df degrees of freedom."""
def choice(key: ArrayLike, a: ArrayLike, shape: Shape = (), replace: bool = True, p: ArrayLike | None = None, axis: int = 0, mode: str | None = None) -> Array:
    """Random elements of an array, or integers below a, with weights p."""
def clone(key: ArrayLike) -> Array:
    """A copy of a key that counts as unused."""
def dirichlet(key: ArrayLike, alpha: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Dirichlet vectors."""
def double_sided_maxwell(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Maxwell numbers of random sign, scaled and shifted."""
def exponential(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Exponential numbers of rate 1."""
def f(key: ArrayLike, dfnum: ArrayLike, dfden: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """F numbers with dfnum and dfden degrees of freedom."""
def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """A new key from a key and an integer."""
def gamma(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Gamma numbers of shape parameter a."""
def generalized_normal(key: ArrayLike, p: float, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Numbers of density proportional to exp(-|x|^p)."""
def geometric(key: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """The number of trials of probability p up to the first success."""
def gumbel(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, mode: str | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Standard Gumbel numbers; mode 'high' draws the tail with more bits."""
def key(seed: ArrayLike, *, impl: str | np.dtype[Any] | None = None, dtype: DTypeLike | None = None) -> Array:
    """A typed key from an integer."""
def key_data(keys: ArrayLike) -> Array:
    """The uint32 words of keys."""
def key_dtype(impl_spec: str | np.dtype[Any] | None = None) -> np.dtype[Any]:
    """The dtype of keys of a generator."""
def key_impl(keys: ArrayLike) -> str:
    """The name of the generator of keys."""
def laplace(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Standard Laplace numbers."""
def loggamma(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Logarithms of gamma numbers, accurate for small a."""
def logistic(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Standard logistic numbers."""
def lognormal(key: ArrayLike, sigma: ArrayLike = 1.0, shape: Shape | None = None, dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """exp of normal numbers of standard deviation sigma."""
def maxwell(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """One-sided Maxwell numbers."""
def multinomial(key: ArrayLike, n: ArrayLike, p: ArrayLike, *, shape: Shape | None = None, dtype: DTypeLike | None = None, unroll: int | bool = 1) -> Array:
    """How often each outcome of probabilities p occurs in n trials."""
def multivariate_normal(key: ArrayLike, mean: ArrayLike, cov: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None, method: str = 'cholesky', *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Normal vectors with a mean and a covariance matrix."""
def normal(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Standard normal numbers, real or complex."""
def orthogonal(key: ArrayLike, n: int, shape: Shape = (), dtype: DTypeLike | None = None, m: int | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Uniform orthogonal (or unitary) matrices."""
def pareto(key: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Pareto numbers of exponent b."""
def permutation(key: ArrayLike, x: ArrayLike, axis: int = 0, independent: bool = False, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """x, or the integers below x, in random order along an axis."""
def poisson(key: ArrayLike, lam: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Poisson counts of mean lam."""
def rademacher(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """-1 or 1 with equal probability."""
def randint(key: ArrayLike, shape: Shape, minval: ArrayLike, maxval: ArrayLike, dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Uniform integers in [minval, maxval)."""
random_gamma_p: CatalogPrimitive
def rayleigh(key: ArrayLike, scale: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Rayleigh numbers."""
def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """New keys from a key, in an array of this length or shape."""
def t(key: ArrayLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Student's t numbers with df degrees of freedom."""
def triangular(key: ArrayLike, left: ArrayLike, mode: ArrayLike, right: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Numbers of a density that rises from left to mode and falls to right."""
def truncated_normal(key: ArrayLike, lower: ArrayLike | None = None, upper: ArrayLike | None = None, shape: Shape | None = None, dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None, bounds: ArrayLike | Sequence[ArrayLike] | None = None) -> Array:
    """Standard normal numbers between bounds, which may be given as the pair `bounds`."""
def uniform(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Uniform numbers in [minval, maxval)."""
def wald(key: ArrayLike, mean: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None, *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
    """Wald (inverse Gaussian) numbers."""
def weibull_min(key: ArrayLike, scale: ArrayLike, concentration: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Weibull numbers."""
def wrap_key_data(key_bits_array: ArrayLike, *, impl: str | np.dtype[Any] | None = None, dtype: DTypeLike | None = None) -> Array:
    """Typed keys from their uint32 words."""
