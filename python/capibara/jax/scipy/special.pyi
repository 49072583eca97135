"""Types of capibara.jax.scipy.special. Made by tools/python/make_stubs.py."""
from collections.abc import Sequence
from typing import Literal, overload
from capibara._core import Array
from capibara.jax.typing import ArrayLike

def bernoulli(n: ArrayLike) -> Array:
    """The Bernoulli numbers from 0 to n."""
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of orders 0 to v, along a new leading axis."""
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """The beta function."""
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The incomplete beta function, regularised."""
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """The logarithm of the absolute beta function."""
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """(x^lmbda - 1) / lmbda, log(x) where lmbda is 0."""
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """((1 + x)^lmbda - 1) / lmbda, log(1 + x) where lmbda is 0."""
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The number of ways to choose k of N things."""
def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral: exp(-x^2) times the integral of exp(t^2) from 0 to x."""
def digamma(x: ArrayLike) -> Array:
    """The derivative of log(gamma(x))."""
def entr(x: ArrayLike) -> Array:
    """-x log(x)."""
def erf(x: ArrayLike) -> Array:
    """The error function."""
def erfc(x: ArrayLike) -> Array:
    """1 - erf(x)."""
def erfcx(x: ArrayLike) -> Array:
    """exp(x^2) erfc(x)."""
def erfinv(x: ArrayLike) -> Array:
    """The inverse of the error function."""
def exp1(x: ArrayLike) -> Array:
    """The exponential integral E1."""
def expi(x: ArrayLike) -> Array:
    """The exponential integral Ei."""
def expit(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x))."""
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The exponential integral En."""
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """n!, which is gamma(n + 1), and 0 for negative n."""
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel's integrals S and C."""
def gamma(x: ArrayLike) -> Array:
    """The gamma function."""
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The lower incomplete gamma function, regularised."""
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The upper incomplete gamma function, regularised."""
def gammaln(x: ArrayLike) -> Array:
    """log|gamma(x)|."""
def gammasgn(x: ArrayLike) -> Array:
    """The sign of gamma(x); NaN at its poles."""
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's confluent hypergeometric function."""
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's hypergeometric function."""
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0."""
def i0e(x: ArrayLike) -> Array:
    """exp(-|x|) i0(x)."""
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1."""
def i1e(x: ArrayLike) -> Array:
    """exp(-|x|) i1(x)."""
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """p log(p / q) - p + q."""
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of the normal distribution function."""
def log_softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """The logarithm of softmax."""
def loggamma(x: ArrayLike) -> Array:
    """The logarithm of the gamma function; NaN for real x <= 0."""
def logit(x: ArrayLike) -> Array:
    """log(x / (1 - x))."""
@overload
def logsumexp(a: ArrayLike, axis: int | Sequence[int] | None = None, b: ArrayLike | None = None, keepdims: bool = False, return_sign: Literal[False] = False, where: ArrayLike | None = None) -> Array: ...
@overload
def logsumexp(a: ArrayLike, axis: int | Sequence[int] | None = None, b: ArrayLike | None = None, keepdims: bool = False, *, return_sign: Literal[True], where: ArrayLike | None = None) -> tuple[Array, Array]: ...
@overload
def logsumexp(a: ArrayLike, axis: int | Sequence[int] | None = None, b: ArrayLike | None = None, keepdims: bool = False, return_sign: bool = False, where: ArrayLike | None = None) -> Array | tuple[Array, Array]:
    """log(sum(b exp(a))) along axes; with return_sign, of the absolute sum, and its sign."""
def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """The logarithm of the gamma function of d dimensions."""
def ndtr(x: ArrayLike) -> Array:
    """The normal distribution function."""
def ndtri(p: ArrayLike) -> Array:
    """The inverse of the normal distribution function."""
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T function."""
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """gamma(z + m) / gamma(z)."""
def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The n-th derivative of digamma."""
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """p log(p / q)."""
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine and cosine integrals."""
def softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """exp(x) divided by its sum along axes."""
def spence(x: ArrayLike) -> Array:
    """Spence's function, the dilogarithm of 1 - x."""
def sph_harm_y(n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike, diff_n: int | None = None, n_max: int | None = None) -> Array:
    """The spherical harmonics of degrees n and orders m at polar angles theta and azimuths phi."""
def wofz(z: ArrayLike) -> Array:
    """The Faddeeva function exp(-z^2) erfc(-i z)."""
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(1 + y), 0 where x is 0."""
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(y), 0 where x is 0."""
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Hurwitz's zeta function."""
