// Table rows for jax.lax: elementwise functions.
#include <capibara/lax.h>

#include "library/table/families.h"
#include "library/table/host_number.h"
#include "library/table/lax/arguments.h"

namespace capibara::library {

namespace lax = jax::lax;

namespace {

// `accuracy` is a minimum number of correct digits; every evaluation meets the highest possible value.
template <Array (*function)(const Array&)>
Value unary(const Arguments& a) {
  return function(a.array("x"));
}

template <Array (*function)(const Array&, const Array&)>
Value binary(const Arguments& a) {
  const Array x = a.array("x"), y = a.array("y");
  require_same_dtypes(a, {x, y});
  return function(x, y);
}

// The functions of special.h have operands named a and x.
template <Array (*function)(const Array&, const Array&)>
Value binary_of_a_and_x(const Arguments& arguments) {
  const Array a = arguments.array("a"), x = arguments.array("x");
  require_same_dtypes(arguments, {a, x});
  return function(a, x);
}

lax::RoundingMethod rounding_method(const Arguments& a) {
  const Value& value = a["rounding_method"];
  const std::string* text = value.get_if<std::string>();
  const int64_t* number = value.get_if<int64_t>();
  if ((text && (*text == "away_from_zero" || *text == "AWAY_FROM_ZERO")) || (number && *number == 0)) {
    return lax::RoundingMethod::away_from_zero;
  }
  if ((text && (*text == "to_nearest_even" || *text == "TO_NEAREST_EVEN")) || (number && *number == 1)) {
    return lax::RoundingMethod::to_nearest_even;
  }
  throw ValueError("lax.round: argument 'rounding_method' must be 'away_from_zero' (0) or 'to_nearest_even' (1)");
}

Value stop_gradient(const Arguments& a) {
  return map_leaves(a["x"], [&](const Value& leaf) -> Value {
    const Array x = leaf_array(a, leaf);
    return is_inexact(x.dtype()) ? Value(lax::stop_gradient(x)) : leaf;
  });
}

Value optimization_barrier(const Arguments& a) {
  Arrays leaves;
  map_leaves(a["operand"], [&](const Value& leaf) {
    leaves.push_back(leaf_array(a, leaf));
    return leaf;
  });
  if (leaves.empty()) return a["operand"];
  const Arrays held = lax::optimization_barrier(leaves);
  std::size_t next = 0;
  return map_leaves(a["operand"], [&](const Value&) { return Value(held[next++]); });
}

const Function lax_elementwise_functions[] = {
    {"abs", "x", unary<lax::abs>, "The absolute value."},
    {"acos", "x", unary<lax::acos>, "The inverse cosine."},
    {"acosh", "x", unary<lax::acosh>, "The inverse hyperbolic cosine."},
    {"asin", "x", unary<lax::asin>, "The inverse sine."},
    {"asinh", "x", unary<lax::asinh>, "The inverse hyperbolic sine."},
    {"atan", "x", unary<lax::atan>, "The inverse tangent."},
    {"atanh", "x", unary<lax::atanh>, "The inverse hyperbolic tangent."},
    {"bessel_i0e", "x", unary<lax::bessel_i0e>, "The modified Bessel function of order 0, scaled by exp(-|x|)."},
    {"bessel_i1e", "x", unary<lax::bessel_i1e>, "The modified Bessel function of order 1, scaled by exp(-|x|)."},
    {"bitwise_not", "x", unary<lax::bitwise_not>, "All bits inverted; the logical not of booleans."},
    {"cbrt", "x, *, accuracy=None", unary<lax::cbrt>, "The cube root."},
    {"ceil", "x", unary<lax::ceil>, "The least integer not below x."},
    {"clz", "x", unary<lax::clz>, "The number of leading zero bits."},
    {"conj", "x", unary<lax::conj>, "The complex conjugate; real floats become complex."},
    {"cos", "x, *, accuracy=None", unary<lax::cos>, "The cosine."},
    {"cosh", "x", unary<lax::cosh>, "The hyperbolic cosine."},
    {"digamma", "x", unary<lax::digamma>, "The derivative of lgamma."},
    {"erf", "x", unary<lax::erf>, "The error function."},
    {"erf_inv", "x", unary<lax::erf_inv>, "The inverse of the error function."},
    {"erfc", "x", unary<lax::erfc>, "One minus the error function."},
    {"exp", "x, *, accuracy=None", unary<lax::exp>, "e to the power x."},
    {"exp2", "x, *, accuracy=None", unary<lax::exp2>, "Two to the power x."},
    {"expm1", "x, *, accuracy=None", unary<lax::expm1>, "exp(x) - 1, accurate near zero."},
    {"floor", "x", unary<lax::floor>, "The largest integer not above x."},
    {"imag", "x", unary<lax::imag>, "The imaginary part of complex numbers."},
    {"is_finite", "x", unary<lax::is_finite>, "Whether each element is neither infinite nor NaN."},
    {"lgamma", "x", unary<lax::lgamma>, "The logarithm of the absolute value of the gamma function."},
    {"log", "x, *, accuracy=None", unary<lax::log>, "The natural logarithm."},
    {"log1p", "x, *, accuracy=None", unary<lax::log1p>, "log(1 + x), accurate near zero."},
    {"logistic", "x, *, accuracy=None", unary<lax::logistic>, "1 / (1 + exp(-x))."},
    {"neg", "x", unary<lax::neg>, "-x."},
    {"population_count", "x", unary<lax::population_count>, "The number of bits that are set."},
    {"real", "x", unary<lax::real>, "The real part of complex numbers."},
    {"reciprocal", "x", unary<lax::reciprocal>, "1 / x."},
    {"rsqrt", "x, *, accuracy=None", unary<lax::rsqrt>, "1 / sqrt(x)."},
    {"sign", "x", unary<lax::sign>, "-1, 0 or 1; x / |x| of complex numbers."},
    {"sin", "x, *, accuracy=None", unary<lax::sin>, "The sine."},
    {"sinh", "x", unary<lax::sinh>, "The hyperbolic sine."},
    {"sqrt", "x, *, accuracy=None", unary<lax::sqrt>, "The square root."},
    {"square", "x", unary<lax::square>, "x * x."},
    {"tan", "x, *, accuracy=None", unary<lax::tan>, "The tangent."},
    {"tanh", "x, *, accuracy=None", unary<lax::tanh>, "The hyperbolic tangent."},
    {"integer_pow", "x, y: int",
     [](const Arguments& a) -> Value { return lax::integer_pow(a.array("x"), a.integer("y")); },
     "x to the power of a static integer."},
    {"round", "x, rounding_method='away_from_zero'",
     [](const Arguments& a) -> Value { return lax::round(a.array("x"), rounding_method(a)); },
     "The nearest integer; halves go away from zero, or to the even one."},
    {"reduce_precision", "operand, exponent_bits, mantissa_bits",
     [](const Arguments& a) -> Value {
       return lax::reduce_precision(a.array("operand"), a.integer("exponent_bits"), a.integer("mantissa_bits"));
     },
     "Rounds to a floating format with fewer bits, keeping the dtype."},
    {"convert_element_type", "operand, new_dtype",
     [](const Arguments& a) -> Value { return converted(a, "operand", a.dtype("new_dtype")); },
     "The elements converted to another dtype."},
    {"bitcast_convert_type", "operand, new_dtype",
     [](const Arguments& a) -> Value { return lax::bitcast_convert_type(a.array("operand"), a.dtype("new_dtype")); },
     "The bits of the elements as another dtype; a last axis is added or removed where the widths differ."},
    {"stage", "x, /", [](const Arguments& a) -> Value { return a.array("x"); },
     "The value as an array of the current trace."},
    {"stop_gradient", "x", stop_gradient, "The identity with derivative zero; in Python also of trees."},
    {"optimization_barrier", "operand, /", optimization_barrier,
     "The identity, across which compilers move nothing; in Python also of trees."},
    {"dtype", "x: Any -> np.dtype[Any]",
     [](const Arguments& a) -> Value {
       if (const DType* dtype = a["x"].get_if<DType>()) return *dtype;
       if (a["x"].array() || a["x"].is_number()) return a.array("x").dtype();
       throw TypeError(concat("lax.dtype: cannot determine the dtype of a ", a["x"].type_name()));
     },
     "The dtype of an array, a number or a dtype."},

    {"add", "x, y", binary<lax::add>, "x + y."},
    {"sub", "x, y", binary<lax::sub>, "x - y."},
    {"mul", "x, y, *, out_dtype=None",
     [](const Arguments& a) -> Value {
       const Array x = a.array("x"), y = a.array("y");
       if (std::optional<DType> dtype = a.optional_dtype("out_dtype")) {
         const bool weak = x.weak_type() && y.weak_type();
         const Array first = lax::convert_element_type(x, *dtype, weak),
                     second = lax::convert_element_type(y, *dtype, weak);
         return lax::mul(first, second);
       }
       require_same_dtypes(a, {x, y});
       return lax::mul(x, y);
     },
     "x * y; in Python also in a given dtype."},
    {"div", "x, y", binary<lax::div>, "x / y; integers round towards zero."},
    {"rem", "x, y", binary<lax::rem>, "The remainder of the division that rounds towards zero: it has the sign of x."},
    {"pow", "x, y",
     [](const Arguments& a) -> Value {
       const Array x = a.array("x"), y = a.array("y");
       if (!is_integer(y.dtype())) require_same_dtypes(a, {x, y});
       return lax::pow(x, y);
     },
     "x to the power y; y may be of an integer dtype."},
    {"max", "x, y", binary<lax::max>, "The greater; complex numbers are ordered by real, then imaginary part."},
    {"min", "x, y", binary<lax::min>, "The lesser; complex numbers are ordered by real, then imaginary part."},
    {"atan2", "x, y", binary<lax::atan2>, "atan(x / y) with the quadrant of the point (y, x)."},
    {"mulhi", "x, y, /", binary<lax::mulhi>, "The upper half of the bits of the product of integers."},
    {"complex", "x, y", binary<lax::complex>, "x + iy."},
    {"bitwise_and", "x, y", binary<lax::bitwise_and>, "The bits set in both."},
    {"bitwise_or", "x, y", binary<lax::bitwise_or>, "The bits set in either."},
    {"bitwise_xor", "x, y", binary<lax::bitwise_xor>, "The bits set in exactly one."},
    {"shift_left", "x, y", binary<lax::shift_left>, "x << y."},
    {"shift_right_arithmetic", "x, y", binary<lax::shift_right_arithmetic>, "x >> y, filled with the sign bit."},
    {"shift_right_logical", "x, y", binary<lax::shift_right_logical>, "x >> y, filled with zeros."},
    {"eq", "x, y", binary<lax::eq>, "x == y."},
    {"ne", "x, y", binary<lax::ne>, "x != y."},
    {"lt", "x, y", binary<lax::lt>, "x < y."},
    {"le", "x, y", binary<lax::le>, "x <= y."},
    {"gt", "x, y", binary<lax::gt>, "x > y."},
    {"ge", "x, y", binary<lax::ge>, "x >= y."},
    {"nextafter", "x1, x2",
     [](const Arguments& a) -> Value {
       const Array from = a.array("x1"), towards = a.array("x2");
       require_same_dtypes(a, {from, towards});
       return lax::nextafter(from, towards);
     },
     "The next floating-point number after the first operand in the direction of the second."},
    {"igamma", "a, x", binary_of_a_and_x<lax::igamma>, "The regularised lower incomplete gamma function."},
    {"igammac", "a, x", binary_of_a_and_x<lax::igammac>, "The regularised upper incomplete gamma function."},
    {"igamma_grad_a", "a, x", binary_of_a_and_x<lax::igamma_grad_a>, "The derivative of igamma in a."},
    {"random_gamma_grad", "*args",
     [](const Arguments& a) -> Value {
       const Arrays operands = a.arrays("args");
       if (operands.size() != 2) {
         throw TypeError(concat("lax.random_gamma_grad takes the arguments a and x, got ", operands.size()));
       }
       require_same_dtypes(a, {operands[0], operands[1]});
       return lax::random_gamma_grad(operands[0], operands[1]);
     },
     "The derivative of a gamma draw x in its parameter a."},
    {"betainc", "a, b, x",
     [](const Arguments& arguments) -> Value {
       const Array a = arguments.array("a"), b = arguments.array("b"), x = arguments.array("x");
       require_same_dtypes(arguments, {a, b, x});
       return lax::betainc(a, b, x);
     },
     "The regularised incomplete beta function."},
    {"polygamma", "m, x",
     [](const Arguments& a) -> Value {
       const Array m = a.array("m"), x = a.array("x");
       require_same_dtypes(a, {m, x});
       return lax::polygamma(m, x);
     },
     "The derivative of order m of digamma."},
    {"zeta", "x, q",
     [](const Arguments& a) -> Value {
       const Array x = a.array("x"), q = a.array("q");
       require_same_dtypes(a, {x, q});
       return lax::zeta(x, q);
     },
     "The Hurwitz zeta function."},
    {"clamp", "min, x, max",
     [](const Arguments& a) -> Value {
       const Array low = a.array("min"), x = a.array("x"), high = a.array("max");
       require_same_dtypes(a, {low, x, high});
       return lax::clamp(low, x, high);
     },
     "x clamped to [min, max]."},
    {"select", "pred, on_true, on_false",
     [](const Arguments& a) -> Value {
       const Array yes = a.array("on_true"), no = a.array("on_false");
       require_same_dtypes(a, {yes, no});
       return lax::select(a.array("pred"), yes, no);
     },
     "on_true where pred holds, on_false elsewhere."},
    {"select_n", "which, *cases",
     [](const Arguments& a) -> Value {
       const Arrays cases = a.arrays("cases");
       for (const Array& one : cases) require_same_dtypes(a, {cases[0], one});
       return lax::select_n(a.array("which"), cases);
     },
     "Selects each element from the case whose number `which` holds."},
};

}  // namespace

Family lax_elementwise() { return lax_elementwise_functions; }

}  // namespace capibara::library
