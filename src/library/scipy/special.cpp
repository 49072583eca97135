// jax.scipy.special: the gamma family, logarithms and entropies.
#include <capibara/control.h>
#include <capibara/custom_derivatives.h>
#include <capibara/scipy/special.h>

#include <array>
#include <cmath>

#include "library/nn/terms.h"

namespace capibara::jax::scipy::special {

using namespace terms;

namespace {

using Pair = std::tuple<Array, Array>;

Array sign_bit(const Array& x) {
  const int width = bits(x.dtype());
  const DType integer = width == 64   ? DType::int64
                        : width == 32 ? DType::int32
                        : width == 16 ? DType::int16
                                      : DType::int8;
  return lax::bitcast_convert_type(x, integer) < 0;
}

Array complex_constant(const Array& like, double real, double imaginary) {
  return lax::convert_element_type(Array(std::complex<double>(real, imaginary)), like.dtype(), false);
}

// The poles of gamma: 0, -1, -2 ...
Array is_pole(const Array& z) {
  const Array re = lax::real(z);
  Array is_equal = lax::imag(z) == 0, both = is_equal & (re == lax::floor(re));
  return both & (re <= 0);
}

// Lanczos's approximation with g = 7, reflected where the real part is below 1/2.
Array lanczos_loggamma(const Array& z) {
  constexpr std::array<double, 9> coefficients = {
      0.99999999999980993227684700473478, 676.520368121885098567009190444019, -1259.13921672240287047156078755283,
      771.3234287776530788486528258894,   -176.61502916214059906584551354,    12.507343278686904814458936853,
      -0.13857109526572011689554707,      9.984369578019570859563e-6,         1.50563273514931155834e-7};
  const Array reflect = lax::real(z) < 0.5;
  const Array shifted = where(reflect, 1.0 - z, z) - 1.0;
  Array series = complex_constant(z, coefficients[0], 0);
  for (std::size_t k = 1; k < coefficients.size(); ++k) {
    Array complex_constant_z = complex_constant(z, coefficients[k], 0);
    series = series + complex_constant_z / (shifted + complex_constant(z, static_cast<double>(k), 0));
  }
  const Array t = shifted + 7.5;
  const Array complex_constant_value = complex_constant(z, 0.5 * std::log(2 * pi), 0), sum = shifted + 0.5;
  const Array difference = complex_constant_value + sum * lax::log(t) - t;
  const Array direct = difference + lax::log(series);
  const Array safe = where(reflect, z, complex_constant(z, 0.5, 0));
  const Array first_complex_constant = complex_constant(z, std::log(pi), 0);
  const Array reflected = first_complex_constant - lax::log(lax::sin(pi * safe)) - direct;
  return where(reflect, reflected, direct);
}

Array complex_gamma(const Array& z) {
  const Array is_pole_z = is_pole(z);
  const Array undefined = is_pole_z | isnan(z);
  const Array safe = where(undefined, complex_constant(z, 1, 0), z);
  Array complex_constant_z = complex_constant(z, not_a_number, not_a_number);
  return where(undefined, complex_constant_z, lax::exp(lanczos_loggamma(safe)));
}

// The branch that is continuous off the negative axis: z is shifted right by the recurrence, one logarithm at a time.
Array complex_loggamma(const Array& z) {
  const Array is_pole_z = is_pole(z);
  const Array undefined = is_pole_z | isnan(z);
  const Array safe = where(undefined, complex_constant(z, 1, 0), z);
  const Array raised = lax::ceil(0.5 - lax::real(safe));
  const Array steps = lax::max(raised, constant(lax::real(safe), 0));
  using State = std::pair<Array, Array>;
  Array filled = lax::full({}, 0, real_dtype(z.dtype()));
  const State end = lax::while_loop(
      [&](const State& state) {
        const Array active = state.first < steps;
        Ints axes;
        for (int64_t i = 0; i < active.ndim(); ++i) axes.push_back(i);
        return lax::reduce_or(active, {axes});
      },
      [&](const State& state) {
        const Array active = state.first < steps;
        const Array sum = safe + state.first;
        const Array here = where(active, sum, complex_constant(z, 1, 0));
        const Array logarithm = lax::log(here);
        const Array term = where(active, logarithm, lax::zeros_like(state.second));
        Array sum_state = state.first + constant(state.first, 1);
        return State(sum_state, state.second + term);
      },
      State(filled, lax::full(safe.shape(), 0, safe.dtype())));
  Array complex_constant_z = complex_constant(z, not_a_number, not_a_number);
  return where(undefined, complex_constant_z, lanczos_loggamma(safe + steps) - end.second);
}

// log(gamma(b) / gamma(a + b)) for a <= b and b >= 8, from the difference of Stirling's series (TOMS 708, algdiv).
Array log_gamma_ratio(const Array& a, const Array& b) {
  constexpr std::array<double, 6> coefficients = {0.833333333333333e-01, -0.277777777760991e-02,
                                                  0.793650666825390e-03, -0.595202931351870e-03,
                                                  0.837308034031215e-03, -0.165322962780713e-02};
  const Array ratio = a / b;
  const Array share = ratio / (1 + ratio), squared = share * share;
  // geometric[i] = 1 + share + ... + share^(2 i)
  std::array<Array, 6> geometric;
  geometric[1] = 1.0 + (share + squared);
  for (std::size_t i = 2; i < geometric.size(); ++i) geometric[i] = 1.0 + (share + squared * geometric[i - 1]);
  const Array inverse_square = lax::square(1.0 / b);
  Array series = coefficients[5] * geometric[5] * inverse_square;
  for (std::size_t i = 4; i > 0; --i) series = (series + coefficients[i] * geometric[i]) * inverse_square;
  const Array sum = series + coefficients[0];
  const Array correction = sum * (share / b);
  Array sum_b = b + (a - 0.5);
  const Array u = sum_b * lax::log1p(ratio), v = a * (lax::log(b) - 1.0);
  Array is_at_most = u <= v, difference = (correction - v) - u;
  return where(is_at_most, difference, (correction - u) - v);
}

Array x_log_x(const Array& x) {
  static const auto function = [] {
    auto f = custom_jvp([](Array in) { return xlogy(in, in); }, "_xlogx");
    f.defjvp([](const std::tuple<Array>& primals, const std::tuple<Array>& tangents) {
      const Array& in = std::get<0>(primals);
      Array x_log_x_in = x_log_x(in);
      return Pair(x_log_x_in, std::get<0>(tangents) * (lax::log(in) + 1));
    });
    return f;
  }();
  return function(x);
}

// x log(y), where the logarithm may be that of 1 + y.
Array times_logarithm(const Array& x, const Array& y, Array (*logarithm)(const Array&)) {
  Array is_different = x != 0.0, either = is_different | isnan(y), product = x * logarithm(y);
  return where(either, product, lax::zeros_like(x));
}

Array power_transform(const Array& logarithm, const Array& lmbda) {
  const Array is_zero = lmbda == 0;
  const Array safe = where(is_zero, lax::full_like(lmbda, 1), lmbda);
  return where(is_zero, logarithm, lax::expm1(safe * logarithm) / safe);
}

}  // namespace

Array softmax(const Array& x, const numpy::Axis& axis) { return nn::softmax(x, {.axis = axis}); }
Array log_softmax(const Array& x, const numpy::Axis& axis) { return nn::log_softmax(x, {.axis = axis}); }

Array gammaln(const Array& x) { return lax::lgamma(promote_inexact("gammaln", x)); }

Array gammasgn(const Array& x) {
  const Array in = promote_inexact("gammasgn", x);
  require_real("gammasgn", in);
  const Array below = lax::floor(in), negative = in < 0;
  const Array both = negative & (in == below);
  const Array undefined = both | isnan(in);
  const Array both_negative = negative & (below % 2 != 0), is_equal = in == 0;
  const Array minus = both_negative | (is_equal & sign_bit(in));
  Array typed_constant_in = typed_constant(in, not_a_number), typed_constant_value = typed_constant(in, -1);
  return where(undefined, typed_constant_in, where(minus, typed_constant_value, typed_constant(in, 1)));
}

Array loggamma(const Array& x) {
  const Array in = promote_inexact("loggamma", x);
  if (is_complex(in.dtype())) return complex_loggamma(in);
  Array is_greater = in > 0;
  return where(is_greater, lax::lgamma(in), not_a_number);
}

Array gamma(const Array& x) {
  const Array in = promote_inexact("gamma", x);
  if (is_complex(in.dtype())) return complex_gamma(in);
  Array gammasgn_in = gammasgn(in);
  return gammasgn_in * lax::exp(lax::lgamma(in));
}

Array digamma(const Array& x) { return lax::digamma(promote_inexact("digamma", x)); }

Array polygamma(const Array& n, const Array& x) {
  if (!is_integer(n.dtype())) {
    throw ValueError(concat("polygamma: argument 'n' must be of integer type, got ", to_string(n.type())));
  }
  const Arrays in = promote_args_inexact("polygamma", {n, x});
  require_real("polygamma", in[1]);
  return lax::polygamma(in[0], in[1]);
}

Array gammainc(const Array& a, const Array& x) {
  const Arrays in = promote_args_inexact("gammainc", {a, x});
  return lax::igamma(in[0], in[1]);
}

Array gammaincc(const Array& a, const Array& x) {
  const Arrays in = promote_args_inexact("gammaincc", {a, x});
  return lax::igammac(in[0], in[1]);
}

Array multigammaln(const Array& a, int64_t d) {
  const Arrays in = promote_args_inexact("multigammaln", {a, Array(d)});
  Array total = lax::full(in[0].shape(), 0.25 * static_cast<double>(d) * static_cast<double>(d - 1) * std::log(pi),
                          in[0].dtype());
  Array sum_of_logs;
  for (int64_t i = 0; i < d; ++i) {
    const Array term = lax::lgamma(in[0] - constant(in[0], static_cast<double>(i) / 2));
    sum_of_logs = sum_of_logs.defined() ? sum_of_logs + term : term;
  }
  return sum_of_logs.defined() ? sum_of_logs + total : total;
}

Array factorial(const Array& n) {
  const Array in = promote_inexact("factorial", n);
  Array is_less = in < 0;
  return where(is_less, 0, lax::exp(lax::lgamma(in + 1)));
}

Array poch(const Array& z, const Array& m) {
  static const auto function = [] {
    auto f = custom_jvp(
        [](Array a, Array b) {
          Array is_equal = b == 0.0, typed_constant_a = typed_constant(a, 1), gamma_value = gamma(a + b);
          return where(is_equal, typed_constant_a, gamma_value / gamma(a));
        },
        "poch");
    f.defjvps(
        [](const Array& tangent, const Array&, const Array& a, const Array& b) {
          Array digamma_value = lax::digamma(a + b), difference = digamma_value - lax::digamma(a);
          return difference * poch(a, b) * tangent;
        },
        [](const Array& tangent, const Array&, const Array& a, const Array& b) {
          Array digamma_value_lax = lax::digamma(a + b);
          return digamma_value_lax * poch(a, b) * tangent;
        });
    return f;
  }();
  const Arrays in = promote_args_inexact("poch", {z, m});
  require_real("poch", in[0]);
  return function(in[0], in[1]);
}

Array comb(const Array& N, const Array& k, const CombOptions& options) {
  const Arrays in = promote_args_inexact("comb", {N, k});
  if (options.repetition) {
    Array is_equal = in[1] == 0, both = is_equal & (in[0] >= 0);
    return where(both, 1.0, comb(in[0] + in[1] - 1, in[1]));
  }
  const Array is_at_most = in[1] <= in[0], both_in = is_at_most & (in[0] >= 0);
  const Array valid = both_in & (in[1] >= 0);
  const Array from = where(valid, in[0], 0.0), taken = where(valid, in[1], 0.0);
  const Array log_gamma = lax::lgamma(from + 1), difference = log_gamma - lax::lgamma(taken + 1);
  const Array logarithm = difference - lax::lgamma(from + 1 - taken);
  return where(valid, lax::exp(logarithm), 0.0);
}

Array beta(const Array& a, const Array& b) {
  const Arrays in = promote_args_inexact("beta", {a, b});
  require_real("beta", in[0]);
  Array gammasgn_in = gammasgn(in[0]), product = gammasgn_in * gammasgn(in[1]);
  Array product_in = product * gammasgn(in[0] + in[1]);
  return product_in * lax::exp(betaln(in[0], in[1]));
}

Array betaln(const Array& a, const Array& b) {
  const Arrays in = promote_args_inexact("betaln", {a, b});
  const Array low = lax::min(in[0], in[1]), high = lax::max(in[0], in[1]);
  const Array log_gamma = lax::lgamma(low), log_gamma_high = lax::lgamma(high);
  const Array direct = log_gamma + (log_gamma_high - lax::lgamma(low + high));
  Array is_less = high < 8, log_gamma_low = lax::lgamma(low);
  return where(is_less, direct, log_gamma_low + log_gamma_ratio(low, high));
}

Array betainc(const Array& a, const Array& b, const Array& x) {
  const Arrays in = promote_args_inexact("betainc", {a, b, x});
  require_real("betainc", in[2]);
  return lax::betainc(in[0], in[1], in[2]);
}

Array logit(const Array& x) {
  static const auto function = [] {
    auto f = custom_jvp([](Array in) { return lax::log(lax::div(in, constant(in, 1) - in)); }, "logit");
    f.defjvps([](const Array& tangent, const Array&, const Array& in) {
      return lax::div(tangent, in * (constant(in, 1) - in));
    });
    return f;
  }();
  return function(promote_inexact("logit", x));
}

Array expit(const Array& x) { return lax::logistic(promote_inexact("expit", x)); }

Array xlogy(const Array& x, const Array& y) {
  static const auto function = [] {
    auto f = custom_jvp([](Array a, Array b) { return times_logarithm(a, b, lax::log); }, "xlogy");
    f.defjvp([](const Pair& primals, const Pair& tangents) {
      const auto& [a, b] = primals;
      const Array result = xlogy(a, b);
      const Array product = std::get<0>(tangents) * lax::log(b);
      const Array tangent = product + std::get<1>(tangents) * a / b;
      return Pair(result, lax::convert_element_type(tangent, result.dtype(), result.weak_type()));
    });
    return f;
  }();
  const Arrays in = promote_args_inexact("xlogy", {x, y});
  return function(in[0], in[1]);
}

Array xlog1py(const Array& x, const Array& y) {
  static const auto function = [] {
    auto f = custom_jvp([](Array a, Array b) { return times_logarithm(a, b, lax::log1p); }, "xlog1py");
    f.defjvp([](const Pair& primals, const Pair& tangents) {
      const auto& [a, b] = primals;
      const Array result = xlog1py(a, b);
      const Array product = std::get<0>(tangents) * lax::log1p(b), product_tangents = std::get<1>(tangents) * a;
      const Array tangent = product + product_tangents / (1 + b);
      return Pair(result, lax::convert_element_type(tangent, result.dtype(), result.weak_type()));
    });
    return f;
  }();
  const Arrays in = promote_args_inexact("xlog1py", {x, y});
  return function(in[0], in[1]);
}

Array entr(const Array& x) {
  const Array in = promote_inexact("entr", x);
  require_real("entr", in);
  Array is_less = lax::lt(in, constant(in, 0)), filled = lax::full_like(in, -infinity);
  return lax::select(is_less, filled, -x_log_x(in));
}

Array rel_entr(const Array& p, const Array& q) {
  const Arrays in = promote_args_inexact("rel_entr", {p, q});
  require_real("rel_entr", in[0]);
  const Array zero = constant(in[0], 0);
  const Array is_greater = in[0] > zero;
  const Array both_positive = is_greater & (in[1] > zero);
  const Array safe_p = where(both_positive, in[0], 1), safe_q = where(both_positive, in[1], 1);
  const Array x_log_x_safe_p = x_log_x(safe_p);
  const Array logarithms = x_log_x_safe_p - xlogy(safe_p, safe_q);
  Array is_equal = in[0] == zero;
  return where(both_positive, logarithms, where(is_equal & (in[1] >= zero), zero, infinity));
}

Array kl_div(const Array& p, const Array& q) {
  const Arrays in = promote_args_inexact("kl_div", {p, q});
  require_real("kl_div", in[0]);
  return rel_entr(in[0], in[1]) - in[0] + in[1];
}

Array boxcox(const Array& x, const Array& lmbda) {
  const Arrays in = promote_args_inexact("boxcox", {x, lmbda});
  return power_transform(lax::log(in[0]), in[1]);
}

Array boxcox1p(const Array& x, const Array& lmbda) {
  const Arrays in = promote_args_inexact("boxcox1p", {x, lmbda});
  return power_transform(lax::log1p(in[0]), in[1]);
}

}  // namespace capibara::jax::scipy::special
