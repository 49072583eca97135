// Rows of arrays as kernels read and write them: pieces of 16 bytes, numbers as float32, sums of a block.
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

// Of a whole piece, or of one element.
template <class T, int count>
__device__ void widen(const T* from, float (&to)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) to[i] = as_float(from[i]);
}

// Exponentials: exact to the last bits where the result keeps them.
template <class T>
__device__ float power(float x) {
  return sizeof(T) == 4 ? expf(x) : __expf(x);
}

// Numbers that the warps of a block tell each other. Two sets, used in turns: one barrier for each exchange.
template <class Value>
struct Exchange {
  Value values[2][32];
};

// The sums of two numbers over a block, known to all its threads; `turn` counts the calls.
inline __device__ float2 block_sums(float a, float b, Exchange<float2>& exchange, int turn) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    a += __shfl_xor_sync(0xffffffffu, a, step);
    b += __shfl_xor_sync(0xffffffffu, b, step);
  }
  const int warps = (blockDim.x + 31) / 32;
  if (warps == 1) return {a, b};
  float2* const own = exchange.values[turn % 2];
  if (threadIdx.x % 32 == 0) own[threadIdx.x / 32] = {a, b};
  __syncthreads();
  float2 total{0, 0};
  for (int i = 0; i < warps; ++i) {
    total.x += own[i].x;
    total.y += own[i].y;
  }
  return total;
}

inline __device__ float block_max(float a, Exchange<float2>& exchange, int turn) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) a = fmaxf(a, __shfl_xor_sync(0xffffffffu, a, step));
  const int warps = (blockDim.x + 31) / 32;
  if (warps == 1) return a;
  float2* const own = exchange.values[turn % 2];
  if (threadIdx.x % 32 == 0) own[threadIdx.x / 32].x = a;
  __syncthreads();
  float greatest = own[0].x;
  for (int i = 1; i < warps; ++i) greatest = fmaxf(greatest, own[i].x);
  return greatest;
}

// Starts a copy of 16 bytes into shared memory.
inline __device__ void copy_piece(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
               "l"(global));
}
inline __device__ void commit_pieces() { asm volatile("cp.async.commit_group;\n" ::); }
template <int left>
__device__ void wait_pieces() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(left));
}

// Calls `visit(column, values)` for all elements of a row of any length and alignment: whole pieces where the row has
// them, single elements before and behind. Four pieces of a thread are on their way at once.
template <class T, class Visit>
__device__ void visit_row(const T* row, int columns, const Visit& visit) {
  constexpr int size = Piece<T>::size, ahead = 4;
  const int past = static_cast<int>(reinterpret_cast<uintptr_t>(row) / sizeof(T) % size);
  const int head = min((size - past) % size, columns), pieces = (columns - head) / size, tail = head + pieces * size;
  auto single = [&](int column) {
    float value[1] = {as_float(row[column])};
    visit(column, value);
  };
  for (int i = threadIdx.x; i < head; i += blockDim.x) single(i);
  const auto* from = reinterpret_cast<const Piece<T>*>(row + head);
  for (int first = threadIdx.x; first < pieces; first += ahead * blockDim.x) {
    Piece<T> loaded[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int at = first + i * blockDim.x;
      if (at < pieces) loaded[i] = from[at];
    }
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int at = first + i * blockDim.x;
      if (at >= pieces) break;
      float values[size];
      widen<T, size>(loaded[i].values, values);
      visit(head + at * size, values);
    }
  }
  for (int i = tail + threadIdx.x; i < columns; i += blockDim.x) single(i);
}

// Values as visit_row hands them out, written to the same columns of a row that is aligned as that one.
template <class T, int count>
__device__ void write_values(T* row, int column, const float (&values)[count]) {
  if constexpr (count == 1) {
    row[column] = from_float<T>(values[0]);
  } else {
    Piece<T> piece;
#pragma unroll
    for (int i = 0; i < count; ++i) piece.values[i] = from_float<T>(values[i]);
    *reinterpret_cast<Piece<T>*>(row + column) = piece;
  }
}

// ---- handlers -----------------------------------------------------------------------------------------------------

inline unsigned grid_of(int64_t rows) { return static_cast<unsigned>(rows < (1 << 30) ? rows : 1 << 30); }

// A number of threads for `wanted` of them: whole warps, at most `limit`.
inline int whole_warps(int64_t wanted, int limit) {
  const int64_t threads = (wanted + 31) / 32 * 32;
  return static_cast<int>(threads < 32 ? 32 : threads < limit ? threads : limit);
}

// Calls `start` with a number of the element type; false where it is none of the three.
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

// What a handler returns once its kernels are started.
inline void* outcome(const ffi::CallFrame* frame) {
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : ffi::failure(frame, cudaGetErrorString(status));
}

}  // namespace
}  // namespace capibara::cuda
