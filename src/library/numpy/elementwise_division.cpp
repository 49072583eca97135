// Division with remainders, powers and common divisors as jax.numpy defines them.
#include <capibara/control.h>
#include <capibara/lax.h>
#include <capibara/numpy/elementwise.h>

#include "library/numpy/elementwise_operands.h"

namespace capibara::jax::numpy {

namespace {

// Quotient rounded toward minus infinity, and the remainder, which has the divisor's sign.
std::pair<Array, Array> divide_floats(const Array& x1, const Array& x2) {
  const Array trunc = lax::rem(x1, x2);
  const Array is_equal = lax::eq(x2, constant_like(x2, 0));
  const Array dividend = where(is_equal, x1, lax::sub(x1, trunc));
  const Array quotient = lax::div(dividend, x2);
  const Array is_different = lax::ne(trunc, constant_like(trunc, 0)), sign_of_value = lax::sign(x2);
  const Array adjust = lax::bitwise_and(is_different, lax::ne(sign_of_value, lax::sign(trunc)));
  return {lax::round(lax::select(adjust, quotient - 1, quotient)), lax::select(adjust, lax::add(trunc, x2), trunc)};
}

Array divide_integers(const Array& x1, const Array& x2) {
  const Array quotient = lax::div(x1, x2);
  if (is_unsigned(x1.dtype())) return quotient;
  const Array inexact = lax::ne(lax::rem(x1, x2), constant_like(x1, 0));
  const Array sign_of_value = lax::sign(x1);
  const Array adjust = lax::bitwise_and(lax::ne(sign_of_value, lax::sign(x2)), inexact);
  return where(adjust, quotient - 1, quotient);
}

// Binary exponentiation over the six lowest bits of the exponent; more would overflow any base but -1, 0 and 1.
Array power_of_integers(Array base, Array exponent) {
  const Array zero = strong_constant(exponent.dtype(), 0), one = strong_constant(exponent.dtype(), 1);
  const Array is_equal = lax::eq(base, zero);
  const Array vanishes = lax::bitwise_and(is_equal, lax::ne(exponent, zero));
  Array result = where(vanishes, zero, one);
  for (int bit = 0; bit < 6; ++bit) {
    Array both = lax::bitwise_and(exponent, one);
    result = where(both, lax::mul(result, base), result);
    base = lax::mul(base, base);
    exponent = lax::shift_right_logical(exponent, one);
  }
  return result;
}

Arrays integers(const char* name, const Array& x1, const Array& x2) {
  const Arrays both = promote_dtypes({x1, x2});
  if (!is_integer(both[0].dtype())) {
    throw ValueError(concat(name, ": integers are needed, got ", to_string(x1.type()), " and ", to_string(x2.type())));
  }
  return {absolute(both[0]), absolute(both[1])};
}

// Euclid's algorithm on all elements at once; finished elements are left unchanged.
Array euclid(const Array& x1, const Array& x2) {
  using State = std::tuple<Array, Array>;
  const auto is_running = [](const State& state) {
    const Array& smaller = std::get<1>(state);
    Ints axes;
    for (int64_t axis = 0; axis < smaller.ndim(); ++axis) axes.push_back(axis);
    return lax::reduce_or(lax::ne(smaller, constant_like(smaller, 0)), {.axes = axes});
  };
  const auto step = [](const State& state) {
    const auto& [a, b] = state;
    const Array divides = lax::ne(b, constant_like(b, 0));
    const Array divisor = where(divides, b, a);
    const Array rest = where(divides, lax::rem(a, b), constant_like(b, 0));
    const Array swap = lax::lt(divisor, rest);
    const Array larger = where(swap, rest, divisor);
    return State(larger, where(swap, divisor, rest));
  };
  return std::get<0>(lax::while_loop(is_running, step, State(x1, x2)));
}

}  // namespace

Array floor_divide(const Array& x1, const Array& x2) {
  const auto divide = [](const Array& a, const Array& b) {
    const Arrays both = promote_args_numeric("floor_divide", {a, b});
    if (is_integer(both[0].dtype())) return divide_integers(both[0], both[1]);
    if (is_complex(both[0].dtype())) throw TypeError("floor_divide: complex numbers have no floor");
    const Arrays equal_shapes = broadcast_arrays("floor_divide", both);
    return divide_floats(equal_shapes[0], equal_shapes[1]).first;
  };
  return named("floor_divide", divide, x1, x2);
}

Array remainder(const Array& x1, const Array& x2) { return x1 % x2; }

std::pair<Array, Array> divmod(const Array& x1, const Array& x2) {
  const Arrays both = promote_args_numeric("divmod", {x1, x2});
  if (is_integer(both[0].dtype())) return {floor_divide(both[0], both[1]), remainder(both[0], both[1])};
  const Arrays equal_shapes = broadcast_arrays("divmod", both);
  return divide_floats(equal_shapes[0], equal_shapes[1]);
}

Array fmod(const Array& x1, const Array& x2) {
  const auto truncated = [](const Array& a, const Array& b) {
    Array divisor = b;
    if (is_integer(result_type({a, b}).dtype)) divisor = where(b == 0, constant_like(b, 1), b);
    const Arrays both = promote_args_numeric("fmod", {a, divisor});
    return lax::rem(both[0], both[1]);
  };
  return named("fmod", truncated, x1, x2);
}

Array power(const Array& x1, const Array& x2) {
  if (!x2.is_tracer() && x2.ndim() == 0 && is_integer(x2.dtype())) {
    return lax::integer_pow(promote_args_numeric("power", {x1})[0], x2.item<int64_t>());
  }
  const Arrays both = promote_args_numeric("power", {x1, x2});
  if (is_integer(both[0].dtype())) return power_of_integers(both[0], both[1]);
  if (is_inexact(x1.dtype()) && is_integer(x2.dtype())) {
    const Arrays ranked = promote_ranks("power", {x1, x2});
    return lax::pow(ranked[0], ranked[1]);
  }
  return lax::pow(both[0], both[1]);
}

Array gcd(const Array& x1, const Array& x2) {
  const auto divisor = [](const Array& a, const Array& b) {
    const Arrays both = broadcast_arrays("gcd", integers("gcd", a, b));
    return euclid(both[0], both[1]);
  };
  return named("gcd", divisor, x1, x2);
}

Array lcm(const Array& x1, const Array& x2) {
  const auto multiple = [](const Array& a, const Array& b) {
    const Arrays both = integers("lcm", a, b);
    const Array divisor = gcd(both[0], both[1]);
    const Array nothing = lax::eq(divisor, constant_like(divisor, 0));
    return where(nothing, constant_like(divisor, 0), both[0] * floor_divide(both[1], divisor));
  };
  return named("lcm", multiple, x1, x2);
}

}  // namespace capibara::jax::numpy
