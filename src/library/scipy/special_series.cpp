// jax.scipy.special: zeta and Bernoulli numbers, Bessel functions, spherical harmonics.
#include <capibara/control.h>
#include <capibara/custom_derivatives.h>
#include <capibara/scipy/special.h>
#include <capibara/transforms.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "library/nn/terms.h"

namespace capibara::jax::scipy::special {

using namespace terms;

namespace {

// The Euler-Maclaurin sum for zeta(s, a), differentiable in both arguments.
Array zeta_series(const Array& s, const Array& a) {
  // (2 k)! / B(2 k)
  constexpr std::array<double, 16> coefficients = {12,
                                                   -720,
                                                   30240,
                                                   -1209600,
                                                   47900160,
                                                   -1307674368000.0 / 691,
                                                   74724249600,
                                                   -10670622842880000.0 / 3617,
                                                   5109094217170944000.0 / 43867,
                                                   -802857662698291200000.0 / 174611,
                                                   14101100039391805440000.0 / 77683,
                                                   -1693824136731743669452800000.0 / 236364091,
                                                   186134520519971831808000000.0 / 657931,
                                                   -37893265687455865519472640000000.0 / 3392780147,
                                                   759790291646040068357842010112000000.0 / 1723168255201,
                                                   -134196726836183700385281186201600000000.0 / 7709321041217};
  const int terms = a.dtype() == DType::float32 ? 8 : 16;
  const Arrays both = broadcast_arrays("zeta", {s, a});
  const Array &x = both[0], &q = both[1];
  auto power = [](const Array& base, const Array& exponent) { return lax::pow(base, exponent); };
  Array head;
  for (int k = 0; k < terms; ++k) {
    const Array sum = q + typed_constant(q, k);
    const Array term = power(sum, -x);
    head = head.defined() ? head + term : term;
  }
  const Array end = q + typed_constant(q, terms);
  const Array power_end = power(end, typed_constant(x, 1) - x);
  const Array integral = lax::div(power_end, x - typed_constant(x, 1));
  Array product, series = typed_constant(q, 0.5);
  for (int m = 0; m < 2 * terms; ++m) {
    const Array factor = (x + typed_constant(x, m)) / end;
    product = product.defined() ? product * factor : factor;
    if (m % 2 != 0) continue;
    const Array clipped = lax::min(typed_constant(q, finfo(q.dtype()).max), product);
    series = series + clipped / typed_constant(q, coefficients[static_cast<std::size_t>(m / 2)]);
  }
  Array sum_head = head + integral;
  return sum_head + power(end, -x) * series;
}

// Normalised associated Legendre functions of x: entry [m][l], each of the shape of x.
std::vector<Arrays> legendre_functions(int64_t l_max, const Array& x) {
  const std::size_t count = static_cast<std::size_t>(l_max) + 1;
  std::vector<Arrays> p(count, Arrays(count, lax::zeros_like(x)));
  const Array sine = lax::sqrt(1.0 - x * x);
  Array diagonal_power = lax::full_like(x, 1);
  double factor = 0.5 / std::sqrt(pi);
  for (std::size_t m = 0; m < count; ++m) {
    const double order = static_cast<double>(m);
    if (m > 0) {
      factor *= -std::sqrt(1 + 0.5 / order);
      diagonal_power = diagonal_power * sine;
    }
    p[m][m] = factor * diagonal_power;
    if (m + 1 < count) p[m][m + 1] = std::sqrt(2 * order + 3) * x * p[m][m];
    for (std::size_t l = m + 2; l < count; ++l) {
      const double degree = static_cast<double>(l), gap = degree * degree - order * order;
      const double first = std::sqrt((4 * degree * degree - 1) / gap);
      const double second =
          std::sqrt((2 * degree + 1) * ((degree - 1) * (degree - 1) - order * order) / ((2 * degree - 3) * gap));
      Array product = first * (x * p[m][l - 1]);
      p[m][l] = product - second * p[m][l - 2];
    }
  }
  return p;
}

}  // namespace

Array zeta(const Array& x, const Array& q) {
  using Two = std::tuple<Array, Array>;
  static const auto function = [] {
    auto f = custom_jvp([](Array s, Array a) { return lax::zeta(s, a); }, "zeta");
    f.defjvp([](const Two& primals, const Two& tangents) {
      const auto [value, tangent] = jvp([](Array s, Array a) { return zeta_series(s, a); }, primals, tangents);
      return Two(value, tangent);
    });
    return f;
  }();
  const Arrays in = promote_args_inexact("zeta", {x, q});
  return function(in[0], in[1]);
}

// From zeta(2 k): B(2 k) = 2 (-1)^(k + 1) (2 k)! / (2 pi)^(2 k) zeta(2 k).
Array bernoulli(int64_t n) {
  if (n < 0) throw ValueError(concat("bernoulli: n must not be negative, got ", n));
  std::vector<double> numbers(static_cast<std::size_t>(n) + 1, 0);
  constexpr std::array<double, 3> first = {1, -0.5, 1.0 / 6};
  for (std::size_t i = 0; i < std::min(numbers.size(), first.size()); ++i) numbers[i] = first[i];
  double scale = 1 / (pi * pi);
  for (std::size_t m = 4; m < numbers.size(); m += 2) {
    const double even = static_cast<double>(m);
    scale *= -(even - 1) * even / (4 * pi * pi);
    double tail = 0;
    for (int k = 2; k < 50; ++k) tail += std::pow(k, -even);
    numbers[m] = scale * (1 + tail);
  }
  return lax::convert_element_type(array(numbers), default_float(), false);
}

Array i0e(const Array& x) { return lax::bessel_i0e(promote_inexact("i0e", x)); }
Array i1e(const Array& x) { return lax::bessel_i1e(promote_inexact("i1e", x)); }

Array i0(const Array& x) {
  const Array in = promote_inexact("i0", x);
  Array exponential = lax::exp(lax::abs(in));
  return lax::mul(exponential, lax::bessel_i0e(in));
}

Array i1(const Array& x) {
  const Array in = promote_inexact("i1", x);
  Array exponential = lax::exp(lax::abs(in));
  return lax::mul(exponential, lax::bessel_i1e(in));
}

// Miller's downward recurrence, normalised by J0 + 2 J2 + 2 J4 + ... = 1.
Array bessel_jn(const Array& z, const BesselOptions& options) {
  const Array in = promote_inexact("bessel_jn", z), x = lax::convert_element_type(in, in.dtype(), false);
  if (is_complex(x.dtype())) throw TypeError(concat("bessel_jn: a real z is needed, got ", to_string(z.type())));
  using Carry = std::tuple<Array, Array, Array>;  // J(k + 2), J(k + 1), the sum
  const auto step = [&](const Carry& carry, const Array& k) {
    const auto& [above, last, total] = carry;
    const Array value = 2.0 * (k + 1.0) * last / x - above;
    Array is_equal = k % 2 == 0;
    return std::pair(Carry(last, value, where(is_equal, total + 2.0 * value, total)), value);
  };
  Array filled = lax::full(x.shape(), 0, x.dtype()), filled_x = lax::full(x.shape(), 1e-16, x.dtype());
  const Carry start(filled, filled_x, lax::full(x.shape(), 0, x.dtype()));
  const auto [end, values] =
      lax::scan(step, start, lax::iota(x.dtype(), options.n_iter + 1), {.length = std::nullopt, .reverse = true});
  const Array lowest = lax::index_in_dim(values, 0, 0, false);
  const int64_t orders = std::clamp<int64_t>(options.v + 1, 0, options.n_iter + 1);
  Array slice_in_dim_values = lax::slice_in_dim(values, 0, orders);
  return slice_in_dim_values / (std::get<2>(end) - lowest);
}

Array sph_harm_y(const Array& n, const Array& m, const Array& theta, const Array& phi, const HarmonicOptions& options) {
  int64_t n_max = 0;
  if (options.n_max) {
    n_max = *options.n_max;
  } else {
    const std::vector<int64_t> degrees = n.to_vector<int64_t>();
    if (degrees.empty()) throw ValueError("sph_harm_y: n must not be empty");
    n_max = *std::max_element(degrees.begin(), degrees.end());
  }
  if (n.ndim() == 0) throw TypeError("sph_harm_y: n must have an axis, got a scalar");
  const Array polar = promote_inexact("sph_harm_y", theta.ndim() == 0 ? lax::reshape(theta, {1}) : theta);
  const Array order = lax::abs(m), cosine = lax::cos(polar);
  Arrays rows;
  for (const Arrays& row : legendre_functions(n_max, cosine)) rows.push_back(lax::stack(row, 0));
  const Array table = lax::stack(rows, 0);  // [order, degree, point]
  GetOptions clipped;
  clipped.mode = "clip";
  const Array values = table.at(order, n, lax::iota(default_int(), n.shape(0))).get(clipped);
  const Array angle = order * phi;
  const Arrays parts = promote_dtypes_inexact({values * lax::cos(angle), values * lax::sin(angle)});
  const Array harmonics = lax::complex(parts[0], parts[1]);
  const Array is_equal = order % 2 == 0, constant_values = constant(values, 1);
  const Array sign = where(is_equal, constant_values, constant(values, -1));
  Array is_less = m < 0;
  return where(is_less, sign * lax::conj(harmonics), harmonics);
}

}  // namespace capibara::jax::scipy::special
