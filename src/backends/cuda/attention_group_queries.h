// The slopes of queries by warpgroups: sums over keys in a fixed order. The last product of one tile runs while those
// of the next do.
#pragma once

#include "backends/cuda/attention_group_forward.h"
#include "backends/cuda/attention_slopes.h"

namespace capibara::cuda::attention {

template <class T, int D, int Count>
__device__ void work_on_queries(const Problem& p, const RowBlock<group_rows>& rows, const Visits& visits,
                                const Stages<Count>& stages, int count, int worker, uint32_t own, uint32_t tiles) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  Place at = rows.place(p, 64 * worker);
  const int first_column = at.column;
  float base[2], delta[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const bool exists = at.row[half] < p.queries;
    base[half] = exists ? base_of(p.lse[rows.begin + at.row[half]]) : infinity;
    delta[half] = exists ? p.delta[rows.begin + at.row[half]] : 0.0f;
  }
  float sums[D / 8][4] = {}, shares[8][4], slopes[8][4];
  uint32_t narrowed[4][4];
  Extras<T, false> extras;
  auto stage = [&](int i) { return tiles + i % Count * stage_bytes_of<T, D>; };
  auto start = [&](int i) {
    stages.await_full(i);
    begin_products();
    start_rows<T, D>(shares, own, stage(i));
    end_products();
    start_rows<T, D>(slopes, own + bytes, stage(i) + bytes);
    end_products();
  };
  auto load = [&](int i) {
    at.column = first_column + visits.tile(i) * 64;
    extras.load(p, at);
  };
  auto finish = [&] {
    make_slopes<false, 64>(
        p, shares, slopes, at, [&](int, int e) { return base[e / 2]; }, [&](int, int e) { return delta[e / 2]; },
        factor_of(p));
  };
  for (int i = next_visit(visits, stages, 0, count, worker); i < count;
       i = next_visit(visits, stages, i + 1, count, worker)) {
    start(i);
    load(i);
    await_products<0>();
    extras.apply(p, shares, at, visits.level(i, worker) == all, stage(i) + 2 * bytes, worker);
    finish();
    narrow<T>(narrowed, slopes);
    for (; i + 1 < count && visits.level(i + 1, worker) != none; ++i) {
      start(i + 1);
      start_across<T, D>(sums, narrowed, stage(i));
      end_products();
      load(i + 1);
      await_products<2>();
      extras.apply(p, shares, at, visits.level(i + 1, worker) == all, stage(i + 1) + 2 * bytes, worker);
      await_products<1>();
      finish();
      await_products<0>();
      stages.release(i);
      narrow<T>(narrowed, slopes);
    }
    begin_products();
    start_across<T, D>(sums, narrowed, stage(i));
    end_products();
    await_products<0>();
    stages.release(i);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (at.row[half] >= p.queries) continue;
    store_row<T, D>(static_cast<T*>(p.dquery) + (rows.begin + at.row[half]) * p.size, sums, half, p.size, p.scale);
  }
}

template <class T, int D>
__global__ void __launch_bounds__(all_threads, 1) group_queries_kernel(const __grid_constant__ Problem p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int bytes = GroupTile<T, D>::bytes;
  extern __shared__ unsigned char memory[];
  __shared__ Visits visits;
  __shared__ Stages<backward_stages> stages;
  const uint32_t own = aligned_memory(memory), tiles = own + 2 * workers * bytes;
  const RowBlock<group_rows> rows(p, blockIdx.x);
  for (int w = 0; w < workers; ++w) {
    const int first = rows.first + 64 * w, exist = rows.rows - first;
    const T *queries = static_cast<const T*>(p.query) + (rows.begin + first) * p.size,
            *cotangents = static_cast<const T*>(p.cotangent) + (rows.begin + first) * p.value_size;
    GroupTile<T, D>::template copy<all_threads>(own + 2 * w * bytes, queries, exist, p.size);
    GroupTile<T, D>::template copy<all_threads>(own + (2 * w + 1) * bytes, cotangents, exist, p.value_size);
  }
  end_copies();
  stages.set_up();
  const int count = visits.fill((p.keys + 63) / 64, [&](int tile, int worker) {
    const int query = rows.first + 64 * worker;
    return seen_in(p, {query, query + 64, tile * 64, tile * 64 + 64}, rows.batch, rows.head);
  });
  await_copies<0>();
  publish_writes();
  __syncthreads();
  if (threadIdx.x < group_threads) {
    give_registers<copier_registers>();
    copy_keys<T, D>(p, rows, visits, stages, count, tiles);
  } else {
    take_registers<worker_registers>();
    const int worker = threadIdx.x / group_threads - 1;
    work_on_queries<T, D>(p, rows, visits, stages, count, worker, own + 2 * worker * bytes, tiles);
  }
#endif
}

}  // namespace capibara::cuda::attention
