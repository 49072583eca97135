// Arrays as abstract values: a math/ template called with Array expands into operations, under whatever trace is
// current.
//
// Every value and constant has one shape (broadcast_operands first), since StableHLO's operations do not broadcast.
// Float16 and narrower types are computed in float32: convert before and after.
#pragma once

#include <array>
#include <tuple>

#include <capibara/lax.h>

#include "lax/math/value.h"
#include "lax/rules.h"
#include "program/ir/build.h"

namespace capibara {

inline Array logical_and(const Array& a, const Array& b) { return jax::lax::bitwise_and(a, b); }
inline Array logical_or(const Array& a, const Array& b) { return jax::lax::bitwise_or(a, b); }
inline Array logical_not(const Array& a) { return jax::lax::bitwise_not(a); }

namespace math {

template <>
struct Operations<Array> {
  using Condition = Array;

  static bool is_double(const Array& like) { return like.dtype() == DType::float64; }
  static Array constant(double value, const Array& like) {
    const Array scalar = scalar_of(like.dtype(), value);
    return like.ndim() == 0 ? scalar : jax::lax::broadcast_in_dim(scalar, like.shape(), {});
  }

  static Array abs(const Array& x) { return jax::lax::abs(x); }
  static Array exp(const Array& x) { return jax::lax::exp(x); }
  static Array expm1(const Array& x) { return jax::lax::expm1(x); }
  static Array log(const Array& x) { return jax::lax::log(x); }
  static Array log1p(const Array& x) { return jax::lax::log1p(x); }
  static Array tanh(const Array& x) { return jax::lax::tanh(x); }
  static Array sin(const Array& x) { return jax::lax::sin(x); }
  static Array cos(const Array& x) { return jax::lax::cos(x); }
  static Array tan(const Array& x) { return jax::lax::tan(x); }
  static Array atan2(const Array& y, const Array& x) { return jax::lax::atan2(y, x); }
  static Array pow(const Array& x, const Array& y) { return jax::lax::pow(x, y); }
  static Array sqrt(const Array& x) { return jax::lax::sqrt(x); }
  static Array rsqrt(const Array& x) { return jax::lax::rsqrt(x); }
  static Array cbrt(const Array& x) { return jax::lax::cbrt(x); }
  static Array floor(const Array& x) { return jax::lax::floor(x); }
  static Array ceil(const Array& x) { return jax::lax::ceil(x); }
  static Array round(const Array& x) { return jax::lax::round(x); }
  static Array round_nearest_even(const Array& x) {
    return jax::lax::round(x, jax::lax::RoundingMethod::to_nearest_even);
  }
  static Array rem(const Array& x, const Array& y) { return jax::lax::rem(x, y); }
  static Array erf(const Array& x) { return jax::lax::erf(x); }
  static Array multiply_add(const Array& x, const Array& y, const Array& z) { return x * y + z; }
  static Array maximum(const Array& x, const Array& y) { return jax::lax::max(x, y); }
  static Array minimum(const Array& x, const Array& y) { return jax::lax::min(x, y); }

  // There is no operation for it: the sign bit is copied by bit operations.
  static Array copysign(const Array& magnitude, const Array& sign) {
    const DType bits = is_double(sign) ? DType::int64 : DType::int32;
    const Array one = scalar_of(bits, 1), places = scalar_of(bits, is_double(sign) ? 63 : 31);
    const auto whole = [&](const Array& scalar) {
      return sign.ndim() == 0 ? scalar : jax::lax::broadcast_in_dim(scalar, sign.shape(), {});
    };
    const Array ones = whole(one), mask = jax::lax::shift_left(ones, whole(places));
    const Array sign_bit = jax::lax::bitwise_and(jax::lax::bitcast_convert_type(sign, bits), mask);
    const Array magnitude_bits = jax::lax::bitcast_convert_type(magnitude, bits);
    const Array rest = jax::lax::bitwise_and(magnitude_bits, jax::lax::bitwise_not(mask));
    return jax::lax::bitcast_convert_type(jax::lax::bitwise_or(sign_bit, rest), sign.dtype());
  }

  static Array lt(const Array& x, const Array& y) { return jax::lax::lt(x, y); }
  static Array le(const Array& x, const Array& y) { return jax::lax::le(x, y); }
  static Array gt(const Array& x, const Array& y) { return jax::lax::gt(x, y); }
  static Array ge(const Array& x, const Array& y) { return jax::lax::ge(x, y); }
  static Array eq(const Array& x, const Array& y) { return jax::lax::eq(x, y); }
  static Array ne(const Array& x, const Array& y) { return jax::lax::ne(x, y); }
  static Array is_finite(const Array& x) { return jax::lax::is_finite(x); }
  static Array select(const Array& condition, const Array& yes, const Array& no) {
    return jax::lax::select(condition, yes, no);
  }

  template <class Other>
  static Array rarely(const Array& condition, const Array& value, Other&& other) {
    return jax::lax::select(condition, other(), value);
  }

  // One while loop for all elements: an element whose condition has failed keeps its state.
  template <class... S, class While, class Body>
  static std::tuple<S...> iterate(std::tuple<S...> state, While&& goes_on, Body&& body) {
    constexpr std::size_t count = sizeof...(S);
    const auto pack = [](std::span<const Array> values) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::tuple<S...>(values[I]...); }
      (std::make_index_sequence<count>{});
    };
    const auto flatten = [](const std::tuple<S...>& values) {
      return std::apply([](const auto&... v) { return Arrays{v...}; }, values);
    };
    const Arrays flat = while_loop(
        flatten(state), [&](std::span<const Array> s) { return std::apply(goes_on, pack(s)); },
        [&](std::span<const Array> s) { return flatten(std::apply(body, pack(s))); });
    return pack(flat);
  }

 private:
  static Arrays while_loop(const Arrays& state, const std::function<Array(std::span<const Array>)>& goes_on,
                           const FlatFunction& body);
};

}  // namespace math
}  // namespace capibara
