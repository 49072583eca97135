// The operators on arrays: NumPy's broadcasting and JAX's promotion over the functions of jax.lax.
#include <capibara/array.h>
#include <capibara/config.h>
#include <capibara/lax.h>

#include <cstdio>

#include "array/promotion.h"
#include "program/derive.h"
#include "trace/trace.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

PromotionMode promotion_mode() {
  return config().numpy_dtype_promotion == "strict" ? PromotionMode::strict : PromotionMode::standard;
}

void check_rank_promotion(const char* name, const Array& a, const Array& b) {
  const std::string& mode = config().numpy_rank_promotion;
  if (mode == "allow") return;
  const std::string shapes = to_string(a.type()) + " and " + to_string(b.type());
  if (mode == "raise") {
    throw ValueError(concat("Operands could not be broadcast together for ", name, " on ", shapes,
                            " with the config option jax_numpy_rank_promotion='raise'; reshape one of them"));
  }
  std::fprintf(stderr, "Following NumPy automatic rank promotion for %s on %s; set jax_numpy_rank_promotion to "
               "'allow' to silence this.\n", name, shapes.c_str());
}

struct Operands {
  Array a, b;
};

Operands promote_ranks(const char* name, const Operands& x) {
  const int64_t a_rank = x.a.ndim(), b_rank = x.b.ndim();
  if (a_rank == b_rank || a_rank == 0 || b_rank == 0) return x;
  check_rank_promotion(name, x.a, x.b);
  const int64_t rank = std::max(a_rank, b_rank);
  const Array a = lax::broadcast_to_rank(x.a, rank);
  return {a, lax::broadcast_to_rank(x.b, rank)};
}

Operands convert_both(const Array& a, const Array& b, ScalarType to) {
  const Array first = lax::convert_element_type(a, to.dtype, to.weak);
  return {first, lax::convert_element_type(b, to.dtype, to.weak)};
}

Operands promote(const char* name, const Array& a, const Array& b) {
  if (!a.defined() || !b.defined()) throw TypeError(concat(name, ": an operand is an empty Array"));
  if (a.dtype() == b.dtype() && a.weak_type() == b.weak_type()) return promote_ranks(name, {a, b});
  const ScalarType to = promote_types({a.dtype(), a.weak_type()}, {b.dtype(), b.weak_type()}, config().enable_x64,
                                      promotion_mode());
  return promote_ranks(name, convert_both(a, b, to));
}

// To floats where both are integers or booleans.
Operands promote_inexact(const char* name, const Array& a, const Array& b) {
  if (!a.defined() || !b.defined()) throw TypeError(concat(name, ": an operand is an empty Array"));
  ScalarType to = promote_types({a.dtype(), a.weak_type()}, {b.dtype(), b.weak_type()}, config().enable_x64,
                                promotion_mode());
  if (!is_inexact(to.dtype)) to.dtype = config().enable_x64 ? DType::float64 : DType::float32;
  return promote_ranks(name, convert_both(a, b, to));
}

// Complex numbers are ordered by their real, then by their imaginary parts.
Array compare(const char* name, const Array& a, const Array& b, Array (*function)(const Array&, const Array&)) {
  const Operands x = promote(name, a, b);
  if (!is_complex(x.a.dtype())) return function(x.a, x.b);
  const Array a_real = lax::real(x.a), b_real = lax::real(x.b);
  const Array same = lax::eq(a_real, b_real);
  const Array by_imaginary = function(lax::imag(x.a), lax::imag(x.b));
  return lax::select(same, by_imaginary, function(a_real, b_real));
}

// One jit equation of this name while tracing; the operations themselves when evaluating.
Array named_call(const char* name, std::initializer_list<Array> inputs, const FlatFunction& function) {
  const Arrays operands(inputs);
  if (current_trace() == evaluation_trace()) return function(operands)[0];
  Types types;
  for (const Array& operand : operands) types.push_back(operand.type());
  const Staged staged = stage(function, types, name);
  Arrays all = staged.captured;
  all.insert(all.end(), operands.begin(), operands.end());
  return call_program(staged.program, all, name)[0];
}

Array where(const Array& condition, const Array& yes, const Array& no) {
  return named_call("_where", {condition, yes, no}, [](std::span<const Array> in) {
    const Operands x = promote("where", in[1], in[2]);
    return Arrays{lax::select(in[0], x.a, x.b)};
  });
}

Arrays remainder(std::span<const Array> in) {
  Operands x = promote("remainder", in[0], in[1]);
  if (is_bool(x.a.dtype())) x = convert_both(x.a, x.b, {config().enable_x64 ? DType::int64 : DType::int32, false});
  Array divisor = x.b;
  if (is_integer(divisor.dtype())) {
    // Division of integers by zero is undefined on some targets: any other divisor will do there.
    const Array is_zero = lax::eq(divisor, 0);
    const Array one = lax::convert_element_type(Array(1), divisor.dtype(), divisor.weak_type());
    divisor = divisor.ndim() == 0 ? where(is_zero, one, divisor)
                                  : where(is_zero, lax::full_like(divisor, 1), divisor);
  }
  const Array trunc = lax::rem(x.a, divisor);
  const Array nonzero = lax::ne(trunc, 0);
  const Array negative = lax::lt(trunc, 0);
  const Array other_sign = lax::ne(negative, lax::lt(divisor, 0));
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
  const Operands x = promote_inexact("true_divide", a, b);
  return lax::div(x.a, x.b);
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
  const Operands x = promote("left_shift", a, b);
  return lax::shift_left(x.a, x.b);
}
Array operator>>(const Array& a, const Array& b) {
  const Operands x = promote("right_shift", a, b);
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
