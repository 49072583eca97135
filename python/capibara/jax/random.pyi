"""Types of capibara.jax.random. Made by tools/python/make_stubs.py."""
from typing import Any

def PRNGKey(seed: Any, *, impl: Any = ...) -> Any:
    """A key from an integer, as its uint32 words."""
def ball(key: Any, d: Any, p: Any = ..., shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Uniform points of the unit ball of the p-norm in d dimensions."""
def bernoulli(key: Any, p: Any = ..., shape: Any = ..., mode: Any = ..., *, out_sharding: Any = ...) -> Any:
    """True with probability p."""
def beta(key: Any, a: Any, b: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Beta numbers."""
def binomial(key: Any, n: Any, p: Any, shape: Any = ..., dtype: Any = ...) -> Any:
    """The number of successes in n trials of probability p."""
def bits(key: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Uniform bits as unsigned integers."""
def categorical(key: Any, logits: Any, axis: Any = ..., shape: Any = ..., replace: Any = ..., mode: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Positions along an axis with probabilities softmax(logits)."""
def cauchy(key: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Standard Cauchy numbers."""
def chisquare(key: Any, df: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Chi-square numbers with df degrees of freedom."""
def choice(key: Any, a: Any, shape: Any = ..., replace: Any = ..., p: Any = ..., axis: Any = ..., mode: Any = ...) -> Any:
    """Random elements of an array, or integers below a, with weights p."""
def clone(key: Any) -> Any:
    """A copy of a key that counts as unused."""
def dirichlet(key: Any, alpha: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Dirichlet vectors."""
def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = ..., dtype: Any = ...) -> Any:
    """Maxwell numbers of random sign, scaled and shifted."""
def exponential(key: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Exponential numbers of rate 1."""
def f(key: Any, dfnum: Any, dfden: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """F numbers with dfnum and dfden degrees of freedom."""
def fold_in(key: Any, data: Any) -> Any:
    """A new key from a key and an integer."""
def gamma(key: Any, a: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Gamma numbers of shape parameter a."""
def generalized_normal(key: Any, p: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Numbers of density proportional to exp(-|x|^p)."""
def geometric(key: Any, p: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """The number of trials of probability p up to the first success."""
def gumbel(key: Any, shape: Any = ..., dtype: Any = ..., mode: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Standard Gumbel numbers; mode 'high' draws the tail with more bits."""
def key(seed: Any, *, impl: Any = ..., dtype: Any = ...) -> Any:
    """A typed key from an integer."""
def key_data(keys: Any) -> Any:
    """The uint32 words of keys."""
def key_dtype(impl_spec: Any = ...) -> Any:
    """The dtype of keys of a generator."""
def key_impl(keys: Any) -> Any:
    """The name of the generator of keys."""
def laplace(key: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Standard Laplace numbers."""
def loggamma(key: Any, a: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Logarithms of gamma numbers, accurate for small a."""
def logistic(key: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Standard logistic numbers."""
def lognormal(key: Any, sigma: Any = ..., shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """exp of normal numbers of standard deviation sigma."""
def maxwell(key: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """One-sided Maxwell numbers."""
def multinomial(key: Any, n: Any, p: Any, *, shape: Any = ..., dtype: Any = ..., unroll: Any = ...) -> Any:
    """How often each outcome of probabilities p occurs in n trials."""
def multivariate_normal(key: Any, mean: Any, cov: Any, shape: Any = ..., dtype: Any = ..., method: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Normal vectors with a mean and a covariance matrix."""
def normal(key: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Standard normal numbers, real or complex."""
def orthogonal(key: Any, n: Any, shape: Any = ..., dtype: Any = ..., m: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Uniform orthogonal (or unitary) matrices."""
def pareto(key: Any, b: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Pareto numbers of exponent b."""
def permutation(key: Any, x: Any, axis: Any = ..., independent: Any = ..., *, out_sharding: Any = ...) -> Any:
    """x, or the integers below x, in random order along an axis."""
def poisson(key: Any, lam: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Poisson counts of mean lam."""
def rademacher(key: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """-1 or 1 with equal probability."""
def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Uniform integers in [minval, maxval)."""
random_gamma_p: Any
def rayleigh(key: Any, scale: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Rayleigh numbers."""
def split(key: Any, num: Any = ...) -> Any:
    """New keys from a key, in an array of this length or shape."""
def t(key: Any, df: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Student's t numbers with df degrees of freedom."""
def triangular(key: Any, left: Any, mode: Any, right: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Numbers of a density that rises from left to mode and falls to right."""
def truncated_normal(key: Any, lower: Any = ..., upper: Any = ..., shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ..., bounds: Any = ...) -> Any:
    """Standard normal numbers between bounds, which may be given as the pair `bounds`."""
def uniform(key: Any, shape: Any = ..., dtype: Any = ..., minval: Any = ..., maxval: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Uniform numbers in [minval, maxval)."""
def wald(key: Any, mean: Any, shape: Any = ..., dtype: Any = ..., *, out_sharding: Any = ...) -> Any:
    """Wald (inverse Gaussian) numbers."""
def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = ..., dtype: Any = ...) -> Any:
    """Weibull numbers."""
def wrap_key_data(key_bits_array: Any, *, impl: Any = ..., dtype: Any = ...) -> Any:
    """Typed keys from their uint32 words."""
