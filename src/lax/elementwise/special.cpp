// Special functions: error, gamma, beta, Bessel and zeta functions.
#include "lax/elementwise/elementwise.h"

#include <cmath>

#include "lax/math/array_value.h"
#include "lax/math/bessel.h"
#include "lax/math/incomplete_beta.h"
#include "lax/math/incomplete_gamma.h"
#include "program/trace/stage.h"

namespace capibara {

namespace lax = jax::lax;

Arrays math::Operations<Array>::while_loop(const Arrays& state,
                                           const std::function<Array(std::span<const Array>)>& goes_on,
                                           const FlatFunction& body) {
  Types types;
  for (const Array& value : state) types.push_back(value.type().strong());
  const Staged condition = stage(
      [&](std::span<const Array> s) {
        const Array active = goes_on(s);
        Ints axes;
        for (int64_t i = 0; i < active.ndim(); ++i) axes.push_back(i);
        return Arrays{axes.empty() ? active : lax::reduce_or(active, {.axes = axes})};
      },
      types, "condition");
  const Staged step = stage(
      [&](std::span<const Array> s) {
        const Array active = goes_on(s);
        Arrays next = body(s);
        for (std::size_t i = 0; i < next.size(); ++i) next[i] = lax::select(active, next[i], s[i]);
        return next;
      },
      types, "body");
  return bind_while(condition, step, state);
}

namespace elementwise {
namespace {

// Expands a math/ template at float32 or float64, after broadcasting.
template <class Function>
LowerRule expand(const char* name, Function function) {
  return [name, function](std::span<const Array> in, const Attrs&) -> Arrays {
    Arrays operands = broadcast_operands(name, in);
    const DType dtype = in[0].dtype();
    const DType wide = dtype == DType::float64 ? dtype : DType::float32;
    for (Array& operand : operands) operand = lax::convert_element_type(operand, wide, false);
    return {lax::convert_element_type(function(operands), dtype, false)};
  };
}

// ---- derivatives ------------------------------------------------------------------------------------------------

// factor * g * exp(+-z^2), the form of all error functions' derivatives.
Array gaussian_derivative(const Array& g, const Array& z, double factor, bool negative) {
  const Array square = lax::square(z);
  const Array scaled = lax::mul(g, lax::exp(negative ? lax::neg(square) : square));
  return lax::mul(scalar_like(z, factor), scaled);
}

const double two_over_root_pi = 2.0 / std::sqrt(3.14159265358979323846);

// d/dx of igamma: e^-x x^(a-1) / Gamma(a).
Array igamma_x_derivative(const Array& g, const Array& a, const Array& x) {
  const Array minus_x = -x;
  const Array ones = lax::full_like(a, 1);
  const Array power = a - ones;
  const Array product = power * lax::log(x);
  const Array sum = minus_x + product;
  return g * lax::exp(sum - lax::lgamma(a));
}

Array beta_x_derivative(const Array& g, const Array& a, const Array& b, const Array& x) {
  const Array log_a = lax::lgamma(a);
  const Array log_product = log_a + lax::lgamma(b);
  const Array log_beta = log_product - lax::lgamma(a + b);
  const Array b_power = b - Array(1);
  const Array right = b_power * lax::log1p(-x);
  const Array a_power = a - Array(1);
  const Array left = a_power * lax::log(x);
  const Array sum = right + left;
  return lax::exp(sum - log_beta) * g;
}

Array bessel_i1e_derivative(const Array& g, const Array& y, const Array& x) {
  const double eps = finfo(x.dtype()).eps;
  const Array not_tiny = lax::gt(lax::abs(x), scalar_like(x, eps));
  const Array safe = lax::select(not_tiny, x, lax::full_like(x, scalar_of(x.dtype(), eps)));
  const Array order_zero = lax::bessel_i0e(safe);
  const Array sign = lax::sign(safe);
  const Array derivative = lax::sub(order_zero, lax::mul(y, lax::add(sign, lax::reciprocal(safe))));
  const Array at_zero = lax::full_like(x, scalar_of(x.dtype(), 0.5));
  return lax::mul(g, lax::select(not_tiny, derivative, at_zero));
}

Derivative refuse(const char* message) {
  return [message](const Array&, const Array&, std::span<const Array>, const Attrs&) -> Array {
    throw ValueError(message);
  };
}

}  // namespace
}  // namespace elementwise

Family special_family() {
  using namespace elementwise;
  Family family;
  const auto add = [&](const char* name, const char* doc, std::size_t operands, const char* stablehlo,
                       SampleRange range) -> PrimitiveRecord& {
    PrimitiveRecord r = record(name, doc, operands, floats, stablehlo);
    r.traits.cost = Cost::function;
    r.traits.nan_checked = true;
    r.samples = sample_calls(operands, range);
    return family.emplace_back(std::move(r));
  };
  const auto add_series = [&](const char* name, const char* doc, std::size_t operands, const char* stablehlo,
                              SampleRange range, float nanoseconds) -> PrimitiveRecord& {
    PrimitiveRecord& r = add(name, doc, operands, stablehlo, range);
    r.traits.cost = Cost::series;
    r.traits.element_nanoseconds = nanoseconds;
    return r;
  };

  add("erf", "The error function.", 1, "chlo.erf", {-2.0, 2.0}).jvp = elementwise_jvp(
      {from_input([](const Array& g, const Array& x) { return gaussian_derivative(g, x, two_over_root_pi, true); })});
  add("erfc", "1 - erf(x), accurate for large x.", 1, "chlo.erfc", {-2.0, 2.0}).jvp = elementwise_jvp(
      {from_input([](const Array& g, const Array& x) { return gaussian_derivative(g, x, -two_over_root_pi, true); })});
  add("erf_inv", "The inverse of erf.", 1, "chlo.erf_inv", {-0.9, 0.9}).jvp =
      elementwise_jvp({from_output([](const Array& g, const Array& y, const Array&) {
        return gaussian_derivative(g, y, 1.0 / two_over_root_pi, false);
      })});

  add("lgamma", "log|Gamma(x)|.", 1, "chlo.lgamma", {0.2, 4.0}).jvp =
      elementwise_jvp({from_input([](const Array& g, const Array& x) { return lax::mul(g, lax::digamma(x)); })});
  add("digamma", "The derivative of lgamma.", 1, "chlo.digamma", {0.2, 4.0}).jvp = elementwise_jvp(
      {from_input([](const Array& g, const Array& x) { return lax::mul(g, lax::polygamma(scalar_like(x, 1), x)); })});
  {
    PrimitiveRecord& r =
        add_series("polygamma", "The m-th derivative of digamma at x.", 2, "chlo.polygamma", {1.0, 4.0}, 0);
    r.traits.nan_checked = false;
    r.jvp = elementwise_jvp({refuse("polygamma: the gradient with respect to m (argument 0) is not supported"),
                             from_pair([](const Array& g, const Array& m, const Array& x) {
                               return lax::mul(g, lax::polygamma(lax::add(m, scalar_like(m, 1)), x));
                             })});
  }
  add_series("zeta", "The Hurwitz zeta function.", 2, "chlo.zeta", {1.2, 4.0}, 0).traits.nan_checked = false;

  {
    PrimitiveRecord& r =
        add_series("igamma", "The regularised lower incomplete gamma function.", 2, "", {0.5, 4.0}, 200);
    r.jvp = elementwise_jvp({from_pair([](const Array& g, const Array& a, const Array& x) {
                               return lax::mul(g, lax::igamma_grad_a(a, x));
                             }),
                             from_pair(igamma_x_derivative)});
    r.lower = expand("igamma", [](const Arrays& in) { return math::igamma(in[0], in[1]); });
  }
  {
    PrimitiveRecord& r =
        add_series("igammac", "The regularised upper incomplete gamma function.", 2, "", {0.5, 4.0}, 200);
    r.jvp = elementwise_jvp({from_pair([](const Array& g, const Array& a, const Array& x) {
                               return lax::neg(lax::mul(g, lax::igamma_grad_a(a, x)));
                             }),
                             from_pair([](const Array& g, const Array& a, const Array& x) {
                               return lax::neg(igamma_x_derivative(g, a, x));
                             })});
    r.lower = expand("igammac", [](const Arrays& in) { return math::igammac(in[0], in[1]); });
  }
  add_series("igamma_grad_a", "The derivative of igamma in a.", 2, "", {0.5, 4.0}, 200).lower =
      expand("igamma_grad_a", [](const Arrays& in) { return math::igamma_grad_a(in[0], in[1]); });
  {
    PrimitiveRecord& r = add_series(
        "random_gamma_grad", "The derivative in a of the gamma variate x at a fixed quantile.", 2, "", {0.5, 4.0}, 300);
    r.traits.nan_checked = false;
    r.lower = expand("random_gamma_grad", [](const Arrays& in) { return math::random_gamma_grad(in[0], in[1]); });
  }

  {
    PrimitiveRecord& r =
        add_series("regularized_incomplete_beta", "The regularised incomplete beta function.", 3, "", {0.1, 0.9}, 300);
    const char* message = "regularized_incomplete_beta: gradients with respect to a and b are not supported";
    r.jvp = elementwise_jvp(
        {refuse(message), refuse(message), [](const Array& g, const Array&, std::span<const Array> in, const Attrs&) {
           return beta_x_derivative(g, in[0], in[1], in[2]);
         }});
    r.lower = expand("regularized_incomplete_beta",
                     [](const Arrays& in) { return math::regularized_incomplete_beta(in[0], in[1], in[2]); });
  }
  {
    PrimitiveRecord& r =
        add_series("bessel_i0e", "e^-|x| times the modified Bessel function of order 0.", 1, "", {-3.0, 3.0}, 50);
    r.jvp = elementwise_jvp({from_output([](const Array& g, const Array& y, const Array& x) {
      const Array order_one = lax::bessel_i1e(x);
      return lax::mul(g, lax::sub(order_one, lax::mul(lax::sign(x), y)));
    })});
    r.lower = expand("bessel_i0e", [](const Arrays& in) { return math::bessel_i0e(in[0]); });
  }
  add_series("bessel_i1e", "e^-|x| times the modified Bessel function of order 1.", 1, "chlo.bessel_i1e", {-3.0, 3.0},
             50)
      .jvp = elementwise_jvp({from_output(bessel_i1e_derivative)});
  return family;
}

}  // namespace capibara

