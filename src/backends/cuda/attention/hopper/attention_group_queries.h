// The slopes of queries by warpgroups: sums over keys in a fixed order. The last product of one tile runs while those
// of the next do.
#pragma once

#include "backends/cuda/attention/hopper/attention_copies.h"
#include "backends/cuda/attention/attention_slopes.h"
#include "backends/cuda/attention/hopper/attention_worker_stages.h"

namespace capibara::cuda::attention {

template <class T, int D, bool biased, bool split, int Count>
__device__ void work_on_queries(const Problem& p, const RowBlock<rows_of<split>>& rows,
                                const WorkerStages<split, Count>& stages, const BitsView<false>& bits, uint32_t own,
                                uint32_t tiles, float* shared) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  const int worker = stages.worker, count = stages.count();
  Place at = rows.place(p, 64 * worker % rows_of<split>);
  const int first_column = at.column;
  float base[2], delta[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const bool exists = at.row[half] < p.queries;
    base[half] = exists ? base_of(p.lse[rows.begin + at.row[half]]) : infinity;
    delta[half] = exists ? p.delta[rows.begin + at.row[half]] : 0.0f;
  }
  float sums[D / 8][4] = {}, shares[8][4], slopes[8][4];
  uint32_t queries[D / 16][4], narrowed[4][4], seen = 0, kept = 0;
  Level level = none;  // of the visit that was asked for last
  load_rows<T, D>(queries, own);
  auto stage = [&](int i) { return tiles + stages.slot(i) * stage_bytes_of<T, D, biased>; };
  const uint32_t offset = bias_offset<T, D, false>(worker);
  auto wants = [&](int i) {
    if (i == count) return false;
    stages.await_full(i);
    return (level = bits.level(stages.slot(i), worker)) != none;
  };
  auto start_logits = [&](int i) {
    begin_products();
    start_rows<T, D>(shares, queries, stage(i));
    end_products();
  };
  auto start_slopes = [&](int i) {
    begin_products();
    start_rows<T, D>(slopes, own + bytes, stage(i) + bytes);
    end_products();
  };
  auto begin = [&](int i) {
    at.column = first_column + stages.tile(i) * 64;
    if (level != all) seen = bits.seen_word(stages.slot(i), worker);
    if (p.threshold > 0) kept = KeptBits{p, at.dropout[0]}.straight(at.row[0], stages.tile(i) * 64);
  };
  auto share_out = [&](int i) {
    constexpr Bias kind = biased ? Bias::any : Bias::none;
    make_group_logits<T, false, kind>(p, shares, at, stage(i) + offset, level == all, seen);
    make_shares<64>(
        shares, [&](int, int e) { return base[e / 2]; }, factor_of<biased>(p));
    compute_now(shares);
  };
  auto finish = [&] {
    auto row_delta = [&](int, int e) { return delta[e / 2]; };
    if (p.threshold > 0)
      take_slopes<64>(
          p, shares, slopes, [&](int j, int e) { return kept >> bit_of<false>(j, e) & 1; }, row_delta);
    else
      take_slopes<64>(
          p, shares, slopes, [](int, int) { return true; }, row_delta);
    compute_now(slopes);
  };
  for (int i = next_visit(stages, 0, count, wants); i < count; i = next_visit(stages, i + 1, count, wants)) {
    start_logits(i);
    begin(i);
    start_slopes(i);
    await_products<1>();
    share_out(i);
    await_products<0>();
    finish();
    narrow<T>(narrowed, slopes);
    for (; wants(i + 1); ++i) {
      start_logits(i + 1);
      begin(i + 1);  // while the tensor cores compute logits
      start_slopes(i + 1);
      start_across<T, D>(sums, narrowed, stage(i));
      end_products();
      await_products<2>();
      share_out(i + 1);
      compute_first(shares[7][3]);
      await_products<1>();
      finish();
      compute_first(slopes[7][3]);
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
  add_up<split>(worker, shared, sums);
  if (split && worker == 1) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (at.row[half] >= p.queries) continue;
    store_row<T, D>(static_cast<T*>(p.dquery) + (rows.begin + at.row[half]) * p.size, sums, half, p.size, p.scale);
  }
}

template <class T, int D, bool biased, bool split>
__global__ void __launch_bounds__(all_threads, 1)
    group_queries_kernel(const __grid_constant__ Problem p, const __grid_constant__ BoxSources sources) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int bytes = GroupTile<T, D>::bytes, own_tiles = rows_of<split> / 64;
  constexpr int count_of_stages = backward_stages<biased, split>;
  extern __shared__ unsigned char memory[];
  __shared__ Visits visits;
  __shared__ typename Stages<count_of_stages>::Barriers barriers;
  const Stages<count_of_stages> stages(barriers);
  __shared__ TileBits<false> bits[count_of_stages];
  const uint32_t own = aligned_memory(memory), tiles = own + 2 * own_tiles * bytes;
  const RowBlock<rows_of<split>> rows(p, blockIdx.x);
  copy_own_pairs<T, D>(p, p.query, p.cotangent, rows.begin + rows.first, rows.rows - rows.first, own_tiles, own);
  stages.set_up(copied_by_threads<biased>(p), own_tiles * group_threads / 32);
  const int count = visits.fill_for(p, rows);
  await_copies<0>();
  publish_writes();
  __syncthreads();
  if (threadIdx.x < group_threads) {
    keep_registers<copier_registers>();
    copy_keys<T, D, biased>(p, sources, rows, visits, stages, bits, count, tiles);
  } else {
    take_registers<copier_registers>();
    const int worker = threadIdx.x / group_threads - 1;
    const WorkerStages<split, count_of_stages> own_stages{stages, visits, count, worker};
    work_on_queries<T, D, biased, split>(p, rows, own_stages, BitsView<false>(bits),
                                         own + 2 * (worker % own_tiles) * bytes, tiles, aligned_floats(memory));
  }
#endif
}

}  // namespace capibara::cuda::attention
