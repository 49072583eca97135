// Accumulation for dot products and convolutions: the accumulator type and the inner loop.
#pragma once

#include <complex>

#include "backends/reference/kernels.h"
#include "core/array/element.h"

namespace capibara::reference {

// Up to this many products of 32-bit floats are summed as in XLA, rounded at each step.
inline constexpr int64_t short_sum = 64;

// Calls f(Type<A>{}) with the accumulator type for sums of `terms` products: all integers wrap in 64 bits, floats
// accumulate in double except in short sums, booleans are "or" of "and".
template <class F>
decltype(auto) visit_product(DType lhs, DType rhs, DType out, int64_t terms, F&& f) {
  const bool narrow = terms <= short_sum;
  if (is_complex(lhs) || is_complex(rhs) || is_complex(out)) {
    if (narrow && out == DType::complex64) return f(Type<std::complex<float>>{});
    return f(Type<std::complex<double>>{});
  }
  if (is_floating(lhs) || is_floating(rhs) || is_floating(out)) {
    if (narrow && out == DType::float32) return f(Type<float>{});
    return f(Type<double>{});
  }
  if (is_bool(lhs) && is_bool(rhs) && is_bool(out)) return f(Type<bool>{});
  return f(Type<int64_t>{});
}

// target[i] += factor * row[i].
template <class A>
void add_scaled(A factor, const A* row, A* target, int64_t count) {
  if constexpr (std::is_same_v<A, bool>) {
    for (int64_t i = 0; i < count; ++i) target[i] = target[i] || (factor && row[i]);
  } else if constexpr (std::is_integral_v<A>) {
    for (int64_t i = 0; i < count; ++i) {
      target[i] = static_cast<A>(static_cast<uint64_t>(target[i]) +
                                 static_cast<uint64_t>(factor) * static_cast<uint64_t>(row[i]));
    }
  } else if constexpr (std::is_floating_point_v<A>) {
    for (int64_t i = 0; i < count; ++i) target[i] += factor * row[i];
  } else {
    auto re = factor.real(), im = factor.imag();
    for (int64_t i = 0; i < count; ++i) {
      target[i] += A(re * row[i].real() - im * row[i].imag(), re * row[i].imag() + im * row[i].real());
    }
  }
}

// The operands in the form to multiply: mixed dtypes are converted to the result's, and an algorithm may round them.
std::pair<Array, Array> product_operands(const Array& lhs, const Array& rhs, DType out, const Attrs& attrs);

}  // namespace capibara::reference
