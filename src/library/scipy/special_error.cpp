// jax.scipy.special: the error functions and the normal distribution; approximations by Cephes, Weideman and Owen.
#include <capibara/custom_derivatives.h>
#include <capibara/scipy/special.h>

#include <array>
#include <cmath>

#include "library/nn/terms.h"

namespace capibara::jax::scipy::special {

using namespace terms;

namespace {

const double root_of_pi = std::sqrt(pi);

// Computes in at least 32 bits and converts the result back.
Array in_single_or_double(const Array& x, Array (*function)(const Array&)) {
  if (x.dtype() == DType::float32 || x.dtype() == DType::float64) return function(x);
  return lax::convert_element_type(function(lax::convert_element_type(x, DType::float32, false)), x.dtype(), false);
}

void require_single_or_double(const char* name, const Array& x) {
  if (x.dtype() == DType::float32 || x.dtype() == DType::float64) return;
  throw TypeError(concat(name, ": float32 or float64 is needed, got ", to_string(x.type())));
}

// exp(x^2) erfc(x) directly, and by its asymptotic series where the factors are out of range.
Array scaled_complement(const Array& x) {
  const bool is_double = x.dtype() == DType::float64;
  const Array large = x > constant(x, std::sqrt(std::log(finfo(x.dtype()).max)));
  const Array safe = lax::select(large, lax::full_like(x, 1), x);
  const Array exponential = lax::exp(lax::square(safe));
  const Array direct = exponential * lax::erfc(safe);
  const Array constant_x = constant(x, 1);
  const Array t = constant_x / lax::square(x);
  const Array series =
      is_double ? polynomial(t, {7918.06640625, -1055.7421875, 162.421875, -29.53125, 6.5625, -1.875, 0.75, -0.5, 1.0})
                : polynomial(t, {6.5625, -1.875, 0.75, -0.5, 1.0});
  return lax::select(large, series / (x * constant(x, root_of_pi)), direct);
}

Array real_erfcx(const Array& x) {
  static const auto function = [] {
    auto f = custom_jvp([](Array in) { return in_single_or_double(in, scaled_complement); }, "_erfcx");
    f.defjvps([](const Array& tangent, const Array& result, const Array& in) {
      Array product = 2 * in * result;
      return tangent * (product - constant(in, 2 / root_of_pi));
    });
    return f;
  }();
  return function(x);
}

Array imaginary_times(const Array& z) {
  Array negated = -lax::imag(z);
  return lax::complex(negated, lax::real(z));
}

// Weideman's rational series with 32 terms, for the upper half plane.
Array faddeeva_above(const Array& z) {
  const Array part = lax::real(z), zero = constant(part, 0);
  const Array iz = imaginary_times(z);
  const Array length = lax::complex(constant(part, 4.756828460010884), zero);
  const Array denominator = length - iz;
  const Array series =
      polynomial((length + iz) / denominator,
                 {-1.3034426067909105e-12, 3.741183837373847e-12,   8.030427700497756e-12,  -2.154359355749088e-11,
                  -5.544244996323793e-11,  1.165824698850374e-10,   4.1537441121999766e-10, -5.231020211492061e-10,
                  -3.2080151339721323e-09, 8.124886421653591e-10,   2.3797556530014025e-08, 2.2930438438915445e-08,
                  -1.4813078929137642e-07, -4.1840763750512053e-07, 4.2558331397138446e-07, 4.401531731283225e-06,
                  6.821031944357515e-06,   -2.1409619201999998e-05, -0.0001307544925457942, -0.00024532980270038237,
                  0.00039259136070109705,  0.004519541105349309,    0.0190061557848455,     0.05730440352983728,
                  0.14060716226893755,     0.2954445107150874,      0.5460139720639338,     0.9019254893648001,
                  1.345544169234545,       1.8256696296324815,      2.2635372999002676,     2.5722534081245696});
  const Array limit = lax::complex(constant(part, 1 / root_of_pi), zero);
  Array product = 2 * series, quotient = product / (denominator * denominator);
  return quotient + limit / denominator;
}

Array faddeeva(const Array& z) {
  static const auto function = [] {
    auto f = custom_jvp(
        [](Array in) {
          const Array imaginary_part = lax::imag(in);
          const Array above = lax::ge(imaginary_part, constant(lax::real(in), 0));
          const Array value = faddeeva_above(lax::select(above, in, -in));
          return lax::select(above, value, 2 * lax::exp(-(in * in)) - value);
        },
        "_wofz");
    f.defjvps([](const Array& tangent, const Array& result, const Array& in) {
      const Array part = lax::real(in);
      Array negated = -(2 * in * result), constant_part = constant(part, 0);
      return tangent * (negated + lax::complex(constant_part, constant(part, 2 / root_of_pi)));
    });
    return f;
  }();
  return function(z);
}

// Rational functions on three intervals, as in Cephes.
Array dawson_integral(const Array& x) {
  const Array size = lax::abs(x), constant_x = constant(x, 1), inverse_square = constant_x / lax::square(size);
  const Array near = size < constant(x, 3.25), far = size >= constant(x, 6.25), one = lax::full_like(x, 1);
  const Array is_at_least = size >= constant(x, 3.25);
  const Array between = is_at_least & (size < constant(x, 6.25));

  const Array a = lax::select(near, size, one), aa = lax::square(a);
  const Array product =
      a * polynomial(aa, {1.13681498971755972054e-11, 8.49262267667473811108e-10, 1.94434204175553054283e-8,
                          9.53151741254484363489e-7, 3.07828309874913200438e-6, 3.52513368520288738649e-4,
                          -8.50149846724410912031e-4, 4.22618223005546594270e-2, -9.17480371773452345351e-2, 1.0});
  const Array near_value =
      product / polynomial(aa, {2.40372073066762605484e-11, 1.48864681368493396752e-9, 5.21265281010541664570e-8,
                                1.27258478273186970203e-6, 2.32490249820789513991e-5, 3.25524741826057911661e-4,
                                3.48805814657162590916e-3, 2.79448531198828973716e-2, 1.58874241960120565368e-1,
                                5.74918629489320327824e-1, 1.0});

  auto beyond = [&](const Array& inside, auto numerator, auto denominator) {
    const Array t = lax::select(inside, inverse_square, one), s = lax::select(inside, size, one);
    Array quotient = constant(x, 0.5) / s, constant_value = constant(x, 1);
    return quotient * (constant_value + t * numerator(t) / denominator(t));
  };
  const Array middle_value = beyond(
      between,
      [](const Array& t) {
        return polynomial(t, {5.08955156417900903354e-1, -2.44754418142697847934e-1, 9.41512335303534411857e-2,
                              -2.18711255142039025206e-2, 3.66207612329569181322e-3, -4.23209114460388756528e-4,
                              3.59641304793896631888e-5, -2.14640351719968974225e-6, 9.10010780076391431042e-8,
                              -2.40274520828250956942e-9, 3.59233385440928410398e-11});
      },
      [](const Array& t) {
        return polynomial(t, {1.0, -6.31839869873368190192e-1, 2.36706788228248691528e-1, -5.31806367003223277662e-2,
                              8.48041718586295374409e-3, -9.47996768486665330168e-4, 7.81025592944552338085e-5,
                              -4.55875153252442634831e-6, 1.89100358111421846170e-7, -4.91324691331920606875e-9,
                              7.18466403235734541950e-11});
      });
  const Array far_value = beyond(
      far,
      [](const Array& t) {
        return polynomial(t, {-5.90592860534773254987e-1, 6.29235242724368800674e-1, -1.72858975380388136411e-1,
                              1.64837047825189632310e-2, -4.86827613020462700845e-4});
      },
      [](const Array& t) {
        return polynomial(t, {1.0, -2.69820057197544900361, 1.73270799045947845857, -3.93708582281939493482e-1,
                              3.44278924041233391079e-2, -9.73655226040941223894e-4});
      });
  const Array value = lax::select(near, near_value, lax::select(size < constant(x, 6.25), middle_value, far_value));
  return lax::sign(x) * value;
}

Array normal_distribution(const Array& x) {
  const Array half_root = typed_constant(x, 0.5 * std::sqrt(2.0));
  const Array w = x * half_root, size = lax::abs(w);
  const Array tail = lax::erfc(size);
  const Array is_less = lax::lt(size, half_root), typed_constant_x = typed_constant(x, 1);
  const Array sum = typed_constant_x + lax::erf(w), is_greater = lax::gt(w, typed_constant(x, 0));
  const Array doubled = where(is_less, sum, where(is_greater, typed_constant(x, 2) - tail, tail));
  return typed_constant(x, 0.5) * doubled;
}

// The asymptotic series of log(ndtr) far below zero.
Array log_ndtr_below(const Array& x, int64_t order) {
  const Array squared = lax::square(x);
  const Array product = typed_constant(x, -0.5) * squared, difference = product - lax::log(-x);
  const Array scale = difference - typed_constant(x, 0.5 * std::log(2 * pi));
  Array even = lax::zeros_like(x), odd = even, power = squared;
  double double_factorial = 1;
  for (int64_t n = 1; n <= order; ++n) {
    double_factorial *= static_cast<double>(2 * n - 1);
    const Array term = typed_constant(x, double_factorial) / power;
    (n % 2 ? odd : even) = (n % 2 ? odd : even) + term;
    power = power * squared;
  }
  return scale + lax::log(typed_constant(x, 1) + even - odd);
}

Array log_normal_distribution(const Array& x, int64_t order) {
  const bool is_double = x.dtype() == DType::float64;
  const Array lower = typed_constant(x, is_double ? -20 : -10), upper = typed_constant(x, is_double ? 8 : 5);
  const Array high = lax::gt(x, upper);
  const Array negated = -x;
  const Array value = normal_distribution(where(high, negated, lax::max(x, lower)));
  const Array below = log_ndtr_below(lax::min(x, lower), order);
  Array first_negated = -value, is_greater = lax::gt(x, lower);
  return where(high, first_negated, where(is_greater, lax::log(value), below));
}

// Owen's integral over [0, a] for a <= 1, by a Gauss rule with 13 nodes in r = t^2.
Array owen_quadrature(const Array& h, const Array& a) {
  constexpr std::array<double, 13> nodes = {
      0.0035082039676451716, 0.031279042338030756, 0.08526682628321945, 0.16245071730812277, 0.25851196049125436,
      0.3680755384069753,    0.485010929056047,    0.6027751415261857,  0.7147788421775323,  0.814755109887601,
      0.8971102975594897,    0.9572380808594426,   0.991788329746297};
  constexpr std::array<double, 13> weights = {
      0.018831438115323503, 0.01856708624397765,   0.018042093461223385, 0.017263829606398752, 0.016243219975989858,
      0.014994592034116705, 0.013535474469662087,  0.011886351605820165, 0.010070377242777432, 0.008113054574229958,
      0.006041900952847024, 0.0038862217010742057, 0.001679303108454609};
  Array total;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Array r = 1.0 + lax::square(a) * nodes[i];
    const Array typed_constant_h = typed_constant(h, weights[i]);
    const Array term = typed_constant_h * (lax::exp(-0.5 * lax::square(h) * r) / r);
    total = total.defined() ? total + term : term;
  }
  return a * total;
}

// Beyond a = 1 by T(h, a) = ... - T(a h, 1 / a).
Array owen(const Array& signed_h, const Array& a) {
  const Array h = lax::abs(signed_h), size = lax::abs(a), root = constant(h, std::sqrt(2.0));
  const Array within = size <= 1.0;
  const Array inner_a = where(within, size, 1 / size), inner_h = where(within, h, size * h);
  Array result = owen_quadrature(inner_h, inner_a);
  Array is_equal = inner_h == 0.0;
  result = where(is_equal, lax::atan(inner_a) / (2 * pi), result);
  Array is_equal_inner_a = inner_a == 1.0, product = 0.125 * lax::erfc(-inner_h / root);
  result = where(is_equal_inner_a, product * lax::erfc(inner_h / root), result);
  const Array scaled = h / root, tail = lax::erfc(scaled), scaled_tail = lax::erfc(size * scaled);
  const Array product_scaled = 0.25 * lax::erf(scaled);
  const Array near = 0.25 - product_scaled * lax::erf(size * scaled) - result;
  const Array sum = tail + scaled_tail;
  const Array far = 0.25 * (sum - tail * scaled_tail) - result;
  Array is_greater = size > 1.0;
  result = where(is_greater, where(size * h <= 0.67, near, far), result);
  result = lax::sign(a) * result;
  Array is_nan = isnan(a), either = is_nan | isnan(h);
  return where(either, constant(result, not_a_number), result);
}

}  // namespace

