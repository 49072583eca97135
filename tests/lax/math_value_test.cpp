// The math templates over a value of two lanes, which shows that they never branch on a value.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>

#include "lax/math/math.h"

namespace lanes {

// No conversion to bool: an `if` on a value would not compile.
struct Mask {
  std::array<bool, 2> lane;
};
Mask logical_and(Mask a, Mask b) { return {{a.lane[0] && b.lane[0], a.lane[1] && b.lane[1]}}; }
Mask logical_or(Mask a, Mask b) { return {{a.lane[0] || b.lane[0], a.lane[1] || b.lane[1]}}; }
Mask logical_not(Mask a) { return {{!a.lane[0], !a.lane[1]}}; }

struct Value {
  std::array<double, 2> lane;
};
Value operator+(Value a, Value b) { return {{a.lane[0] + b.lane[0], a.lane[1] + b.lane[1]}}; }
Value operator-(Value a, Value b) { return {{a.lane[0] - b.lane[0], a.lane[1] - b.lane[1]}}; }
Value operator*(Value a, Value b) { return {{a.lane[0] * b.lane[0], a.lane[1] * b.lane[1]}}; }
Value operator/(Value a, Value b) { return {{a.lane[0] / b.lane[0], a.lane[1] / b.lane[1]}}; }
Value operator-(Value a) { return {{-a.lane[0], -a.lane[1]}}; }

}  // namespace lanes

namespace capibara::math {

template <>
struct Operations<lanes::Value> {
  using V = lanes::Value;
  using Condition = lanes::Mask;
  using Scalar = Operations<double>;

  static bool is_double(const V&) { return true; }
  static V constant(double value, const V&) { return {{value, value}}; }
  static V select(Condition c, V yes, V no) {
    return {{c.lane[0] ? yes.lane[0] : no.lane[0], c.lane[1] ? yes.lane[1] : no.lane[1]}};
  }
  static V multiply_add(V x, V y, V z) {
    return {{std::fma(x.lane[0], y.lane[0], z.lane[0]), std::fma(x.lane[1], y.lane[1], z.lane[1])}};
  }
  static Condition is_finite(V x) { return {{std::isfinite(x.lane[0]), std::isfinite(x.lane[1])}}; }

#define UNARY(name) \
  static V name(V x) { return {{Scalar::name(x.lane[0]), Scalar::name(x.lane[1])}}; }
#define BINARY(name) \
  static V name(V x, V y) { return {{Scalar::name(x.lane[0], y.lane[0]), Scalar::name(x.lane[1], y.lane[1])}}; }
#define COMPARE(name) \
  static Condition name(V x, V y) { return {{Scalar::name(x.lane[0], y.lane[0]), Scalar::name(x.lane[1], y.lane[1])}}; }
  // clang-format off
  UNARY(abs) UNARY(exp) UNARY(expm1) UNARY(log) UNARY(log1p) UNARY(tanh) UNARY(sin) UNARY(cos) UNARY(tan) UNARY(sqrt)
  UNARY(rsqrt) UNARY(cbrt) UNARY(floor) UNARY(ceil) UNARY(round) UNARY(round_nearest_even) UNARY(erf)
  BINARY(atan2) BINARY(pow) BINARY(rem) BINARY(copysign) BINARY(maximum) BINARY(minimum)
  COMPARE(lt) COMPARE(le) COMPARE(gt) COMPARE(ge) COMPARE(eq) COMPARE(ne)
  // clang-format on
#undef UNARY
#undef BINARY
#undef COMPARE

                  static Condition pick(Condition c, Condition yes, Condition no) {
    return {{c.lane[0] ? yes.lane[0] : no.lane[0], c.lane[1] ? yes.lane[1] : no.lane[1]}};
  }
  static V pick(Condition c, V yes, V no) { return select(c, yes, no); }

  template <class Other>
  static V rarely(Condition c, V value, Other&& other) {
    return select(c, other(), value);
  }

  // As for arrays: iterates while any lane continues, and stopped lanes keep their state.
  template <class... S, class While, class Body>
  static std::tuple<S...> iterate(std::tuple<S...> state, While&& goes_on, Body&& body) {
    for (;;) {
      Condition active = std::apply(goes_on, state);
      if (!active.lane[0] && !active.lane[1]) return state;
      std::tuple<S...> next = std::apply(body, state);
      [&]<std::size_t... i>(std::index_sequence<i...>) {
        ((std::get<i>(state) = pick(active, std::get<i>(next), std::get<i>(state))), ...);
      }
      (std::index_sequence_for<S...>{});
    }
  }
};

namespace {

using lanes::Value;

template <class Function>
void expect_lanes_agree(const char* name, Function function, double x, double y) {
  Value both = function(Value{{x, y}});
  double first = function(x), second = function(y);
  EXPECT_TRUE(both.lane[0] == first || (std::isnan(both.lane[0]) && std::isnan(first))) << name << " at " << x;
  EXPECT_TRUE(both.lane[1] == second || (std::isnan(both.lane[1]) && std::isnan(second))) << name << " at " << y;
}

template <class V>
V part_sum(Complex<V> z) {
  return z.real + constant(3, z.real) * z.imag;
}

TEST(MathValue, EveryTemplateGivesEachLaneItsOwnResult) {
  const double points[][2] = {{0.3, 0.9}, {-0.7, 2.5}, {-2.5, 40.0}, {0.0, -1.0}, {1e10, 1e-10}};
  for (auto [x, y] : points) {
#define LANES(expression) \
  expect_lanes_agree(     \
      #expression, [](auto v) { return expression; }, x, y)
    LANES(logistic(v));
    LANES(sign(v));
    LANES(asin(v));
    LANES(acosh(v));
    LANES(sinh(v));
    LANES(atanh(v));
    LANES(erf(v));
    LANES(erfc(v));
    LANES(erf_inv(v));
    LANES(lgamma(v));
    LANES(digamma(v));
    LANES(bessel_i0e(v));
    LANES(bessel_i1e(v));
    LANES(zeta(constant(2.5, v), v));
    LANES(polygamma(constant(2, v), v));
    LANES(igamma(constant(1.5, v), v));
    LANES(igammac(v, constant(3.5, v)));
    LANES(igamma_grad_a(constant(2.5, v), v));
    LANES(random_gamma_grad(constant(2.5, v), v));
    LANES(regularized_incomplete_beta(constant(1.5, v), constant(2.5, v), v));
    LANES(integer_pow(v, -5, constant(1, v)));
    LANES(part_sum(sqrt(Complex{v, constant(2, v)})));
    LANES(part_sum(log(Complex{v, constant(2, v)})));
    LANES(part_sum(log1p(Complex{v, constant(2, v)})));
    LANES(part_sum(asin(Complex{v, constant(2, v)})));
    LANES(part_sum(atanh(Complex{v, constant(2, v)})));
    LANES(part_sum(tan(Complex{v, constant(2, v)})));
    LANES(part_sum(pow(Complex{v, constant(2, v)}, Complex{constant(2, v), v})));
    LANES(part_sum(Complex{v, constant(2, v)} / Complex{constant(2, v), v}));
    LANES(part_sum(maximum(Complex{v, constant(2, v)}, Complex{constant(0.5, v), v})));
#undef LANES
  }
}

}  // namespace
}  // namespace capibara::math
