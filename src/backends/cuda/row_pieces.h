// Rows of arrays, read and written in 16-byte pieces, with numbers as float32.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "backends/cuda/call_frame.h"

namespace capibara::cuda {
namespace {

// Sixteen bytes of a row.
template <class T>
struct alignas(16) Piece {
  static constexpr int size = 16 / sizeof(T);
  T values[size];
};

inline __device__ float as_float(float value) { return value; }
inline __device__ float as_float(__nv_bfloat16 value) { return __bfloat162float(value); }
inline __device__ float as_float(__half value) { return __half2float(value); }

template <class T>
__device__ T from_float(float value) {
  if constexpr (sizeof(T) == 4)
    return value;
  else if constexpr (std::is_same_v<T, __half>)
    return __float2half(value);
  else
    return __float2bfloat16(value);
}

// Converts a whole piece or one element.
template <class T, int count>
__device__ void widen(const T* from, float (&to)[count]) {
  if constexpr (std::is_same_v<T, __nv_bfloat16> && count % 2 == 0) {
    // By words: single elements would be taken apart and kept in registers of their own.
#pragma unroll
    for (int i = 0; i < count; i += 2) {
      const uint32_t word = *reinterpret_cast<const uint32_t*>(from + i);
      to[i] = __uint_as_float(word << 16);
      to[i + 1] = __uint_as_float(word & 0xffff0000u);
    }
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i) to[i] = as_float(from[i]);
  }
}

template <class T>
__device__ uint32_t packed(float first, float second) {
  if constexpr (std::is_same_v<T, __half>) {
    const __half2 pair = __floats2half2_rn(first, second);
    return reinterpret_cast<const uint32_t&>(pair);
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    return reinterpret_cast<const uint32_t&>(pair);
  }
}

// Stores a whole piece at once: the compiler would split the store where it cannot see the alignment.
template <class T>
__device__ void put_piece(T* to, const float (&values)[Piece<T>::size]) {
  uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(T) == 4)
      words[i] = __float_as_uint(values[i]);
    else
      words[i] = packed<T>(values[2 * i], values[2 * i + 1]);
  }
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]),
               "r"(words[3])
               : "memory");
}

// Exponentials: accurate to the last bits if the result type keeps them; otherwise results below 2^-126 are zero, which
// saves the instructions that scale them.
inline constexpr float per_power = 1.4426950408889634f;  // 1 / log(2)
inline __device__ float power_of_two(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
template <class T>
__device__ float power(float x) {
  return sizeof(T) == 4 ? expf(x) : power_of_two(x * per_power);
}
// exp(x - from) with `scaled` = from / log(2), whose rounding 16-bit results do not show.
template <class T>
__device__ float power_above(float x, float from, float scaled) {
  return sizeof(T) == 4 ? expf(x - from) : power_of_two(fmaf(x, per_power, -scaled));
}

// Starts copying 16 bytes into shared memory.
inline __device__ void copy_piece(void* shared, const void* global) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
      "l"(global));
}
inline __device__ void commit_pieces() { asm volatile("cp.async.commit_group;\n" ::); }
template <int left>
__device__ void wait_pieces() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(left));
}

// ---- handlers -----------------------------------------------------------------------------------------------------

inline unsigned grid_of(int64_t rows) { return static_cast<unsigned>(rows < (1 << 30) ? rows : 1 << 30); }

// Rounds `wanted` threads up to whole warps, at most `limit`.
inline int whole_warps(int64_t wanted, int limit) {
  const int64_t threads = (wanted + 31) / 32 * 32;
  return static_cast<int>(threads < 32 ? 32 : threads < limit ? threads : limit);
}

// Calls `start` with a value of the element type; false if it is none of the three.
template <class Start>
bool with_type(int32_t dtype, const Start& start) {
  if (dtype == f32)
    start(float{});
  else if (dtype == bf16)
    start(__nv_bfloat16{});
  else if (dtype == f16)
    start(__half{});
  else
    return false;
  return true;
}

inline cudaStream_t own_stream(const ffi::CallFrame* frame) { return static_cast<cudaStream_t>(ffi::stream_of(frame)); }

// The return value of a handler after its kernels are launched.
inline void* outcome(const ffi::CallFrame* frame) {
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : ffi::failure(frame, cudaGetErrorString(status));
}

}  // namespace
}  // namespace capibara::cuda