Array erf(const Array& x) { return lax::erf(promote_inexact("erf", x)); }
Array erfc(const Array& x) { return lax::erfc(promote_inexact("erfc", x)); }
Array erfinv(const Array& x) { return lax::erf_inv(promote_inexact("erfinv", x)); }

Array erfcx(const Array& x) {
  const Array in = promote_inexact("erfcx", x);
  return is_complex(in.dtype()) ? faddeeva(imaginary_times(in)) : real_erfcx(in);
}

Array wofz(const Array& z) {
  const Array in = promote_inexact("wofz", z);
  return faddeeva(lax::convert_element_type(in, complex_dtype(in.dtype()), in.weak_type()));
}

Array dawsn(const Array& x) {
  static const auto function = [] {
    auto f = custom_jvp([](Array in) { return in_single_or_double(in, dawson_integral); }, "_dawsn");
    f.defjvps([](const Array& tangent, const Array& result, const Array& in) {
      Array constant_in = constant(in, 1);
      return tangent * (constant_in - constant(in, 2) * in * result);
    });
    return f;
  }();
  const Array in = promote_inexact("dawsn", x);
  require_real("dawsn", in);
  return function(in);
}

Array ndtr(const Array& x) {
  require_single_or_double("ndtr", x);
  return normal_distribution(x);
}

