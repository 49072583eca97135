// A few steps of the selective scan at once: what they read, and what of it depends on no state.
#pragma once

#include <type_traits>

#include "backends/cuda/selective_scan_device.h"

namespace capibara::cuda {
namespace {

// What a few steps read of a channel. Nothing waits for it here: there is no branch and no conversion, and where there
// is no gate or no reset something else is read in their place.
template <class T, int count>
struct Steps {
  T us[count], deltas[count], zs[count];
  uint8_t resets[count];
  bool resetting;

  // From step `t` of `length` on; behind the last, that one again.
  static __device__ Steps loaded(const Inputs<T>& in, int64_t first_row, int t, int length, int dim, int channel) {
    const T* const gates = in.z ? in.z : in.u;
    const uint8_t* const resets = in.reset ? in.reset : reinterpret_cast<const uint8_t*>(in.u);
    Steps steps;
    steps.resetting = in.reset != nullptr;
#pragma unroll
    for (int k = 0; k < count; ++k) {
      const int64_t row = first_row + min(t + k, length - 1), at = row * dim + channel;
      steps.us[k] = in.u[at];
      steps.deltas[k] = in.delta[at];
      steps.zs[k] = gates[at];
      steps.resets[k] = resets[row];
    }
    return steps;
  }

  __device__ float u(int k) const { return as_float(us[k]); }
  __device__ float delta(int k) const { return as_float(deltas[k]); }
  __device__ float z(int k) const { return as_float(zs[k]); }
  __device__ bool reset(int k) const { return resetting && resets[k] != 0; }
};

// The sizes of steps; 0 where the thread has no channel.
template <class T, int count>
__device__ void step_sizes(const Steps<T, count>& steps, float bias, bool has_softplus, bool present,
                           float (&to)[count]) {
#pragma unroll
  for (int k = 0; k < count; ++k) to[k] = steps.delta(k) + bias;
  if (has_softplus) {
#pragma unroll
    for (int k = 0; k < count; ++k) to[k] = softplus(to[k]);
  }
#pragma unroll
  for (int k = 0; k < count; ++k) to[k] = present ? to[k] : 0.0f;
}

// z * sigmoid(z), or 1 where nothing is gated.
template <class T, int count>
__device__ void gates_of(const Steps<T, count>& steps, bool gated, float (&to)[count]) {
#pragma unroll
  for (int k = 0; k < count; ++k) to[k] = 1.0f;
  if (gated) {
#pragma unroll
    for (int k = 0; k < count; ++k) to[k] = steps.z(k) * sigmoid(steps.z(k));
  }
}

}  // namespace
}  // namespace capibara::cuda
