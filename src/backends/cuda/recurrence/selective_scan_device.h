// Device code shared by the kernels of the selective scan: positions of threads, steps in shared memory.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "backends/cuda/recurrence/selective_scan_split.h"
#include "backends/cuda/recurrence/state_space_numbers.h"
#include "backends/cuda/row_pieces.h"

// Four neighbouring channels of a row, as one load or store where rows are aligned for it.

namespace capibara::cuda {
namespace {

// Stored as words and unpacked only when needed: unpacking right after the load would stall on it.
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

// Loads from `channel` of a row of `dim`; zeros if the row or channel does not exist.
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

// The inputs and outputs of the selective scan's kernels.

struct ScanSizes {
  int64_t batch;
  int length, dim, states, chunk, chunks, segments, segment_chunks;
  bool has_softplus;
};

template <class T>
struct ScanInputs {
  const T *u, *delta, *B, *C, *z;
  const float *A, *D, *bias, *initial;
  const uint8_t* reset;
};

// Additional inputs of the backward kernels, and their outputs.
template <class T>
struct ScanGradients {
  const T* dy;
  const float *dlast, *starts;
  T *du, *ddelta, *dB, *dC, *dz;
  float *dA, *dD, *dbias, *dinitial;
  float* ends;     // contributions of segments to gradients
  float* partial;  // [batch][segments][dA, dD, dbias]; with a single segment these are the results
  float* sums;     // [batch][blocks][length][2][width]
};

cudaError_t start_scan_backward(const ScanInputs<float>& in, const ScanSizes& s, const ScanGradients<float>& out,
                                cudaStream_t stream);
cudaError_t start_scan_backward(const ScanInputs<__nv_bfloat16>& in, const ScanSizes& s,
                                const ScanGradients<__nv_bfloat16>& out, cudaStream_t stream);

inline dim3 scan_grid(const ScanSplit& split, const ScanSizes& s, int segments) {
  return {static_cast<unsigned>(split.blocks_of(s.dim)), static_cast<unsigned>(s.batch),
          static_cast<unsigned>(segments)};
}

// Launches a kernel whose shared memory is a `Memory`.
template <class Memory, class Kernel, class... Args>
cudaError_t start_scan_kernel(Kernel* kernel, dim3 blocks, int threads, cudaStream_t stream, Args... args) {
  constexpr int bytes = static_cast<int>(sizeof(Memory));
  const cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  kernel<<<blocks, threads, bytes, stream>>>(args...);
  return cudaGetLastError();
}

namespace {

// The channels and states of a thread; the segment of its block.
template <int Own, int Parts, int Lane>
struct Place {
  static constexpr int threads = Parts * 32, channels = Lane * 32, width = Own * Parts;
  int batch, first_channel, channel, part, segment, dim, states;
  int64_t first_row;

  __device__ Place(const ScanSizes& s, int segment)
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
  // The index in [batch, dim, state].
  __device__ int64_t by_channel(int l, int i) const {
    return (static_cast<int64_t>(batch) * dim + channel + l) * states + state(i);
  }
  // The index in slice `index` of [..., state, dim].
  __device__ int64_t by_state(int64_t index, int64_t rows, int l, int i) const {
    return (index * rows + state(i)) * dim + channel + l;
  }
  // The decay of a state per unit of time, as a base-2 exponent.
  __device__ float decay(const float* A, int l, int i) const {
    return exists(l, i) ? A[static_cast<int64_t>(channel + l) * states + state(i)] * log2_e : 0.0f;
  }
};

// Accesses `count` floats of shared memory at once.
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
