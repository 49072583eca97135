// Unsigned keys with the same order as the elements of rows.
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "backends/axis_rows.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/array/element.h"

namespace capibara::cpu {

// equal: both zeros share one key, and all NaNs share one; denormals then count as zeros, as in jax. distinct: every
// bit pattern has its own key.
enum class Zeros { equal, distinct };

// The unsigned key type of a compute type, or of its real and imaginary parts.
template <class C>
using KeyOf = std::conditional_t<std::is_same_v<C, double> || std::is_same_v<C, std::complex<double>> ||
                                     (std::is_integral_v<C> && sizeof(C) == 8),
                                 uint64_t, uint32_t>;

template <Zeros Z, class C>
KeyOf<C> key_of(C value) {
  using Key = KeyOf<C>;
  constexpr Key top = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (std::is_floating_point_v<C>) {
    if constexpr (Z == Zeros::equal) {
      if (std::abs(value) < std::numeric_limits<C>::min()) value = 0;
      if (value != value) value = std::numeric_limits<C>::quiet_NaN();
    }
    Key bits = std::bit_cast<Key>(value);
    return bits ^ ((Key{0} - (bits >> (8 * sizeof(Key) - 1))) | top);  // flips all bits if negative, else the sign
  } else if constexpr (std::is_signed_v<C>) {
    return static_cast<Key>(static_cast<Key>(value) ^ top);
  } else {
    return static_cast<Key>(value);
  }
}

// Copies the elements of a row to contiguous memory, in the compute type.
template <class C>
void load_row(DType dtype, const std::byte* data, const AxisRows& rows, int64_t row, std::byte* between, C* out) {
  const int64_t size = storage_size(dtype);
  const std::byte* from = data + rows.start(row) * size;
  if (rows.stride == 1) return load_range<C>(dtype, from, rows.length, out);
  if (stored_as<C>(dtype)) {
    const C* source = reinterpret_cast<const C*>(from);
    for (int64_t i = 0; i < rows.length; ++i) out[i] = source[i * rows.stride];
    return;
  }
  for (int64_t i = 0; i < rows.length; ++i)
    std::memcpy(between + i * size, from + i * rows.stride * size, static_cast<std::size_t>(size));
  load_range<C>(dtype, between, rows.length, out);
}

inline double row_cost(int64_t length) { return 50 + 12.0 * static_cast<double>(length); }

}  // namespace capibara::cpu
