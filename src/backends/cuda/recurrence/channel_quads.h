// Four neighbouring channels of a row, as one load or store where rows are aligned for it.
#pragma once

#include "backends/cuda/row_pieces.h"

namespace capibara::cuda {
namespace {

// As words, which the compiler leaves alone until they are needed: taken apart at once they would be waited for.
template <class T>
struct alignas(4 * sizeof(T)) Quad {
  uint32_t words[sizeof(T)];

  __device__ float operator[](int i) const {
    if constexpr (sizeof(T) == 4) {
      return __uint_as_float(words[i]);
    } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
      return __uint_as_float(i % 2 ? words[i / 2] & 0xffff0000u : words[i / 2] << 16);
    } else {
      return __half2float(__ushort_as_half(static_cast<unsigned short>(words[i / 2] >> i % 2 * 16)));
    }
  }
};

// From `channel` of a row of `dim`; zeros where there is no row or no channel.
template <class T>
__device__ Quad<T> load_quad(const T* row, int channel, int dim, bool exists) {
  Quad<T> quad{};
  if (dim % 4 == 0) {
    if (exists && channel < dim) quad = *reinterpret_cast<const Quad<T>*>(row + channel);
  } else {
    T values[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] = exists && channel + i < dim ? row[channel + i] : from_float<T>(0.0f);
    if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int i = 0; i < 4; ++i) quad.words[i] = __float_as_uint(values[i]);
    } else {
      quad.words[0] = packed<T>(as_float(values[0]), as_float(values[1]));
      quad.words[1] = packed<T>(as_float(values[2]), as_float(values[3]));
    }
  }
  return quad;
}

template <class T>
__device__ void store_quad(T* row, int channel, int dim, const float (&values)[4]) {
  if (dim % 4 == 0) {
    Quad<T> quad;
    if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int i = 0; i < 4; ++i) quad.words[i] = __float_as_uint(values[i]);
    } else {
      quad.words[0] = packed<T>(values[0], values[1]);
      quad.words[1] = packed<T>(values[2], values[3]);
    }
    if (channel < dim) *reinterpret_cast<Quad<T>*>(row + channel) = quad;
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (channel + i < dim) row[channel + i] = from_float<T>(values[i]);
    }
  }
}

inline __device__ void store_floats(float* to, float a, float b, float c, float d) {
  *reinterpret_cast<float4*>(to) = {a, b, c, d};
}

}  // namespace
}  // namespace capibara::cuda
