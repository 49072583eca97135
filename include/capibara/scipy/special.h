// jax.scipy.special: special functions, element by element.
#pragma once

#include <capibara/array.h>
#include <capibara/nn/softmax.h>

#include <optional>
#include <utility>

namespace capibara::jax::scipy::special {

// ---- logarithms of sums: as in jax.nn, but over all axes by default -------------------------------------------------
using nn::logsumexp;
using nn::logsumexp_with_sign;
// exp(x) divided by its sum along axes.
Array softmax(const Array& x, const numpy::Axis& axis = {});
// The logarithm of softmax.
Array log_softmax(const Array& x, const numpy::Axis& axis = {});

// ---- the gamma family -----------------------------------------------------------------------------------------------
// log|gamma(x)|.
Array gammaln(const Array& x);
// The sign of gamma(x); NaN at its poles.
Array gammasgn(const Array& x);
// The logarithm of the gamma function; NaN for real x <= 0. Analytic off the negative axis for complex x.
Array loggamma(const Array& x);
// The gamma function.
Array gamma(const Array& x);
// The derivative of log(gamma(x)).
Array digamma(const Array& x);
// The n-th derivative of digamma. n is an integer.
Array polygamma(const Array& n, const Array& x);
// The lower incomplete gamma function, regularised.
Array gammainc(const Array& a, const Array& x);
// The upper incomplete gamma function, regularised.
Array gammaincc(const Array& a, const Array& x);
// The logarithm of the gamma function of d dimensions.
Array multigammaln(const Array& a, int64_t d);
// n!, which is gamma(n + 1), and 0 for negative n.
Array factorial(const Array& n);
// gamma(z + m) / gamma(z).
Array poch(const Array& z, const Array& m);
struct CombOptions {
  bool repetition = false;
};
// The number of ways to choose k of N things.
Array comb(const Array& N, const Array& k, const CombOptions& options = {});
// The beta function.
Array beta(const Array& a, const Array& b);
// The logarithm of the absolute beta function.
Array betaln(const Array& a, const Array& b);
// The incomplete beta function, regularised.
Array betainc(const Array& a, const Array& b, const Array& x);

// ---- errors and the normal distribution -----------------------------------------------------------------------------
// The error function.
Array erf(const Array& x);
// 1 - erf(x).
Array erfc(const Array& x);
// The inverse of the error function.
Array erfinv(const Array& x);
// exp(x^2) erfc(x).
Array erfcx(const Array& x);
// The Faddeeva function exp(-z^2) erfc(-i z).
Array wofz(const Array& z);
// Dawson's integral: exp(-x^2) times the integral of exp(t^2) from 0 to x.
Array dawsn(const Array& x);
// The normal distribution function.
Array ndtr(const Array& x);
// The inverse of the normal distribution function.
Array ndtri(const Array& p);
struct LogNdtrOptions {
  int64_t series_order = 3;  // terms of the series far below zero
};
// The logarithm of the normal distribution function.
Array log_ndtr(const Array& x, const LogNdtrOptions& options = {});
// Owen's T function.
Array owens_t(const Array& h, const Array& a);

// ---- logarithms and entropies ---------------------------------------------------------------------------------------
// log(x / (1 - x)).
Array logit(const Array& x);
// 1 / (1 + exp(-x)).
Array expit(const Array& x);
// x log(y), 0 where x is 0.
Array xlogy(const Array& x, const Array& y);
// x log(1 + y), 0 where x is 0.
Array xlog1py(const Array& x, const Array& y);
// -x log(x).
Array entr(const Array& x);
// p log(p / q).
Array rel_entr(const Array& p, const Array& q);
// p log(p / q) - p + q.
Array kl_div(const Array& p, const Array& q);
// (x^lmbda - 1) / lmbda, log(x) where lmbda is 0.
Array boxcox(const Array& x, const Array& lmbda);
// ((1 + x)^lmbda - 1) / lmbda, log(1 + x) where lmbda is 0.
Array boxcox1p(const Array& x, const Array& lmbda);

// ---- integrals ------------------------------------------------------------------------------------------------------
// The exponential integral Ei.
Array expi(const Array& x);
// The exponential integral E1.
Array exp1(const Array& x);
// The exponential integral En.
Array expn(const Array& n, const Array& x);
// The sine and cosine integrals.
std::pair<Array, Array> sici(const Array& x);
// Fresnel's integrals S and C.
std::pair<Array, Array> fresnel(const Array& x);
// Spence's function, the dilogarithm of 1 - x.
Array spence(const Array& x);

// ---- series, Bessel functions and harmonics -------------------------------------------------------------------------
// Hurwitz's zeta function.
Array zeta(const Array& x, const Array& q);
// The Bernoulli numbers from 0 to n.
Array bernoulli(int64_t n);
// Kummer's confluent hypergeometric function.
Array hyp1f1(const Array& a, const Array& b, const Array& x);
// Gauss's hypergeometric function.
Array hyp2f1(const Array& a, const Array& b, const Array& c, const Array& x);
// The modified Bessel function of order 0.
Array i0(const Array& x);
// exp(-|x|) i0(x).
Array i0e(const Array& x);
// The modified Bessel function of order 1.
Array i1(const Array& x);
// exp(-|x|) i1(x).
Array i1e(const Array& x);
struct BesselOptions {
  int64_t v = 0;        // orders 0 to v, along a new leading axis
  int64_t n_iter = 50;  // starting order of the downward recurrence
};
// The Bessel functions of orders 0 to v, along a new leading axis.
Array bessel_jn(const Array& z, const BesselOptions& options);
struct HarmonicOptions {
  std::optional<int64_t> n_max = {};  // the maximum degree; taken from n if that is concrete
};
// The spherical harmonics of degrees n and orders m at polar angles theta and azimuths phi. All have one length.
Array sph_harm_y(const Array& n, const Array& m, const Array& theta, const Array& phi,
                 const HarmonicOptions& options = {});

}  // namespace capibara::jax::scipy::special
