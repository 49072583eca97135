// Exponentials, logarithms, trigonometric and hyperbolic functions.
#include "lax/elementwise/elementwise.h"

#include <cmath>

#include "lax/math/array_value.h"
#include "lax/math/complex_roots.h"

namespace capibara::elementwise {

namespace lax = jax::lax;

namespace {

// jax computes the sine and cosine of complex numbers from real functions: the formula is accurate near zero, which
// is not guaranteed for the StableHLO operation.
LowerRule lower_complex(math::Complex<Array> (*function)(math::Complex<Array>)) {
  return [function](std::span<const Array> in, const Attrs&) -> Arrays {
    if (!is_complex(in[0].dtype())) return {};
    const math::Complex<Array> result = function({lax::real(in[0]), lax::imag(in[0])});
    return {lax::complex(result.real, result.imag)};
  };
}

// g / sqrt(1 - x^2)
Array arc_derivative(const Array& x) {
  const Array one = scalar_like(x, 1);
  return lax::rsqrt(lax::sub(one, lax::square(x)));
}

}  // namespace

Family transcendental_records() {
  Family family;
  const auto add = [&](const char* name, const char* doc, const char* stablehlo, Derivative derivative,
                       SampleRange range = {}) -> PrimitiveRecord& {
    PrimitiveRecord r = record(name, doc, 1, inexact, stablehlo);
    r.traits.cost = Cost::function;
    r.traits.nan_checked = true;
    r.jvp = elementwise_jvp({std::move(derivative)});
    r.samples = sample_calls(1, range);
    return family.emplace_back(std::move(r));
  };

  add("exp", "e to the power x.", "stablehlo.exponential",
      from_output([](const Array& g, const Array& y, const Array&) { return lax::mul(g, y); }));
  {
    PrimitiveRecord& r =
        add("exp2", "2 to the power x.", "", from_output([](const Array& g, const Array& y, const Array& x) {
              const Array log_two = lax::log(scalar_like(x, 2));
              return lax::mul(log_two, lax::mul(g, y));
            }));
    r.traits.nan_checked = false;
    r.lower = [](std::span<const Array> in, const Attrs&) -> Arrays {
      const Array log_two = scalar_of(in[0].dtype(), std::log(2.0));
      return {lax::exp(lax::mul(lax::broadcast_in_dim(log_two, in[0].shape(), {}), in[0]))};
    };
  }
  add("log", "The natural logarithm.", "stablehlo.log",
      from_input([](const Array& g, const Array& x) { return lax::div(g, x); }), {0.1, 4.0});
  add("expm1", "e^x - 1, accurate near zero.", "stablehlo.exponential_minus_one",
      from_output([](const Array& g, const Array& y, const Array&) { return lax::mul(g, lax::add(y, one_of(y))); }));
  add("log1p", "log(1 + x), accurate near zero.", "stablehlo.log_plus_one",
      from_input([](const Array& g, const Array& x) { return lax::div(g, lax::add(x, one_of(x))); }), {-0.8, 3.0});
  add("tanh", "The hyperbolic tangent.", "stablehlo.tanh",
      from_output([](const Array& g, const Array& y, const Array& x) {
        const Array left = lax::add(g, lax::mul(g, y));
        return lax::mul(left, lax::sub(one_of(x), y));
      }));
  add("logistic", "1 / (1 + e^-x).", "stablehlo.logistic",
      from_output([](const Array& g, const Array& y, const Array&) {
        return lax::mul(g, lax::mul(y, lax::sub(one_of(y), y)));
      }));
  add("sin", "The sine.", "stablehlo.sine",
      from_input([](const Array& g, const Array& x) { return lax::mul(g, lax::cos(x)); }))
      .lower = lower_complex(math::sin<Array>);
  add("cos", "The cosine.", "stablehlo.cosine",
      from_input([](const Array& g, const Array& x) { return lax::neg(lax::mul(g, lax::sin(x))); }))
      .lower = lower_complex(math::cos<Array>);
  add("tan", "The tangent.", "stablehlo.tan", from_output([](const Array& g, const Array& y, const Array& x) {
        const Array one = scalar_like(x, 1);
        return lax::mul(g, lax::add(one, lax::square(y)));
      }),
      {-1.2, 1.2});
  add("asin", "The inverse sine.", "chlo.asin",
      from_input([](const Array& g, const Array& x) { return lax::mul(g, arc_derivative(x)); }), {-0.9, 0.9});
  add("acos", "The inverse cosine.", "chlo.acos",
      from_input([](const Array& g, const Array& x) { return lax::mul(g, lax::neg(arc_derivative(x))); }), {-0.9, 0.9});
  add("atan", "The inverse tangent.", "chlo.atan", from_input([](const Array& g, const Array& x) {
        const Array one = scalar_like(x, 1);
        return lax::div(g, lax::add(one, lax::square(x)));
      }));
  add("sinh", "The hyperbolic sine.", "chlo.sinh",
      from_input([](const Array& g, const Array& x) { return lax::mul(g, lax::cosh(x)); }));
  add("cosh", "The hyperbolic cosine.", "chlo.cosh",
      from_input([](const Array& g, const Array& x) { return lax::mul(g, lax::sinh(x)); }));
  add("asinh", "The inverse hyperbolic sine.", "chlo.asinh", from_input([](const Array& g, const Array& x) {
        const Array square = lax::square(x);
        return lax::mul(g, lax::rsqrt(lax::add(square, one_of(x))));
      }));
  add("acosh", "The inverse hyperbolic cosine.", "chlo.acosh", from_input([](const Array& g, const Array& x) {
        const Array square = lax::square(x);
        return lax::mul(g, lax::rsqrt(lax::sub(square, one_of(x))));
      }),
      {1.2, 4.0});
  add("atanh", "The inverse hyperbolic tangent.", "chlo.atanh", from_input([](const Array& g, const Array& x) {
        const Array left = lax::reciprocal(lax::add(one_of(x), x));
        return lax::mul(left, lax::div(g, lax::sub(one_of(x), x)));
      }),
      {-0.9, 0.9});

  PrimitiveRecord atan2 = record("atan2", "The angle of the point (y, x): atan(x / y) in the right quadrant.", 2,
                                 inexact, "stablehlo.atan2");
  atan2.traits.cost = Cost::function;
  atan2.traits.nan_checked = true;
  atan2.jvp = elementwise_jvp({from_pair([](const Array& g, const Array& x, const Array& y) {
                                 const Array square = lax::square(x);
                                 return lax::mul(g, lax::div(y, lax::add(square, lax::square(y))));
                               }),
                               from_pair([](const Array& g, const Array& x, const Array& y) {
                                 const Array minus = lax::neg(x);
                                 const Array square = lax::square(x);
                                 return lax::mul(g, lax::div(minus, lax::add(square, lax::square(y))));
                               })});
  atan2.samples = sample_calls(2, {0.2, 2.0});
  family.push_back(std::move(atan2));
  return family;
}

}  // namespace capibara::elementwise

