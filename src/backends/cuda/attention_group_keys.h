// The slopes of keys and values by warpgroups: rows are keys, sums go over the queries of all heads of a group in a
// fixed order.
#pragma once

#include "backends/cuda/attention_query_copies.h"
#include "backends/cuda/attention_slopes.h"
#include "backends/cuda/attention_worker_stages.h"

namespace capibara::cuda::attention {

template <class T, int D, bool biased, bool split, int Count>
__device__ void work_on_keys(const Problem& p, const KeyBlock<rows_of<split>>& keys,
                             const WorkerStages<split, Count>& stages, const BitsView<true>& bits, uint32_t numbers,
                             uint32_t own, uint32_t tiles, float* shared) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  const int worker = stages.worker, count = stages.count();
  const int lane = threadIdx.x % 32, first_row = keys.first + 64 * worker % rows_of<split> + threadIdx.x / 32 % 4 * 16;
  Place at{keys.batch, {-1, -1}, {first_row + lane / 4, first_row + lane / 4 + 8}, 0, {}};
  float key_sums[D / 8][4] = {}, value_sums[D / 8][4] = {}, shares[8][4], slopes[8][4];
  uint32_t narrow_shares[4][4], narrow_slopes[4][4];
  Level level = none;  // of the visit that was asked for last, and what it sees
  uint32_t seen = 0;
  int dropout_head = -1;
  uint2 dropout{};
  auto stage = [&](int i) { return tiles + stages.slot(i) * stage_bytes_of<T, D, biased>; };
  auto wants = [&](int i) {
    if (i == count) return false;
    stages.await_full(i);
    level = bits.level(stages.slot(i), worker);
    if (level == some) seen = bits.seen_word(stages.slot(i), worker);
    return level != none;
  };
  auto start_logits = [&](int i) {
    begin_products();
    start_rows<T, D>(shares, own, stage(i));
    end_products();
  };
  // From when the logits are on their way until the last products are.
  auto step = [&](int i) {
    const uint32_t from = stage(i);
    const uint32_t own_numbers = numbers + stages.slot(i) * static_cast<int>(sizeof(RowNumbers));
    uint32_t kept = 0;
    if (p.threshold > 0) {
      const auto place = keys.at(stages.tile(i));
      if (place.head != dropout_head) dropout = dropout_key(p, keys.batch, dropout_head = place.head);
      kept = KeptBits{p, dropout}.turned(place.query, first_row);
    }
    begin_products();
    start_rows<T, D>(slopes, own + bytes, from + bytes);
    end_products();
    if (biased && !has_bias_pieces(p)) {
      const auto place = keys.at(stages.tile(i));
      at.head[0] = at.head[1] = place.head;
      at.column = place.query + 2 * (lane % 4);
    }
    const bool whole = level == all;
    float2 base[8];  // loaded before the logits are there
#pragma unroll
    for (int j = 0; j < 8; ++j) base[j] = load_pair(own_numbers + (4 * j + lane % 4) * 8);
    await_products<1>();
    make_group_logits<T, true, biased>(p, shares, at, from + 2 * bytes, worker, whole, seen);
    make_shares<64>(
        shares, [&](int j, int e) { return e % 2 ? base[j].y : base[j].x; }, factor_of<biased>(p));
    compute_now(shares);
    narrow<T>(narrow_shares, shares);
    if (p.threshold > 0) drop_pairs<true>(narrow_shares, kept);
    begin_products();
    start_across<T, D>(value_sums, narrow_shares, from + bytes);
    end_products();
    await_products<1>();
    float2 deltas[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) deltas[j] = load_pair(own_numbers + 256 + (4 * j + lane % 4) * 8);
    auto delta = [&](int j, int e) { return e % 2 ? deltas[j].y : deltas[j].x; };
    if (p.threshold > 0)
      take_slopes<64>(
          p, shares, slopes, [&](int j, int e) { return kept >> bit_of<true>(j, e) & 1; }, delta);
    else
      take_slopes<64>(
          p, shares, slopes, [](int, int) { return true; }, delta);
    compute_now(slopes);
    narrow<T>(narrow_slopes, slopes);
    begin_products();
    start_across<T, D>(key_sums, narrow_slopes, from);
    end_products();
  };
  for (int i = next_visit(stages, 0, count, wants); i < count; i = next_visit(stages, i + 1, count, wants)) {
    start_logits(i);
    step(i);
    await_products<0>();
    stages.release(i);
  }
  add_up<split>(worker, shared, key_sums);
  add_up<split>(worker, shared + D / 2 * group_threads, value_sums);
  if (split && worker == 1) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t to = keys.begin + at.row[half];
    if (at.row[half] >= p.keys) continue;
    store_row<T, D>(static_cast<T*>(p.dkey) + to * p.size, key_sums, half, p.size, p.scale);
    const float factor = p.threshold > 0 ? p.keep_scale : 1.0f;
    store_row<T, D>(static_cast<T*>(p.dvalue) + to * p.value_size, value_sums, half, p.value_size, factor);
  }
}

template <class T, int D, bool biased, bool split>
__global__ void __launch_bounds__(all_threads, 1)
    group_keys_kernel(const __grid_constant__ Problem p, const __grid_constant__ BoxSources sources) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int bytes = GroupTile<T, D>::bytes, own_tiles = rows_of<split> / 64;
  constexpr int count_of_stages = backward_stages<biased, split>;
  extern __shared__ unsigned char memory[];
  __shared__ Visits visits;
  __shared__ typename Stages<count_of_stages>::Barriers barriers;
  const Stages<count_of_stages> stages(barriers);
  __shared__ TileBits<true> bits[count_of_stages];
  __shared__ RowNumbers numbers[count_of_stages];
  __shared__ NextVisits ahead;
  const uint32_t own = aligned_memory(memory), tiles = own + 2 * own_tiles * bytes;
  const KeyBlock<rows_of<split>> block(p, blockIdx.x);
  copy_own_pairs<T, D>(p, p.key, p.value, block.begin + block.first, p.keys - block.first, own_tiles, own);
  stages.set_up(copied_by_threads<biased>(p), own_tiles * group_threads / 32);
  const int count = visits.fill(p.per_group() * block.query_tiles, [&](int tile, int worker) {
    if (worker >= own_tiles) return none;
    const auto at = block.at(tile);
    const int key = block.first + 64 * worker;
    return seen_in(p, {at.query, at.query + 64, key, key + 64}, block.batch, at.head);
  });
  await_copies<0>();
  publish_writes();
  __syncthreads();
  if (threadIdx.x < group_threads) {
    keep_registers<key_copier_registers>();
    copy_queries<T, D, biased>(p, sources, block, visits, stages, bits, numbers, ahead, count, tiles);
  } else {
    take_registers<key_copier_registers>();
    const int worker = threadIdx.x / group_threads - 1;
    const WorkerStages<split, count_of_stages> own_stages{stages, visits, count, worker};
    work_on_keys<T, D, biased, split>(p, block, own_stages, BitsView<true>(bits), kept_address(numbers),
                                      own + 2 * (worker % own_tiles) * bytes, tiles, aligned_floats(memory));
  }
#endif
}

}  // namespace capibara::cuda::attention
