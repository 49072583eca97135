// The accumulators of a warpgroup in forward attention: shares of its rows, their sums, and the log-sum-exp.
#pragma once

#include "backends/cuda/attention/hopper/attention_extras.h"
#include "backends/cuda/attention/hopper/attention_worker_stages.h"

namespace capibara::cuda::attention {

// The state of a worker: its rows and accumulators. It processes Keys keys at a time.
template <class T, int D, bool biased, int Keys = 64>
struct ForwardWorker {
  static constexpr int parts = Keys / 64;
  const Problem& p;
  Place at;
  int first_row;  // of the warp
  Softmax softmax = {};
  float sums[D / 8][4] = {};
  uint32_t shares[Keys / 16][4];

  template <int Rows>
  __device__ ForwardWorker(const Problem& problem, const RowBlock<Rows>& rows, int worker)
      : p(problem), at(rows.place(problem, 64 * worker % Rows)) {
    first_row = rows.first + 64 * worker % Rows + threadIdx.x / 32 % 4 * 16;
  }

  // The dropout bits, if the worker computes them.
  __device__ uint32_t kept_of(int tile) const { return KeptBits{p, at.dropout[0]}.straight(at.row[0], tile * 64); }

  // Converts logits to shares; sums are rescaled after `ready` has waited for their matmul.
  template <bool drops = true, class Ready>
  __device__ void share_out(float (&logits)[Keys / 8][4], const uint32_t (&kept)[parts], Ready&& ready) {
    float decay[2];
    softmax.take<Keys>(logits, decay, factor_of<biased>(p));
    compute_now(logits);
    compute_first(softmax.sum[0] + softmax.sum[1]);
    ready();
    if (__any_sync(0xffffffffu, decay[0] != 1.0f || decay[1] != 1.0f)) {
#pragma unroll
      for (int j = 0; j < D / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[j][e] *= decay[e / 2];
      }
    }
    narrow<T>(shares, logits);
    if constexpr (drops) {
      if (p.threshold == 0) return;
#pragma unroll
      for (int part = 0; part < parts; ++part) drop_pairs<false>(shares, kept[part], 4 * part);
    }
  }

  // If both workers have the same rows, the second passes its accumulators to the first.
  __device__ void leave_all(float* shared) const {
    const float numbers[1][4] = {{softmax.maximum[0], softmax.maximum[1], softmax.sum[0], softmax.sum[1]}};
    leave(shared, sums);
    leave(shared + D / 2 * group_threads, numbers);
  }
  __device__ void take_left(const float* shared) {
    const float factor = factor_of<biased>(p);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float own = softmax.maximum[half], other = left_value(shared, D / 2 + half), greatest = fmaxf(own, other);
      const float base = greatest == -infinity ? 0.0f : greatest * factor;
      const float decay = power_of_two(own * factor - base), other_decay = power_of_two(other * factor - base);
      softmax.maximum[half] = greatest;
      softmax.sum[half] = softmax.sum[half] * decay + left_value(shared, D / 2 + 2 + half) * other_decay;
#pragma unroll
      for (int i = 0; i < D / 8; ++i) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e)
          sums[i][e] = sums[i][e] * decay + left_value(shared, 4 * i + e) * other_decay;
      }
    }
  }

  template <int Rows>
  __device__ void store(const RowBlock<Rows>& rows) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + threadIdx.x % 32 / 4 + 8 * half;
      const float total = row_sum(softmax.sum[half]);
      if (row >= rows.rows) continue;
      const int64_t to = rows.begin + row;
      const float factor = total == 0 ? 0.0f : (p.threshold > 0 ? p.keep_scale : 1.0f) / total;
      if (threadIdx.x % 4 == 0)
        p.out_lse[to] = total == 0 ? -infinity : softmax.maximum[half] * factor_of<biased>(p) * ln2 + logf(total);
      store_row<T, D>(static_cast<T*>(p.out) + to * p.value_size, sums, half, p.value_size, factor);
    }
  }
};

}  // namespace capibara::cuda::attention
