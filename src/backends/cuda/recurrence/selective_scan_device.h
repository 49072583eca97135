// What the kernels of the selective scan share on the device: places of threads, steps in shared memory.
#pragma once

#include "backends/cuda/recurrence/channel_quads.h"
#include "backends/cuda/recurrence/selective_scan_problem.h"
#include "backends/cuda/recurrence/state_space_numbers.h"

namespace capibara::cuda {
namespace {

// Which channels and states a thread has; which part of the sequence its block.
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
