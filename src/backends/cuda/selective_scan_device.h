// What the kernels of the selective scan share on the device: numbers, places of threads, steps in shared memory.
#pragma once

#include "backends/cuda/row_pieces.h"
#include "backends/cuda/selective_scan_split.h"

namespace capibara::cuda {
namespace {

constexpr float log2_e = 1.4426950408889634f;

struct Sizes {
  int length, dim, states, chunk, chunks, segments, segment_chunks;
  bool has_softplus;
};

template <class T>
struct Inputs {
  const T *u, *delta, *B, *C, *z;
  const float *A, *D, *bias, *initial;
  const uint8_t* reset;
};

inline __device__ float exp2_fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
inline __device__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + exp2_fast(-x * log2_e)); }
// max(x, 0) + log(1 + e) of e = exp(-|x|), as 2 artanh(e / (2 + e)): exact for small e too.
inline __device__ float softplus(float x) {
  const float e = exp2_fast(-fabsf(x) * log2_e), s = __fdividef(e, 2.0f + e), q = s * s;
  float sum = 2.0f / 13;
  sum = sum * q + 2.0f / 11;
  sum = sum * q + 2.0f / 9;
  sum = sum * q + 2.0f / 7;
  sum = sum * q + 2.0f / 5;
  sum = sum * q + 2.0f / 3;
  sum = sum * q + 2.0f;
  return fmaxf(x, 0.0f) + s * sum;
}

// ---- four neighbouring channels ----------------------------------------------------------------------------------

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

// ---- threads -----------------------------------------------------------------------------------------------------

// Which channels and states a thread has; which part of the sequence its block.
template <int Own, int Parts, int Lane>
struct Place {
  static constexpr int threads = Parts * 32, channels = Lane * 32, width = Own * Parts;
  int batch, first_channel, channel, part, segment, dim, states;
  int64_t first_row;

  __device__ Place(const Sizes& s, int segment)
      : batch(blockIdx.y),
        first_channel(blockIdx.x * channels),
        channel(first_channel + threadIdx.x % 32 * Lane),
        part(threadIdx.x / 32),
        segment(segment),
        dim(s.dim),
        states(s.states),
        first_row(static_cast<int64_t>(blockIdx.y) * s.length) {}
  __device__ int state(int i) const { return part * Own + i; }
  __device__ bool exists(int l, int i) const { return channel + l < dim && state(i) < states; }
  // Of [batch, dim, state].
  __device__ int64_t by_channel(int l, int i) const {
    return (static_cast<int64_t>(batch) * dim + channel + l) * states + state(i);
  }
  // Of [..., state, dim], in its slice `index`.
  __device__ int64_t by_state(int64_t index, int64_t rows, int l, int i) const {
    return (index * rows + state(i)) * dim + channel + l;
  }
  // The decay of a state per unit of time, as an exponent of 2.
  __device__ float decay(const float* A, int l, int i) const {
    return exists(l, i) ? A[static_cast<int64_t>(channel + l) * states + state(i)] * log2_e : 0.0f;
  }
};

// `count` floats of shared memory at once.
template <int count>
__device__ void read_floats(const float* from, float (&to)[count]) {
  if constexpr (count % 4 == 0) {
#pragma unroll
    for (int i = 0; i < count / 4; ++i) {
      const float4 four = reinterpret_cast<const float4*>(from)[i];
      to[4 * i] = four.x, to[4 * i + 1] = four.y, to[4 * i + 2] = four.z, to[4 * i + 3] = four.w;
    }
  } else if constexpr (count == 2) {
    const float2 two = *reinterpret_cast<const float2*>(from);
    to[0] = two.x, to[1] = two.y;
  } else {
    static_assert(count == 1, "1, 2, or whole fours");
    to[0] = from[0];
  }
}
template <int count>
__device__ void write_floats(float* to, const float (&from)[count]) {
  if constexpr (count == 2)
    *reinterpret_cast<float2*>(to) = {from[0], from[1]};
  else
    to[0] = from[0];
}

}  // namespace
}  // namespace capibara::cuda