namespace capibara::jax::lax {

Array erf(const Array& x) { return elementwise::call<"erf">(x); }
Array erfc(const Array& x) { return elementwise::call<"erfc">(x); }
Array erf_inv(const Array& x) { return elementwise::call<"erf_inv">(x); }
Array lgamma(const Array& x) { return elementwise::call<"lgamma">(x); }
Array digamma(const Array& x) { return elementwise::call<"digamma">(x); }
Array bessel_i0e(const Array& x) { return elementwise::call<"bessel_i0e">(x); }
Array bessel_i1e(const Array& x) { return elementwise::call<"bessel_i1e">(x); }
Array igamma(const Array& x, const Array& y) { return elementwise::call<"igamma">(x, y); }
Array igammac(const Array& x, const Array& y) { return elementwise::call<"igammac">(x, y); }
Array igamma_grad_a(const Array& x, const Array& y) { return elementwise::call<"igamma_grad_a">(x, y); }
Array random_gamma_grad(const Array& x, const Array& y) { return elementwise::call<"random_gamma_grad">(x, y); }
Array polygamma(const Array& x, const Array& y) { return elementwise::call<"polygamma">(x, y); }
Array zeta(const Array& x, const Array& y) { return elementwise::call<"zeta">(x, y); }

Array betainc(const Array& a, const Array& b, const Array& x) {
  return elementwise::call<"regularized_incomplete_beta">(a, b, x);
}

}  // namespace capibara::jax::lax
