// The visits of a worker, and combining the accumulators of two workers with the same rows.
#pragma once

#include "backends/cuda/attention/hopper/attention_groups.h"

namespace capibara::cuda::attention {

// `split`: both workers of a block have the same 64 rows and alternate visits; else each has 64 rows and all visits.
// Splitting wastes nothing if neighbouring rows see few common tiles.
template <bool split>
inline constexpr int rows_of = split ? 64 : group_rows;

// The stages of a worker's visits, indexed by its own visits.
template <bool split, int Count>
struct WorkerStages {
  const Stages<Count>& stages;
  const Visits& visits;
  int all, worker;

  __device__ int count() const { return split ? (all + 1 - worker) / 2 : all; }
  __device__ int visit(int i) const { return split ? 2 * i + worker : i; }
  __device__ int slot(int i) const { return visit(i) % Count; }
  __device__ int tile(int i) const { return visits.tile(visit(i)); }
  __device__ Level level(int i) const { return visits.level(visit(i), split ? 0 : worker); }
  __device__ void await_full(int i) const { stages.await_full(visit(i)); }
  __device__ void release(int i) const { stages.release(visit(i)); }
};

// Waits until both workers arrive.
inline __device__ void meet_worker() { asm volatile("bar.sync 1, %0;" ::"n"(workers * group_threads) : "memory"); }

// A thread of the second worker passes values through shared memory to the same thread of the first.
template <int N>
__device__ void leave(float* shared, const float (&values)[N][4]) {
#pragma unroll
  for (int i = 0; i < 4 * N; ++i) shared[i * group_threads + threadIdx.x % group_threads] = values[i / 4][i % 4];
}
inline __device__ float left_value(const float* shared, int i) {
  return shared[i * group_threads + threadIdx.x % group_threads];
}
template <int N>
__device__ void add_left(float (&values)[N][4], const float* shared) {
#pragma unroll
  for (int i = 0; i < 4 * N; ++i) values[i / 4][i % 4] += left_value(shared, i);
}

// Adds the sums of the second worker to those of the first if both have the same rows.
template <bool split, int N>
__device__ void add_up(int worker, float* shared, float (&sums)[N][4]) {
  if constexpr (split) {
    meet_worker();
    if (worker == 1) leave(shared, sums);
    meet_worker();
    if (worker == 0) add_left(sums, shared);
  }
}

// The next visit, from i on, that the worker needs; skipped ones are released.
template <class OwnStages, class Wants>
__device__ int next_visit(const OwnStages& stages, int i, int count, Wants&& wants) {
  for (; i < count && !wants(i); ++i) {
    stages.await_full(i);
    stages.release(i);
  }
  return i;
}

}  // namespace capibara::cuda::attention
