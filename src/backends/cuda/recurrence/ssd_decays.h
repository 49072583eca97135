// The steps of a chunk of the state space dual, and the decay of the state over ranges of them.
#pragma once

#include "backends/cuda/recurrence/ssd_problem.h"
#include "backends/cuda/recurrence/state_space_numbers.h"

namespace capibara::cuda {
namespace {

// Steps as loaded, by a warp with two in each lane.
struct SsdSteps {
  __nv_bfloat16 dt[2];
  bool cleared[2];

  __device__ void fetch(const SsdInputs& in, const SsdSizes& s, int batch, int head, int t0) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int t = t0 + threadIdx.x % 32 * 2 + i;
      const bool exists = t >= 0 && t < s.length;
      const int64_t row = static_cast<int64_t>(batch) * s.length + (exists ? t : 0);
      dt[i] = in.dt[row * s.heads + head];
      cleared[i] = in.reset && exists && in.reset[row] != 0;
    }
  }
};

// Decays stay base-2 exponents until they are needed: sums of steps * A up to each step; resets up to each step.
struct Decays {
  float step[ssd_chunk];
  float sums[ssd_chunk];
  float from_start[ssd_chunk], to_end[ssd_chunk];  // from the start of the chunk to the step, from there to the end
  int counts[ssd_chunk];
  float whole;

  __device__ float between(int to, int from) const {
    return from <= to && counts[from] == counts[to] ? exp2_fast(sums[to] - sums[from]) : 0.0f;
  }

  // Called by the warp that has loaded the steps; those after the last have size 0.
  __device__ void fill(const SsdSteps& steps, const SsdInputs& in, const SsdSizes& s, int head, int t0) {
    const int lane = threadIdx.x % 32;
    const float rate = in.A[head] * log2_e, bias = in.bias[head];
    float own[2], total = 0;
    int cleared[2], count = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float raw = __bfloat162float(steps.dt[i]) + bias;
      const float size = t0 + 2 * lane + i < s.length ? (s.has_softplus ? softplus(raw) : raw) : 0.0f;
      step[2 * lane + i] = size;
      own[i] = total += size * rate;
      cleared[i] = count += steps.cleared[i];
    }
    float before = total;
    int count_before = count;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const float sum = __shfl_up_sync(0xffffffffu, before, distance);
      const int number = __shfl_up_sync(0xffffffffu, count_before, distance);
      if (lane >= distance) before += sum, count_before += number;
    }
    const float last = __shfl_sync(0xffffffffu, before, 31);
    const int all = __shfl_sync(0xffffffffu, count_before, 31);
    before = __shfl_up_sync(0xffffffffu, before, 1);
    count_before = __shfl_up_sync(0xffffffffu, count_before, 1);
    if (lane == 0) before = 0, count_before = 0, whole = all == 0 ? exp2_fast(last) : 0.0f;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int q = 2 * lane + i, number = count_before + cleared[i];
      const float sum = before + own[i];
      sums[q] = sum;
      counts[q] = number;
      from_start[q] = number == 0 ? exp2_fast(sum) : 0.0f;
      to_end[q] = number == all ? exp2_fast(last - sum) : 0.0f;
    }
  }
};

}  // namespace
}  // namespace capibara::cuda
