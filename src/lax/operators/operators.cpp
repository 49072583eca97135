// The operators on arrays: NumPy's broadcasting and JAX's promotion over the functions of jax.lax.
#include <capibara/array.h>
#include <capibara/lax.h>

#include "lax/operators/plain_number.h"
#include "lax/operators/promote.h"
#include "lax/operators/promotion_scope.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

struct Operands {
  Array a, b;
};

Operands promote(const char* name, const Array& a, const Array& b) {
  if (are_promoted(a, b)) return {a, b};
  Arrays both = promote_args(name, {a, b});
  return {both[0], both[1]};
}

// Booleans as int32: for operators that are not defined on truth values.
Operands promote_numeric(const char* name, const Array& a, const Array& b) {
  const Operands x = promote(name, a, b);
  return is_bool(x.a.dtype()) ? Operands{x.a.astype(DType::int32), x.b.astype(DType::int32)} : x;
}

// Complex numbers are ordered by their real, then by their imaginary parts.
Array compare(const char* name, const Array& a, const Array& b, Array (*function)(const Array&, const Array&)) {
  const Operands x = promote(name, a, b);
  if (!is_complex(x.a.dtype())) return function(x.a, x.b);
  const Array a_real = lax::real(x.a), b_real = lax::real(x.b);
  const Array same = lax::eq(a_real, b_real);
  const Array imaginary_part = lax::imag(x.a);
  const Array by_imaginary = function(imaginary_part, lax::imag(x.b));
  return lax::select(same, by_imaginary, function(a_real, b_real));
}

Array where(const Array& condition, const Array& yes, const Array& no) {
  return named_call("_where", {condition, yes, no}, [](std::span<const Array> in) {
    const Operands x = promote("where", in[1], in[2]);
    return Arrays{lax::select(in[0], x.a, x.b)};
  });
}

Arrays remainder(std::span<const Array> in) {
  const Operands x = promote_numeric("remainder", in[0], in[1]);
  const Array zero = number_as(0, x.a.dtype(), false);
  Array divisor = x.b;
  if (is_integer(divisor.dtype())) {
    // Division of integers by zero is undefined on some targets: any other divisor is fine there.
    const Array is_zero = lax::eq(divisor, zero);
    const Array one = lax::convert_element_type(Array(1), divisor.dtype(), divisor.weak_type());
    divisor = divisor.ndim() == 0 ? where(is_zero, one, divisor) : where(is_zero, lax::full_like(divisor, 1), divisor);
  }
  const Array trunc = lax::rem(x.a, divisor);
  const Array nonzero = lax::ne(trunc, zero);
  const Array negative = lax::lt(trunc, zero);
  const Array other_sign = lax::ne(negative, lax::lt(divisor, zero));
  const Array adjust = lax::bitwise_and(other_sign, nonzero);
  return {lax::select(adjust, lax::add(trunc, divisor), trunc)};
}

}  // namespace

Array operator+(const Array& a, const Array& b) {
  const Operands x = promote("add", a, b);
  return is_bool(x.a.dtype()) ? lax::bitwise_or(x.a, x.b) : lax::add(x.a, x.b);
}
Array operator-(const Array& a, const Array& b) {
  const Operands x = promote("subtract", a, b);
  return lax::sub(x.a, x.b);
}
Array operator*(const Array& a, const Array& b) {
  const Operands x = promote("multiply", a, b);
  return is_bool(x.a.dtype()) ? lax::bitwise_and(x.a, x.b) : lax::mul(x.a, x.b);
}
Array operator/(const Array& a, const Array& b) {
  if (a.defined() && is_inexact(a.dtype()) && are_promoted(a, b)) return lax::div(a, b);
  const Arrays x = promote_args_inexact("true_divide", {a, b});
  return lax::div(x[0], x[1]);
}
Array operator%(const Array& a, const Array& b) { return named_call("remainder", {a, b}, remainder); }
Array operator-(const Array& a) { return lax::neg(a); }
Array operator~(const Array& a) { return lax::bitwise_not(a); }
Array operator&(const Array& a, const Array& b) {
  const Operands x = promote("bitwise_and", a, b);
  return lax::bitwise_and(x.a, x.b);
}
Array operator|(const Array& a, const Array& b) {
  const Operands x = promote("bitwise_or", a, b);
  return lax::bitwise_or(x.a, x.b);
}
Array operator^(const Array& a, const Array& b) {
  const Operands x = promote("bitwise_xor", a, b);
  return lax::bitwise_xor(x.a, x.b);
}
Array operator<<(const Array& a, const Array& b) {
  const Operands x = promote_numeric("left_shift", a, b);
  return lax::shift_left(x.a, x.b);
}
Array operator>>(const Array& a, const Array& b) {
  const Operands x = promote_numeric("right_shift", a, b);
  return is_unsigned(x.a.dtype()) ? lax::shift_right_logical(x.a, x.b) : lax::shift_right_arithmetic(x.a, x.b);
}
Array operator==(const Array& a, const Array& b) {
  const Operands x = promote("equal", a, b);
  return lax::eq(x.a, x.b);
}
Array operator!=(const Array& a, const Array& b) {
  const Operands x = promote("not_equal", a, b);
  return lax::ne(x.a, x.b);
}
Array operator<(const Array& a, const Array& b) { return compare("less", a, b, lax::lt); }
Array operator<=(const Array& a, const Array& b) { return compare("less_equal", a, b, lax::le); }
Array operator>(const Array& a, const Array& b) { return compare("greater", a, b, lax::gt); }
Array operator>=(const Array& a, const Array& b) { return compare("greater_equal", a, b, lax::ge); }

Array Array::astype(DType dtype) const { return lax::convert_element_type(*this, dtype); }

}  // namespace capibara
