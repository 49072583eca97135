// The reverse derivative of routing: a warp for each token.
#pragma once

#include "backends/cuda/experts/token_rows.h"

namespace capibara::cuda {
namespace {

struct Call {
  int tokens, experts, choices, capacity;
  bool renormalize, load_balancing;
};

constexpr int pull_warps = 8;  // of a block, a token each

// The cotangents of weights and loss pulled back to the logits: a warp for each token.
template <class T, int per_lane>
__global__ void __launch_bounds__(32 * pull_warps)
    pull(const float* dweights, const float* dloss, const T* logits, const int* experts, const float* weights,
         const int* load, T* dlogits, Call call) {
  const int lane = threadIdx.x % 32, token = blockIdx.x * pull_warps + threadIdx.x / 32;
  if (token >= call.tokens) return;
  float values[per_lane], slopes[per_lane], changes[per_lane] = {};
  load_row<T, per_lane>(logits + static_cast<int64_t>(token) * call.experts, call.experts, values);
  const int64_t copy = static_cast<int64_t>(token) * call.choices + lane;
  const bool is_choice = lane < call.choices;
  const int expert = is_choice ? experts[copy] : -1;
  const float slope = is_choice && weights[copy] != 0 ? dweights[copy] : 0;
  float of_choice = call.renormalize ? 0 : slope;  // what this lane's choice adds to its expert's slope
  if (call.renormalize) {
    float own = 0;
    for (int j = 0; j < call.choices; ++j) {
      const int other = __shfl_sync(all_lanes, expert, j);
      float value = 0;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) value += other == lane + 32 * i ? values[i] : 0;
      value = warp_sum(value);
      if (lane == j) own = value;
    }
    float greatest = is_choice ? own : -INFINITY;
    for (int step = 16; step > 0; step /= 2) greatest = fmaxf(greatest, __shfl_xor_sync(all_lanes, greatest, step));
    const float power = is_choice ? expf(own - greatest) : 0, share = power / warp_sum(power);
    of_choice = share * (slope - warp_sum(share * slope));
  }
  for (int j = 0; j < call.choices; ++j) {
    const int other = __shfl_sync(all_lanes, expert, j);
    const float added = __shfl_sync(all_lanes, of_choice, j);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) changes[i] += other == lane + 32 * i ? added : 0;
  }
  if (call.load_balancing || !call.renormalize) {
    const float copies = static_cast<float>(call.tokens) * static_cast<float>(call.choices);
    const float factor = static_cast<float>(call.experts) / copies * *dloss / static_cast<float>(call.tokens);
    float greatest = -INFINITY, sum = 0, mean = 0, shares[per_lane];
#pragma unroll
    for (int i = 0; i < per_lane; ++i) greatest = fmaxf(greatest, values[i]);
    for (int step = 16; step > 0; step /= 2) greatest = fmaxf(greatest, __shfl_xor_sync(all_lanes, greatest, step));
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      const bool exists = lane + 32 * i < call.experts;
      shares[i] = exists ? expf(values[i] - greatest) : 0;
      slopes[i] = exists && call.load_balancing ? static_cast<float>(load[lane + 32 * i]) * factor : 0;
      if (!call.renormalize) slopes[i] += changes[i];
      sum += shares[i];
    }
    sum = warp_sum(sum);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) mean += shares[i] / sum * slopes[i];
    mean = warp_sum(mean);
#pragma unroll
    for (int i = 0; i < per_lane; ++i)
      changes[i] = (call.renormalize ? changes[i] : 0) + shares[i] / sum * (slopes[i] - mean);
  }
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    if (lane + 32 * i < call.experts)
      store(dlogits + static_cast<int64_t>(token) * call.experts + lane + 32 * i, changes[i]);
  }
}

}  // namespace
}  // namespace capibara::cuda
