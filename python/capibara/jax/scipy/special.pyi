"""Types of capibara.jax.scipy.special. Made by tools/python/make_stubs.py."""
from typing import Any

def bernoulli(n: Any) -> Any:
    """The Bernoulli numbers from 0 to n."""
def bessel_jn(z: Any, *, v: Any, n_iter: Any = ...) -> Any:
    """The Bessel functions of orders 0 to v, along a new leading axis."""
def beta(a: Any, b: Any) -> Any:
    """The beta function."""
def betainc(a: Any, b: Any, x: Any) -> Any:
    """The incomplete beta function, regularised."""
def betaln(a: Any, b: Any) -> Any:
    """The logarithm of the absolute beta function."""
def boxcox(x: Any, lmbda: Any) -> Any:
    """(x^lmbda - 1) / lmbda, log(x) where lmbda is 0."""
def boxcox1p(x: Any, lmbda: Any) -> Any:
    """((1 + x)^lmbda - 1) / lmbda, log(1 + x) where lmbda is 0."""
def comb(N: Any, k: Any, *, repetition: Any = ...) -> Any:
    """The number of ways to choose k of N things."""
def dawsn(x: Any) -> Any:
    """Dawson's integral: exp(-x^2) times the integral of exp(t^2) from 0 to x."""
def digamma(x: Any) -> Any:
    """The derivative of log(gamma(x))."""
def entr(x: Any) -> Any:
    """-x log(x)."""
def erf(x: Any) -> Any:
    """The error function."""
def erfc(x: Any) -> Any:
    """1 - erf(x)."""
def erfcx(x: Any) -> Any:
    """exp(x^2) erfc(x)."""
def erfinv(x: Any) -> Any:
    """The inverse of the error function."""
def exp1(x: Any) -> Any:
    """The exponential integral E1."""
def expi(x: Any) -> Any:
    """The exponential integral Ei."""
def expit(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
def expn(n: Any, x: Any) -> Any:
    """The exponential integral En."""
def factorial(n: Any, exact: Any = ...) -> Any:
    """n!, which is gamma(n + 1), and 0 for negative n."""
def fresnel(x: Any) -> Any:
    """Fresnel's integrals S and C."""
def gamma(x: Any) -> Any:
    """The gamma function."""
def gammainc(a: Any, x: Any) -> Any:
    """The lower incomplete gamma function, regularised."""
def gammaincc(a: Any, x: Any) -> Any:
    """The upper incomplete gamma function, regularised."""
def gammaln(x: Any) -> Any:
    """log|gamma(x)|."""
def gammasgn(x: Any) -> Any:
    """The sign of gamma(x); NaN at its poles."""
def hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """Kummer's confluent hypergeometric function."""
def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Gauss's hypergeometric function."""
def i0(x: Any) -> Any:
    """The modified Bessel function of order 0."""
def i0e(x: Any) -> Any:
    """exp(-|x|) i0(x)."""
def i1(x: Any) -> Any:
    """The modified Bessel function of order 1."""
def i1e(x: Any) -> Any:
    """exp(-|x|) i1(x)."""
def kl_div(p: Any, q: Any) -> Any:
    """p log(p / q) - p + q."""
def log_ndtr(x: Any, series_order: Any = ...) -> Any:
    """The logarithm of the normal distribution function."""
def log_softmax(x: Any, *, axis: Any = ...) -> Any:
    """The logarithm of softmax."""
def loggamma(x: Any) -> Any:
    """The logarithm of the gamma function; NaN for real x <= 0."""
def logit(x: Any) -> Any:
    """log(x / (1 - x))."""
def logsumexp(a: Any, axis: Any = ..., b: Any = ..., keepdims: Any = ..., return_sign: Any = ..., where: Any = ...) -> Any:
    """log(sum(b exp(a))) along axes; with return_sign, of the absolute sum, and its sign."""
def multigammaln(a: Any, d: Any) -> Any:
    """The logarithm of the gamma function of d dimensions."""
def ndtr(x: Any) -> Any:
    """The normal distribution function."""
def ndtri(p: Any) -> Any:
    """The inverse of the normal distribution function."""
def owens_t(h: Any, a: Any) -> Any:
    """Owen's T function."""
def poch(z: Any, m: Any) -> Any:
    """gamma(z + m) / gamma(z)."""
def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma."""
def rel_entr(p: Any, q: Any) -> Any:
    """p log(p / q)."""
def sici(x: Any) -> Any:
    """The sine and cosine integrals."""
def softmax(x: Any, *, axis: Any = ...) -> Any:
    """exp(x) divided by its sum along axes."""
def spence(x: Any) -> Any:
    """Spence's function, the dilogarithm of 1 - x."""
def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, diff_n: Any = ..., n_max: Any = ...) -> Any:
    """The spherical harmonics of degrees n and orders m at polar angles theta and azimuths phi."""
def wofz(z: Any) -> Any:
    """The Faddeeva function exp(-z^2) erfc(-i z)."""
def xlog1py(x: Any, y: Any) -> Any:
    """x log(1 + y), 0 where x is 0."""
def xlogy(x: Any, y: Any) -> Any:
    """x log(y), 0 where x is 0."""
def zeta(x: Any, q: Any = ...) -> Any:
    """Hurwitz's zeta function."""
