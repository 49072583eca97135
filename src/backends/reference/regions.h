// Regions of scalars evaluated on whole arrays at once, and the folds of the recognised ones.
#pragma once

#include <cmath>
#include <complex>
#include <type_traits>
#include <vector>

#include "backends/reference/kernels.h"
#include "core/array/element.h"
#include "lax/reduce/monoid.h"

namespace capibara::reference {

// A program on scalars, applied element by element to arrays of one shape. Elementwise equations run once on all
// elements; a program with any other equation is interpreted once per element.
class Region {
 public:
  explicit Region(Program program);

  const Program& program() const { return program_; }
  std::optional<Monoid> monoid() const { return monoid_; }
  Arrays operator()(std::span<const Array> inputs) const;

 private:
  Arrays apply_wide(const Program& program, std::span<const Array> inputs, const Shape& shape) const;
  Arrays apply_each(std::span<const Array> inputs, const Shape& shape) const;
  Array widened(const Array& constant, const Shape& shape) const;

  Program program_;
  std::optional<Monoid> monoid_;
  bool elementwise_ = false;
};

// Elements converted as convert_element_type does.
Array converted(const Array& x, DType dtype);
// A copy of the array with its dimensions permuted.
Array permute(const Array& x, const Ints& permutation);
// The same bytes with another shape.
Array reshaped(const Array& x, Shape shape);
// A copy of one row of a [rows, ...] array.
Array take_row(const Array& x, int64_t row, const Shape& row_shape);
// A rank-0 value repeated.
Array repeat(const Array& scalar, const Shape& shape);

// The accumulator type of a monoid: sums of 32-bit floats accumulate in 64 bits and are rounded once at the end.
template <Monoid M, class C>
struct AccumulatorOf {
  using type = C;
};
template <>
struct AccumulatorOf<Monoid::add, float> {
  using type = double;
};
template <>
struct AccumulatorOf<Monoid::add, std::complex<float>> {
  using type = std::complex<double>;
};
template <Monoid M, class C>
using Accumulator = typename AccumulatorOf<M, C>::type;

// Signed integers wrap like unsigned ones.
template <class C>
C wrapping_add(C x, C y) {
  if constexpr (std::is_same_v<C, bool>)
    return x || y;
  else if constexpr (std::is_integral_v<C>)
    return static_cast<C>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
  else
    return x + y;
}
template <class C>
C wrapping_mul(C x, C y) {
  if constexpr (std::is_same_v<C, bool>)
    return x && y;
  else if constexpr (std::is_integral_v<C>)
    return static_cast<C>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  else if constexpr (is_complex_number<C>) {
    // The textbook product, rounded as by XLA on the CPU: one product first, the other fused with the sum.
    return C(std::fma(x.real(), y.real(), -(x.imag() * y.imag())), std::fma(x.imag(), y.real(), x.real() * y.imag()));
  } else
    return x * y;
}

template <bool Highest, class C>
C choose_extreme(C x, C y) {
  if constexpr (is_complex_number<C>) {
    bool take = x.real() == y.real() ? (Highest ? x.imag() > y.imag() : x.imag() < y.imag())
                                     : (Highest ? x.real() > y.real() : x.real() < y.real());
    return take ? x : y;
  } else if constexpr (std::is_floating_point_v<C>) {
    if (x != x) return x;
    if (y != y) return y;
    if (x == y) return (std::signbit(x) == Highest) ? y : x;
    return (Highest ? x > y : x < y) ? x : y;
  } else {
    return (Highest ? x > y : x < y) ? x : y;
  }
}

// accumulator op element.
template <Monoid M, class A>
A combine(A accumulator, A element) {
  if constexpr (M == Monoid::add)
    return wrapping_add(accumulator, element);
  else if constexpr (M == Monoid::mul)
    return wrapping_mul(accumulator, element);
  else if constexpr (M == Monoid::max)
    return choose_extreme<true>(accumulator, element);
  else if constexpr (M == Monoid::min)
    return choose_extreme<false>(accumulator, element);
  else if constexpr (!std::is_integral_v<A>)
    return accumulator;
  else if constexpr (M == Monoid::bit_and)
    return static_cast<A>(accumulator & element);
  else if constexpr (M == Monoid::bit_or)
    return static_cast<A>(accumulator | element);
  else
    return static_cast<A>(accumulator ^ element);
}

template <Monoid M>
struct MonoidTag {
  static constexpr Monoid value = M;
};
// Calls f(MonoidTag<M>{}) for a monoid known at run time.
template <class F>
decltype(auto) visit_monoid(Monoid monoid, F&& f) {
  switch (monoid) {
    case Monoid::add:
      return f(MonoidTag<Monoid::add>{});
    case Monoid::mul:
      return f(MonoidTag<Monoid::mul>{});
    case Monoid::max:
      return f(MonoidTag<Monoid::max>{});
    case Monoid::min:
      return f(MonoidTag<Monoid::min>{});
    case Monoid::bit_and:
      return f(MonoidTag<Monoid::bit_and>{});
    case Monoid::bit_or:
      return f(MonoidTag<Monoid::bit_or>{});
    default:
      return f(MonoidTag<Monoid::bit_xor>{});
  }
}

// The bitwise monoids fold integers and booleans only.
template <Monoid M, class C>
inline constexpr bool folds =
    std::is_integral_v<C> || M == Monoid::add || M == Monoid::mul || M == Monoid::max || M == Monoid::min;

// Running folds along one axis, O(n); used by cumulative operations and by windows that extend to one end.
Array running_fold(Monoid monoid, const Array& x, int64_t axis, bool reverse, const ArrayType& out_type);

}  // namespace capibara::reference
