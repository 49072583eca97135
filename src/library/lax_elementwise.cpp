// The elementwise functions of jax.lax: they bind one primitive each, and never promote dtypes.
#include <capibara/config.h>
#include <capibara/lax.h>
#include <capibara/primitive.h>

#include "array/promotion.h"
#include "lax/elementwise.h"
#include "library/plain_number.h"

namespace capibara::jax::lax {

namespace {

// Plain C++ numbers take the dtype of the other operands where that loses no kind: 2 becomes 2.0, never 2.5 an integer.
Arrays adopt_numbers(std::initializer_list<Array> operands) {
  Arrays result(operands);
  const Array* typed = nullptr;
  for (const Array& x : result) {
    if (!is_plain_number(x) && !typed) typed = &x;
  }
  if (!typed) return result;
  const DType dtype = typed->dtype();
  for (Array& x : result) {
    if (!is_plain_number(x) || x.dtype() == dtype || !(is_numeric(dtype))) continue;
    const ScalarType both = promote_types({dtype, false}, {x.dtype(), true}, true);
    if (both.dtype == dtype) x = number_as(x, dtype, true);
  }
  return result;
}

Array bind_nary(const Primitive& p, std::initializer_list<Array> operands) {
  return capibara::bind(p, adopt_numbers(operands))[0];
}

}  // namespace

#define CAPIBARA_LAX_UNARY(function, name)         \
  Array function(const Array& x) {                 \
    static const Primitive p = primitive(name);    \
    return bind1(p, {x});                          \
  }
#define CAPIBARA_LAX_BINARY(function, name)           \
  Array function(const Array& x, const Array& y) {    \
    static const Primitive p = primitive(name);       \
    return bind_nary(p, {x, y});                      \
  }

// ---- one operand -------------------------------------------------------------------------------------------------

CAPIBARA_LAX_UNARY(neg, "neg")
CAPIBARA_LAX_UNARY(sign, "sign")
CAPIBARA_LAX_UNARY(floor, "floor")
CAPIBARA_LAX_UNARY(ceil, "ceil")
CAPIBARA_LAX_UNARY(is_finite, "is_finite")
CAPIBARA_LAX_UNARY(exp, "exp")
CAPIBARA_LAX_UNARY(exp2, "exp2")
CAPIBARA_LAX_UNARY(log, "log")
CAPIBARA_LAX_UNARY(expm1, "expm1")
CAPIBARA_LAX_UNARY(log1p, "log1p")
CAPIBARA_LAX_UNARY(tanh, "tanh")
CAPIBARA_LAX_UNARY(logistic, "logistic")
CAPIBARA_LAX_UNARY(sin, "sin")
CAPIBARA_LAX_UNARY(cos, "cos")
CAPIBARA_LAX_UNARY(tan, "tan")
CAPIBARA_LAX_UNARY(asin, "asin")
CAPIBARA_LAX_UNARY(acos, "acos")
CAPIBARA_LAX_UNARY(atan, "atan")
CAPIBARA_LAX_UNARY(sinh, "sinh")
CAPIBARA_LAX_UNARY(cosh, "cosh")
CAPIBARA_LAX_UNARY(asinh, "asinh")
CAPIBARA_LAX_UNARY(acosh, "acosh")
CAPIBARA_LAX_UNARY(atanh, "atanh")
CAPIBARA_LAX_UNARY(sqrt, "sqrt")
CAPIBARA_LAX_UNARY(rsqrt, "rsqrt")
CAPIBARA_LAX_UNARY(cbrt, "cbrt")
CAPIBARA_LAX_UNARY(square, "square")
CAPIBARA_LAX_UNARY(abs, "abs")
CAPIBARA_LAX_UNARY(real, "real")
CAPIBARA_LAX_UNARY(imag, "imag")
CAPIBARA_LAX_UNARY(bitwise_not, "not")
CAPIBARA_LAX_UNARY(population_count, "population_count")
CAPIBARA_LAX_UNARY(clz, "clz")
CAPIBARA_LAX_UNARY(erf, "erf")
CAPIBARA_LAX_UNARY(erfc, "erfc")
CAPIBARA_LAX_UNARY(erf_inv, "erf_inv")
CAPIBARA_LAX_UNARY(lgamma, "lgamma")
CAPIBARA_LAX_UNARY(digamma, "digamma")
CAPIBARA_LAX_UNARY(bessel_i0e, "bessel_i0e")
CAPIBARA_LAX_UNARY(bessel_i1e, "bessel_i1e")
CAPIBARA_LAX_UNARY(copy, "copy")

Array stop_gradient(const Array& x) {
  static const Primitive p = primitive("stop_gradient");
  return is_key(x.dtype()) ? x : bind1(p, {x});
}

Array round(const Array& x, RoundingMethod method) {
  static const Primitive p = primitive("round");
  return bind1(p, {x}, Attrs{{"rounding_method", static_cast<int>(method)}});
}

Array reciprocal(const Array& x) { return integer_pow(x, -1); }

Array integer_pow(const Array& x, int64_t y) {
  static const Primitive p = primitive("integer_pow");
  return bind1(p, {x}, Attrs{{"y", y}});
}

Array conj(const Array& x) {
  static const Primitive p = primitive("conj");
  return bind1(p, {x}, Attrs{{"input_dtype", x.dtype()}});
}

Array reduce_precision(const Array& x, int64_t exponent_bits, int64_t mantissa_bits) {
  static const Primitive p = primitive("reduce_precision");
  return bind1(p, {x}, Attrs{{"exponent_bits", exponent_bits}, {"mantissa_bits", mantissa_bits}});
}

// 64-bit requests follow the configuration, except from 64-bit operands: those come from programs that were read.
Array convert_element_type(const Array& x, DType dtype) {
  const bool wide = capibara::config().enable_x64 || canonicalize(x.dtype(), false) != x.dtype();
  return convert_element_type(x, canonicalize(dtype, wide), false);
}

Array convert_element_type(const Array& x, DType dtype, bool weak_type) {
  static const Primitive p = primitive("convert_element_type");
  if (x.dtype() == dtype && x.weak_type() == weak_type) return x;
  const bool foldable = is_plain_number(x) && (is_numeric(dtype) || is_bool(dtype));
  if (foldable) return number_as(x, dtype, weak_type);
  return bind1(p, {x}, Attrs{{"new_dtype", dtype}, {"weak_type", weak_type}});
}

Array bitcast_convert_type(const Array& x, DType dtype) {
  static const Primitive p = primitive("bitcast_convert_type");
  const DType to = canonicalize(dtype, capibara::config().enable_x64 || bits(x.dtype()) >= 64);
  if (is_complex(x.dtype()) != is_complex(to)) {
    throw TypeError(concat("lax.bitcast_convert_type does not support bool or complex values unless the operand and "
                           "destination types match. Got operand dtype=", dtype_name(x.dtype()), ", new_dtype=",
                           dtype_name(to), ". Consider using the arr.view() method instead."));
  }
  return bind1(p, {x}, Attrs{{"new_dtype", to}});
}

// ---- several operands --------------------------------------------------------------------------------------------

CAPIBARA_LAX_BINARY(sub, "sub")
CAPIBARA_LAX_BINARY(div, "div")
CAPIBARA_LAX_BINARY(rem, "rem")
CAPIBARA_LAX_BINARY(max, "max")
CAPIBARA_LAX_BINARY(min, "min")
CAPIBARA_LAX_BINARY(atan2, "atan2")
CAPIBARA_LAX_BINARY(nextafter, "nextafter")
CAPIBARA_LAX_BINARY(mulhi, "mulhi")
CAPIBARA_LAX_BINARY(complex, "complex")
CAPIBARA_LAX_BINARY(bitwise_and, "and")
CAPIBARA_LAX_BINARY(bitwise_or, "or")
CAPIBARA_LAX_BINARY(bitwise_xor, "xor")
CAPIBARA_LAX_BINARY(shift_left, "shift_left")
CAPIBARA_LAX_BINARY(shift_right_arithmetic, "shift_right_arithmetic")
CAPIBARA_LAX_BINARY(shift_right_logical, "shift_right_logical")
CAPIBARA_LAX_BINARY(eq, "eq")
CAPIBARA_LAX_BINARY(ne, "ne")
CAPIBARA_LAX_BINARY(lt, "lt")
CAPIBARA_LAX_BINARY(le, "le")
CAPIBARA_LAX_BINARY(gt, "gt")
CAPIBARA_LAX_BINARY(ge, "ge")
CAPIBARA_LAX_BINARY(eq_to, "eq_to")
CAPIBARA_LAX_BINARY(lt_to, "lt_to")
CAPIBARA_LAX_BINARY(le_to, "le_to")
CAPIBARA_LAX_BINARY(igamma, "igamma")
CAPIBARA_LAX_BINARY(igammac, "igammac")
CAPIBARA_LAX_BINARY(igamma_grad_a, "igamma_grad_a")
CAPIBARA_LAX_BINARY(random_gamma_grad, "random_gamma_grad")
CAPIBARA_LAX_BINARY(polygamma, "polygamma")
CAPIBARA_LAX_BINARY(zeta, "zeta")

#undef CAPIBARA_LAX_UNARY
#undef CAPIBARA_LAX_BINARY

// The primitives below take more than jax.lax allows, for programs read from StableHLO.
Array add(const Array& x, const Array& y) {
  static const Primitive p = primitive("add");
  elementwise::require_accepted("add", elementwise::numbers, x.dtype(), 0);
  return bind_nary(p, {x, y});
}

Array mul(const Array& x, const Array& y) {
  static const Primitive p = primitive("mul");
  elementwise::require_accepted("mul", elementwise::numbers, x.dtype(), 0);
  return bind_nary(p, {x, y});
}

Array pow(const Array& x, const Array& y) {
  static const Primitive p = primitive("pow");
  // An integer exponent keeps its dtype.
  if (is_integer(y.dtype()) && is_inexact(x.dtype())) return bind1(p, {x, y});
  const Arrays operands = adopt_numbers({x, y});
  elementwise::require_accepted("pow", elementwise::inexact, operands[0].dtype(), 0);
  return bind1(p, {operands[0], operands[1]});
}

Array betainc(const Array& a, const Array& b, const Array& x) {
  static const Primitive p = primitive("regularized_incomplete_beta");
  return bind_nary(p, {a, b, x});
}

Array select(const Array& pred, const Array& on_true, const Array& on_false) {
  return select_n(pred, {on_false, on_true});
}

Array select_n(const Array& which, const Arrays& cases) {
  static const Primitive p = primitive("select_n");
  if (cases.empty()) throw ValueError("select_n() must have at least one case");
  Arrays operands = {which};
  operands.insert(operands.end(), cases.begin(), cases.end());
  if (cases.size() == 2) {
    const Arrays adopted = adopt_numbers({cases[0], cases[1]});
    operands = {which, adopted[0], adopted[1]};
  }
  return capibara::bind(p, operands)[0];
}

Array clamp(const Array& min, const Array& x, const Array& max) {
  static const Primitive p = primitive("clamp");
  return bind_nary(p, {min, x, max});
}

Array add_any(const Array& x, const Array& y) {
  static const Primitive p = primitive("add_any");
  return bind1(p, {x, y});
}

}  // namespace capibara::jax::lax
