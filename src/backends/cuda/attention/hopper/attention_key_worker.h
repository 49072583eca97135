// What a worker does for the slopes of keys and values: sums over queries, and the slopes of logits, which are stored
// where a bias needs them.
#pragma once

#include "backends/cuda/attention/hopper/attention_bias_tiles.h"
#include "backends/cuda/attention/hopper/attention_query_copies.h"
#include "backends/cuda/attention/attention_slopes.h"
#include "backends/cuda/attention/hopper/attention_worker_stages.h"

namespace capibara::cuda::attention {

template <class T, int D, Bias kind, bool split, int Count>
__device__ void work_on_keys(const Problem& p, const BoxSources& sources, const KeyBlock<rows_of<split>>& keys,
                             const WorkerStages<split, Count>& stages, const BitsView<true>& bits, uint32_t numbers,
                             uint32_t own, uint32_t tiles, float* shared) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  constexpr bool biased = kind != Bias::none, bare = kind == Bias::bare;
  const int worker = stages.worker, count = stages.count();
  const bool stores = bare || (biased && p.slopes), drops = !bare && p.threshold > 0;
  const int lane = threadIdx.x % 32, first_row = keys.first + 64 * worker % rows_of<split> + threadIdx.x / 32 % 4 * 16;
  Place at{keys.batch, {-1, -1}, {first_row + lane / 4, first_row + lane / 4 + 8}, 0, {}};
  float key_sums[D / 8][4] = {}, value_sums[D / 8][4] = {}, shares[8][4], slopes[8][4];
  uint32_t narrow_shares[4][4], narrow_slopes[4][4];
  Level level = none;  // of the visit that was asked for last, and what it sees
  uint32_t seen = 0;
  int dropout_head = -1;
  uint2 dropout{};
  const uint32_t own_operand = operand_at(own), offset = bias_offset<T, D, true>(worker);
  numbers += lane % 4 * 8;
  asm volatile("" : "+r"(numbers));
  auto numbers_of = [&](int i) { return numbers + stages.slot(i) * static_cast<int>(sizeof(RowNumbers)); };
  auto stage = [&](int i) { return tiles + stages.slot(i) * stage_bytes_of<T, D, biased>; };
  auto wants = [&](int i) {
    if (i == count) return false;
    stages.await_full(i);
    level = bits.level(stages.slot(i), worker);
    if (level != all) seen = level == some ? bits.seen_word(stages.slot(i), worker) : 0;
    return level != none || (stores && stages.level(i) != none);
  };
  // What products are added to, where that is how a bias is added.
  auto prepare = [&](int i) {
    if constexpr (bare) {
      float2 base[8];
      load_numbers(base, numbers_of(i));
      BiasTile<T>::template load<true>(shares, stage(i) + offset, [&](float bias, int j, int e) {
        return bias * p.bias_factor - (e % 2 ? base[j].y : base[j].x);
      });
      compute_now(shares);
    }
  };
  // From the logits until the last products are on their way.
  auto step = [&](int i) {
    const uint32_t from = stage(i), operand = operand_at(from), own_numbers = numbers_of(i);
    if constexpr (bare) {
      spread_numbers(slopes, own_numbers + 256);
      compute_now(slopes);
    }
    begin_products();
    start_rows_of<T, D, bare>(shares, own_operand, operand);
    end_products();
    uint32_t kept = 0;
    if (drops) {
      const auto place = keys.at(stages.tile(i));
      if (place.head != dropout_head) dropout = dropout_key(p, keys.batch, dropout_head = place.head);
      kept = KeptBits{p, dropout}.turned(place.query, first_row);
    }
    begin_products();
    start_rows_of<T, D, bare>(slopes, own_operand + bytes / 16, operand + bytes / 16);
    end_products();
    if (biased && !bare && !has_bias_pieces(p)) {
      const auto place = keys.at(stages.tile(i));
      at.head[0] = at.head[1] = place.head;
      at.column = place.query + 2 * (lane % 4);
    }
    const bool whole = level == all;
    float2 base[8];  // loaded before the logits are there
    if (!bare) load_numbers(base, own_numbers);
    await_products<1>();
    make_group_logits<T, true, kind>(p, shares, at, from + offset, whole, seen);
    auto base_at = [&](int j, int e) { return e % 2 ? base[j].y : base[j].x; };
    make_shares<64>(
        shares, [&](int j, int e) { return bare ? 0.0f : base_at(j, e); }, factor_of<biased>(p));
    compute_now(shares);
    narrow<T>(narrow_shares, shares);
    if (drops) drop_pairs<true>(narrow_shares, kept);
    begin_products();
    start_across_of<T, D>(value_sums, narrow_shares, operand + bytes / 16);
    end_products();
    await_products<1>();
    float2 deltas[8];
    if (!bare) load_numbers(deltas, own_numbers + 256);
    auto delta = [&](int j, int e) { return e % 2 ? deltas[j].y : deltas[j].x; };
    if constexpr (bare)
      multiply_all(slopes, shares);
    else if (drops)
      take_slopes<64>(
          p, shares, slopes, [&](int j, int e) { return kept >> bit_of<true>(j, e) & 1; }, delta);
    else
      take_slopes<64>(
          p, shares, slopes, [](int, int) { return true; }, delta);
    compute_now(slopes);
    narrow<T>(narrow_slopes, slopes);
    if (stores) store_turned<T>(from + offset, narrow_slopes);  // where the bias was
    begin_products();
    start_across_of<T, D>(key_sums, narrow_slopes, operand);
    end_products();
    if (!stores || !may_send_tile(worker)) return;
    const auto place = keys.at(stages.tile(i));
    const uint32_t tile = from + 2 * bytes + worker * bias_tile_bytes;
    const SlopeBoxes to(p, sources, keys.batch, place.head);
    store_box(to.boxes, tile, keys.first + 64 * worker, place.query, to.number);
  };
  for (int i = next_visit(stages, 0, count, wants); i < count; i = next_visit(stages, i + 1, count, wants)) {
    prepare(i);
    for (bool more = true; more; ++i) {
      step(i);
      more = bare && wants(i + 1);  // neighbours: nothing is skipped while a stage is held
      if (more) prepare(i + 1);     // while the last products are computed
      await_products<0>();
      if (stores && sends_tiles()) await_stores();
      stages.release(i);
    }
    --i;
  }
  add_up<split>(worker, shared, key_sums);
  add_up<split>(worker, shared + D / 2 * group_threads, value_sums);
  if (split && worker == 1) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t to = keys.begin + at.row[half];
    if (at.row[half] >= p.keys) continue;
    store_row<T, D>(static_cast<T*>(p.dkey) + to * p.size, key_sums, half, p.size, p.scale);
    const float factor = drops ? p.keep_scale : 1.0f;
    store_row<T, D>(static_cast<T*>(p.dvalue) + to * p.value_size, value_sums, half, p.value_size, factor);
  }
}

}  // namespace capibara::cuda::attention
