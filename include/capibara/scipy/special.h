// jax.scipy.special: special functions, element by element.
#pragma once

#include <capibara/array.h>
#include <capibara/nn/softmax.h>

#include <optional>
#include <utility>

namespace capibara::jax::scipy::special {

// ---- logarithms of sums: those of jax.nn, over all axes by default --------------------------------------------------
using nn::logsumexp;
using nn::logsumexp_with_sign;
Array softmax(const Array& x, const numpy::Axis& axis = {});
Array log_softmax(const Array& x, const numpy::Axis& axis = {});

// ---- the gamma family -----------------------------------------------------------------------------------------------
Array gammaln(const Array& x);   // log|gamma(x)|
Array gammasgn(const Array& x);  // the sign of gamma(x); NaN at its poles
Array loggamma(const Array& x);  // NaN for real x <= 0; analytic off the negative axis for complex x
Array gamma(const Array& x);
Array digamma(const Array& x);
Array polygamma(const Array& n, const Array& x);      // the n-th derivative of digamma, n integer
Array gammainc(const Array& a, const Array& x);       // regularised, lower
Array gammaincc(const Array& a, const Array& x);      // regularised, upper
Array multigammaln(const Array& a, int64_t d);
Array factorial(const Array& n);                      // 0 for negative n
Array poch(const Array& z, const Array& m);           // gamma(z + m) / gamma(z)
struct CombOptions {
  bool repetition = false;
};
Array comb(const Array& N, const Array& k, const CombOptions& options = {});
Array beta(const Array& a, const Array& b);
Array betaln(const Array& a, const Array& b);
Array betainc(const Array& a, const Array& b, const Array& x);  // regularised

// ---- errors and the normal distribution -----------------------------------------------------------------------------
Array erf(const Array& x);
Array erfc(const Array& x);
Array erfinv(const Array& x);
Array erfcx(const Array& x);   // exp(x^2) erfc(x)
Array wofz(const Array& z);    // the Faddeeva function exp(-z^2) erfc(-i z)
Array dawsn(const Array& x);   // Dawson's integral
Array ndtr(const Array& x);    // the normal distribution function
Array ndtri(const Array& p);   // its inverse
struct LogNdtrOptions {
  int64_t series_order = 3;  // terms of the series far below zero
};
Array log_ndtr(const Array& x, const LogNdtrOptions& options = {});
Array owens_t(const Array& h, const Array& a);

// ---- logarithms and entropies ---------------------------------------------------------------------------------------
Array logit(const Array& x);
Array expit(const Array& x);
Array xlogy(const Array& x, const Array& y);    // x log(y), 0 where x is 0
Array xlog1py(const Array& x, const Array& y);  // x log(1 + y), 0 where x is 0
Array entr(const Array& x);                     // -x log(x)
Array rel_entr(const Array& p, const Array& q);
Array kl_div(const Array& p, const Array& q);   // rel_entr(p, q) - p + q
Array boxcox(const Array& x, const Array& lmbda);
Array boxcox1p(const Array& x, const Array& lmbda);

// ---- integrals ------------------------------------------------------------------------------------------------------
Array expi(const Array& x);
Array exp1(const Array& x);
Array expn(const Array& n, const Array& x);
std::pair<Array, Array> sici(const Array& x);     // sine and cosine integrals
std::pair<Array, Array> fresnel(const Array& x);  // S and C
Array spence(const Array& x);

// ---- series, Bessel functions and harmonics -------------------------------------------------------------------------
Array zeta(const Array& x, const Array& q);  // Hurwitz's
Array bernoulli(int64_t n);                  // the numbers B0 to Bn
Array hyp1f1(const Array& a, const Array& b, const Array& x);
Array hyp2f1(const Array& a, const Array& b, const Array& c, const Array& x);
Array i0(const Array& x);
Array i0e(const Array& x);
Array i1(const Array& x);
Array i1e(const Array& x);
struct BesselOptions {
  int64_t v = 0;        // orders 0 to v, along a new leading axis
  int64_t n_iter = 50;  // where the recurrence downwards begins
};
Array bessel_jn(const Array& z, const BesselOptions& options);
struct HarmonicOptions {
  std::optional<int64_t> n_max = {};  // the greatest degree; found in n where that is concrete
};
// Spherical harmonics of degrees n and orders m at polar angles theta and azimuths phi, all of one length.
Array sph_harm_y(const Array& n, const Array& m, const Array& theta, const Array& phi,
                 const HarmonicOptions& options = {});

}  // namespace capibara::jax::scipy::special