namespace capibara::jax::lax {

Array exp(const Array& x) { return elementwise::call<"exp">(x); }
Array exp2(const Array& x) { return elementwise::call<"exp2">(x); }
Array log(const Array& x) { return elementwise::call<"log">(x); }
Array expm1(const Array& x) { return elementwise::call<"expm1">(x); }
Array log1p(const Array& x) { return elementwise::call<"log1p">(x); }
Array tanh(const Array& x) { return elementwise::call<"tanh">(x); }
Array logistic(const Array& x) { return elementwise::call<"logistic">(x); }
Array sin(const Array& x) { return elementwise::call<"sin">(x); }
Array cos(const Array& x) { return elementwise::call<"cos">(x); }
Array tan(const Array& x) { return elementwise::call<"tan">(x); }
Array asin(const Array& x) { return elementwise::call<"asin">(x); }
Array acos(const Array& x) { return elementwise::call<"acos">(x); }
Array atan(const Array& x) { return elementwise::call<"atan">(x); }
Array sinh(const Array& x) { return elementwise::call<"sinh">(x); }
Array cosh(const Array& x) { return elementwise::call<"cosh">(x); }
Array asinh(const Array& x) { return elementwise::call<"asinh">(x); }
Array acosh(const Array& x) { return elementwise::call<"acosh">(x); }
Array atanh(const Array& x) { return elementwise::call<"atanh">(x); }
Array atan2(const Array& x, const Array& y) { return elementwise::call<"atan2">(x, y); }

}  // namespace capibara::jax::lax
