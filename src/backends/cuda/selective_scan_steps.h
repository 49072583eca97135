// A few steps of the selective scan at once: what they read, and what of it depends on no state.
#pragma once

#include <type_traits>

#include "backends/cuda/selective_scan_device.h"

namespace capibara::cuda {
namespace {

// What a few steps read of a channel, all on its way at once.
template <int count>
struct Steps {
  float u[count], delta[count], z[count];
  bool reset[count];

  // From step `t` of `length` on; behind the last, that one again.
  template <class T>
  static __device__ Steps loaded(const Inputs<T>& in, int64_t first_row, int t, int length, int dim, int channel) {
    Steps steps;
#pragma unroll
    for (int k = 0; k < count; ++k) {
      const int64_t row = first_row + min(t + k, length - 1), at = row * dim + channel;
      steps.u[k] = as_float(in.u[at]);
      steps.delta[k] = as_float(in.delta[at]);
      steps.z[k] = in.z ? as_float(in.z[at]) : 0.0f;
      steps.reset[k] = in.reset && in.reset[row];
    }
    return steps;
  }
};

// The sizes of steps; 0 where the thread has no channel.
template <int count>
__device__ void step_sizes(const Steps<count>& steps, float bias, bool has_softplus, bool present, float (&to)[count]) {
#pragma unroll
  for (int k = 0; k < count; ++k) to[k] = steps.delta[k] + bias;
  if (has_softplus) {
#pragma unroll
    for (int k = 0; k < count; ++k) to[k] = softplus(to[k]);
  }
#pragma unroll
  for (int k = 0; k < count; ++k) to[k] = present ? to[k] : 0.0f;
}

// z * sigmoid(z), or 1 where nothing is gated.
template <int count>
__device__ void gates_of(const Steps<count>& steps, bool gated, float (&to)[count]) {
#pragma unroll
  for (int k = 0; k < count; ++k) to[k] = 1.0f;
  if (gated) {
#pragma unroll
    for (int k = 0; k < count; ++k) to[k] = steps.z[k] * sigmoid(steps.z[k]);
  }
}

}  // namespace
}  // namespace capibara::cuda