Array log_ndtr(const Array& x, const LogNdtrOptions& options) {
  const int64_t order = options.series_order;
  if (order < 0 || order > 30) {
    throw ValueError(concat("log_ndtr: series_order must be in 0..30, got ", order));
  }
  require_single_or_double("log_ndtr", x);
  auto function = custom_jvp([order](Array in) { return log_normal_distribution(in, order); }, "log_ndtr");
  function.defjvp([options](const std::tuple<Array>& primals, const std::tuple<Array>& tangents) {
    const Array& in = std::get<0>(primals);
    const Array result = log_ndtr(in, options);
    const Array constant_in = constant(in, -0.5), product = constant_in * lax::square(in);
    const Array log_density = product - constant(in, std::log(std::sqrt(2 * pi)));
    return std::tuple<Array, Array>(result, std::get<0>(tangents) * lax::exp(log_density - result));
  });
  return function(x);
}

// Rational approximations of Cephes: around 1/2, and in sqrt(-2 log p) for the tails.
Array ndtri(const Array& p) {
  require_single_or_double("ndtri", p);
  auto number = [&](double value) { return typed_constant(p, value); };
  const Array upper = p > number(-std::expm1(-2.0));
  const Array tail = where(upper, number(1) - p, p);
  const Array is_equal = tail == number(0);
  const Array safe = where(is_equal, number(0.5), tail);

  const Array w = safe - number(0.5), ww = lax::square(w);
  const Array polynomial_ww =
      polynomial(ww, {-5.99633501014107895267e1, 9.80010754185999661536e1, -5.66762857469070293439e1,
                      1.39312609387279679503e1, -1.23916583867381258016e0});
  const Array ratio =
      polynomial_ww / polynomial(ww, {1.0, 1.95448858338141759834e0, 4.67627912898881538453e0, 8.63602421390890590575e1,
                                      -2.25462687854119370527e2, 2.00260212380060660359e2, -8.20372256168333339912e1,
                                      1.59056225126211695515e1, -1.18331621121330003142e0});
  const Array sum = w + w * ww * ratio;
  const Array central = sum * number(-std::sqrt(2 * pi));

  Array number_value = number(-2);
  const Array z = lax::sqrt(number_value * lax::log(safe)), first = z - lax::log(z) / z, u = 1 / z;
  const Array polynomial_u =
      polynomial(u, {3.23774891776946035970e0, 6.91522889068984211695e0, 3.93881025292474443415e0,
                     1.33303460815807542389e0, 2.01485389549179081538e-1, 1.23716634817820021358e-2,
                     3.01581553508235416007e-4, 2.65806974686737550832e-6, 6.23974539184983293730e-9});
  const Array small = polynomial_u /
                      polynomial(u, {1.0, 6.02427039364742014255e0, 3.67983563856160859403e0, 1.37702099489081330271e0,
                                     2.16236993594496635890e-1, 1.34204006088543189037e-2, 3.28014464682127739104e-4,
                                     2.89247864745380683936e-6, 6.79019408009981274425e-9}) /
                      z;
  const Array polynomial_value =
      polynomial(u, {4.05544892305962419923e0, 3.15251094599893866154e1, 5.71628192246421288162e1,
                     4.40805073893200834700e1, 1.46849561928858024014e1, 2.18663306850790267539e0,
                     -1.40256079171354495875e-1, -3.50424626827848203418e-2, -8.57456785154685413611e-4});
  const Array medium = polynomial_value /
                       polynomial(u, {1.0, 1.57799883256466749731e1, 4.53907635128879210584e1, 4.13172038254672030440e1,
                                      1.50425385692907503408e1, 2.50464946208309415979e0, -1.42182922854787788574e-1,
                                      -3.80806407691578277194e-2, -9.33259480895457427372e-4}) /
                       z;
  Array is_greater = safe > number(std::exp(-2.0)), is_at_least = z >= number(8), difference = first - small;
  Array x = where(is_greater, central, where(is_at_least, difference, first - medium));
  Array is_greater_p = p > number(1 - std::exp(-2.0));
  x = where(is_greater_p, x, -x);
  Array is_equal_p = p == number(0), first_number = number(-infinity), first_is_equal = p == number(1);
  return where(is_equal_p, first_number, where(first_is_equal, number(infinity), x));
}

Array owens_t(const Array& h, const Array& a) {
  using Pair = std::tuple<Array, Array>;
  static const auto function = [] {
    auto f = custom_jvp([](Array x, Array y) { return owen(x, y); }, "_owens_t_impl");
    f.defjvp([](const Pair& primals, const Pair& tangents) {
      const auto& [x, y] = primals;
      const Array result = owens_t(x, y), spread = lax::square(y) + 1.0;
      const Array negated = -lax::exp(-0.5 * lax::square(x)), product = y * x;
      const Array product_x = negated * lax::erf(product / constant(x, std::sqrt(2.0)));
      const Array by_x = product_x / (2.0 * constant(x, std::sqrt(2 * pi)));
      const Array first_product = -0.5 * spread, exponential = lax::exp(first_product * lax::square(x));
      const Array by_y = exponential / (2 * pi * spread);
      const Array product_tangents = by_x * std::get<0>(tangents);
      const Array tangent = product_tangents + by_y * std::get<1>(tangents);
      return Pair(result, lax::convert_element_type(tangent, result.dtype(), result.weak_type()));
    });
    return f;
  }();
  const Arrays in = promote_args_inexact("owens_t", {h, a});
  return function(in[0], in[1]);
}

}  // namespace capibara::jax::scipy::special
