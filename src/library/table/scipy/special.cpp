// Table rows for jax.scipy.special.
#include <capibara/scipy/special.h>

#include "library/table/families.h"
#include "library/table/named_axes.h"

namespace capibara::library {

namespace special = jax::scipy::special;

namespace {

Value logsumexp(const Arguments& a) {
  const jax::nn::LogsumexpOptions options{.axis = a.axis("axis"),
                                          .b = a.optional_array("b"),
                                          .keepdims = a.flag("keepdims"),
                                          .where = a.optional_array("where")};
  if (a.flag("return_sign")) return special::logsumexp_with_sign(a.array("a"), options);
  return special::logsumexp(a.array("a"), options);
}

Value zeta(const Arguments& a) {
  if (!a.given("q")) throw NotImplementedError("zeta: q must be given; Riemann's function is zeta(x, 1)");
  return special::zeta(a.array("x"), a.array("q"));
}

Value factorial(const Arguments& a) {
  if (a.flag("exact")) throw NotImplementedError("factorial: exact=True is not supported");
  return special::factorial(a.array("n"));
}

Value sph_harm_y(const Arguments& a) {
  a.require_absent("diff_n");
  return special::sph_harm_y(a.array("n"), a.array("m"), a.array("theta"), a.array("phi"),
                             {.n_max = a.optional_integer("n_max")});
}

Value log_ndtr(const Arguments& a) {
  if (!a["series_order"].get_if<int64_t>()) {
    throw TypeError(concat("log_ndtr: series_order must be an int, got ", a["series_order"].type_name()));
  }
  return special::log_ndtr(a.array("x"), {.series_order = a.integer("series_order")});
}

#define CAPIBARA_SPECIAL_1(name, x, doc)                                                   \
  {                                                                                        \
#name, #x, [](const Arguments& a) -> Value { return special::name(a.array(#x)); }, doc \
  }
#define CAPIBARA_SPECIAL_2(name, x, y, doc)                                                                     \
  {                                                                                                             \
#name, #x ", " #y, [](const Arguments& a) -> Value { return special::name(a.array(#x), a.array(#y)); }, doc \
  }
#define CAPIBARA_SPECIAL_3(name, x, y, z, doc)                                                                \
  {                                                                                                           \
#name, #x ", " #y ", " #z,                                                                                \
        [](const Arguments& a) -> Value { return special::name(a.array(#x), a.array(#y), a.array(#z)); }, doc \
  }

const Function scipy_special_functions[] = {
    {"logsumexp",
     "a, axis=None, b=None, keepdims=False, return_sign=False, where=None -> tuple[Array, Array] if return_sign else "
     "Array",
     reduced_over_names<logsumexp>,
     "log(sum(b exp(a))) along axes; with return_sign, of the absolute sum, and its sign."},
    {"softmax", "x, /, *, axis=None",
     [](const Arguments& a) -> Value { return special::softmax(a.array("x"), a.axis("axis")); },
     "exp(x) divided by its sum along axes."},
    {"log_softmax", "x, /, *, axis=None",
     [](const Arguments& a) -> Value { return special::log_softmax(a.array("x"), a.axis("axis")); },
     "The logarithm of softmax."},
    CAPIBARA_SPECIAL_1(gammaln, x, "log|gamma(x)|."),
    CAPIBARA_SPECIAL_1(gammasgn, x, "The sign of gamma(x); NaN at its poles."),
    CAPIBARA_SPECIAL_1(loggamma, x, "The logarithm of the gamma function; NaN for real x <= 0."),
    CAPIBARA_SPECIAL_1(gamma, x, "The gamma function."),
    CAPIBARA_SPECIAL_1(digamma, x, "The derivative of log(gamma(x))."),
    CAPIBARA_SPECIAL_2(polygamma, n, x, "The n-th derivative of digamma."),
    CAPIBARA_SPECIAL_2(gammainc, a, x, "The lower incomplete gamma function, regularised."),
    CAPIBARA_SPECIAL_2(gammaincc, a, x, "The upper incomplete gamma function, regularised."),
    {"multigammaln", "a, d",
     [](const Arguments& a) -> Value { return special::multigammaln(a.array("a"), static_cast<int64_t>(a.real("d"))); },
     "The logarithm of the gamma function of d dimensions."},
    {"factorial", "n, exact=False", factorial, "n!, which is gamma(n + 1), and 0 for negative n."},
    CAPIBARA_SPECIAL_2(poch, z, m, "gamma(z + m) / gamma(z)."),
    {"comb", "N: ArrayLike, k: ArrayLike, *, repetition=False",
     [](const Arguments& a) -> Value {
       return special::comb(a.array("N"), a.array("k"), {.repetition = a.flag("repetition")});
     },
     "The number of ways to choose k of N things."},
    CAPIBARA_SPECIAL_2(beta, a, b, "The beta function."),
    CAPIBARA_SPECIAL_2(betaln, a, b, "The logarithm of the absolute beta function."),
    CAPIBARA_SPECIAL_3(betainc, a, b, x, "The incomplete beta function, regularised."),
    CAPIBARA_SPECIAL_1(erf, x, "The error function."),
    CAPIBARA_SPECIAL_1(erfc, x, "1 - erf(x)."),
    CAPIBARA_SPECIAL_1(erfinv, x, "The inverse of the error function."),
    CAPIBARA_SPECIAL_1(erfcx, x, "exp(x^2) erfc(x)."),
    CAPIBARA_SPECIAL_1(wofz, z, "The Faddeeva function exp(-z^2) erfc(-i z)."),
    CAPIBARA_SPECIAL_1(dawsn, x, "Dawson's integral: exp(-x^2) times the integral of exp(t^2) from 0 to x."),
    CAPIBARA_SPECIAL_1(ndtr, x, "The normal distribution function."),
    CAPIBARA_SPECIAL_1(ndtri, p, "The inverse of the normal distribution function."),
    {"log_ndtr", "x, series_order=3", log_ndtr, "The logarithm of the normal distribution function."},
    CAPIBARA_SPECIAL_2(owens_t, h, a, "Owen's T function."),
    CAPIBARA_SPECIAL_1(logit, x, "log(x / (1 - x))."),
    CAPIBARA_SPECIAL_1(expit, x, "1 / (1 + exp(-x))."),
    CAPIBARA_SPECIAL_2(xlogy, x, y, "x log(y), 0 where x is 0."),
    CAPIBARA_SPECIAL_2(xlog1py, x, y, "x log(1 + y), 0 where x is 0."),
    CAPIBARA_SPECIAL_1(entr, x, "-x log(x)."),
    CAPIBARA_SPECIAL_2(rel_entr, p, q, "p log(p / q)."),
    CAPIBARA_SPECIAL_2(kl_div, p, q, "p log(p / q) - p + q."),
    CAPIBARA_SPECIAL_2(boxcox, x, lmbda, "(x^lmbda - 1) / lmbda, log(x) where lmbda is 0."),
    CAPIBARA_SPECIAL_2(boxcox1p, x, lmbda, "((1 + x)^lmbda - 1) / lmbda, log(1 + x) where lmbda is 0."),
    CAPIBARA_SPECIAL_1(expi, x, "The exponential integral Ei."),
    CAPIBARA_SPECIAL_1(exp1, x, "The exponential integral E1."),
    CAPIBARA_SPECIAL_2(expn, n, x, "The exponential integral En."),
    {"sici", "x -> tuple[Array, Array]", [](const Arguments& a) -> Value { return special::sici(a.array("x")); },
     "The sine and cosine integrals."},
    {"fresnel", "x -> tuple[Array, Array]", [](const Arguments& a) -> Value { return special::fresnel(a.array("x")); },
     "Fresnel's integrals S and C."},
    CAPIBARA_SPECIAL_1(spence, x, "Spence's function, the dilogarithm of 1 - x."),
    {"zeta", "x, q=None", zeta, "Hurwitz's zeta function."},
    {"bernoulli", "n", [](const Arguments& a) -> Value { return special::bernoulli(a.integer("n")); },
     "The Bernoulli numbers from 0 to n."},
    CAPIBARA_SPECIAL_3(hyp1f1, a, b, x, "Kummer's confluent hypergeometric function."),
    {"hyp2f1", "a, b, c, x",
     [](const Arguments& a) -> Value {
       return special::hyp2f1(a.array("a"), a.array("b"), a.array("c"), a.array("x"));
     },
     "Gauss's hypergeometric function."},
    CAPIBARA_SPECIAL_1(i0, x, "The modified Bessel function of order 0."),
    CAPIBARA_SPECIAL_1(i0e, x, "exp(-|x|) i0(x)."),
    CAPIBARA_SPECIAL_1(i1, x, "The modified Bessel function of order 1."),
    CAPIBARA_SPECIAL_1(i1e, x, "exp(-|x|) i1(x)."),
    {"bessel_jn", "z, *, v: int, n_iter=50",
     [](const Arguments& a) -> Value {
       return special::bessel_jn(a.array("z"), {.v = a.integer("v"), .n_iter = a.integer("n_iter")});
     },
     "The Bessel functions of orders 0 to v, along a new leading axis."},
    {"sph_harm_y", "n, m, theta, phi, diff_n=None, n_max=None", sph_harm_y,
     "The spherical harmonics of degrees n and orders m at polar angles theta and azimuths phi."},
};

}  // namespace

Family scipy_special() { return scipy_special_functions; }

}  // namespace capibara::library
