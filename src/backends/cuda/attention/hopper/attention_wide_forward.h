// Forward attention by warpgroups, 128 keys at a time: two visits of 64 are merged, and keys and values have separate
// slots, so that those of the keys are free as soon as the logits are computed.
#pragma once

#include "backends/cuda/attention/hopper/attention_copies.h"
#include "backends/cuda/attention/hopper/attention_forward_worker.h"

// The copier warpgroup of forward attention with 128 keys: keys and values in separate slots.

namespace capibara::cuda::attention {

inline constexpr int wide_keys = 128;
template <class T, int D>
using WideTile = TileOf<T, D, wide_keys>;
// Slots alternately hold keys and values.
template <int D>
inline constexpr int wide_slots = D == 64 ? 8 : 5;
template <class T, int D>
inline constexpr int wide_bytes = workers* GroupTile<T, D>::bytes + wide_slots<D>* WideTile<T, D>::bytes + 1024;

using WideBits = TileBits<false>[2];

template <class T, int D, int Count>
__device__ void copy_wide_keys(const Problem& p, const BoxSources& sources, const RowBlock<group_rows>& rows,
                               const Visits& visits, const Stages<Count>& stages, WideBits* bits, int count,
                               uint32_t slots) {
  const int head = rows.batch * p.groups + rows.group;
  const int64_t row = static_cast<int64_t>(head) * p.keys;
  const bool odd = has_odd_rows(p);
  const int query = rows.first + static_cast<int>(threadIdx.x);
  auto mask_of = [&](int visit) {
    return visit < 2 * count ? mask_word(p, rows.batch, rows.head, query, visits.tile(visit) * 64) : 0;
  };
  auto copy = [&](int slot, int item, uint32_t barrier) {
    const bool values = item % 2;
    const uint32_t to = slots + slot * WideTile<T, D>::bytes;
    if (!odd) {
      if (threadIdx.x != 0) return;
      expect_bytes(barrier, WideTile<T, D>::bytes);
      for (int part = 0; part < 2; ++part) {
        const int first = visits.tile(item / 2 * 2 + part) * 64;
        start_boxes<D, wide_keys>(to + part * 64 * 128, values ? sources.value : sources.key, first, head, barrier);
      }
      return;
    }
    const int width = values ? p.value_size : p.size;
    const T* from = static_cast<const T*>(values ? p.value : p.key);
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const int first = visits.tile(item / 2 * 2 + part) * 64;
      WideTile<T, D>::template copy<group_threads, 64>(to + part * 64 * 128, from + (row + first) * width,
                                                       p.keys - first, width);
    }
  };
  uint64_t next[2] = {mask_of(0), mask_of(1)};  // loaded while the previous visits are copied
  auto make = [&](int, int item) {
    if (item % 2) return;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const uint64_t mask = next[part];
      next[part] = mask_of(item + 2 + part);
      bits[item / 2 % Count][part].write_seen(p, visits.level(item + part, threadIdx.x / 64), rows.batch, rows.head,
                                              query, visits.tile(item + part) * 64, mask);
    }
  };
  stages.copy_all(2 * count, odd, odd, copy, make);
}

template <class T, int D, int Count>
__device__ void work_wide_forward(const Problem& p, const RowBlock<group_rows>& rows, const Visits& visits,
                                  const Stages<Count>& stages, const BitsView<false>& bits, int count, int worker,
                                  uint32_t own, uint32_t slots) {
  ForwardWorker<T, D, false, wide_keys> work(p, rows, worker);
  uint32_t seen[2] = {}, kept[2] = {};
  bool whole[2] = {};
  Level levels[2] = {};  // of the last visit queried
  auto slot = [&](int item) { return slots + item % Count * WideTile<T, D>::bytes; };
  auto wants = [&](int i) {
    if (i == count) return false;
    stages.await_full(2 * i);
    for (int part = 0; part < 2; ++part) levels[part] = bits.level(i % Count * 2 + part, worker);
    return levels[0] != none || levels[1] != none;
  };
  // The workers alternate in starting matmuls: one computes shares while the tensor cores work for the other. Each
  // takes one slot per visit, masked or not.
  auto turn = [&] { asm volatile("bar.sync %0, %1;" ::"r"(2 + worker), "n"(2 * group_threads) : "memory"); };
  auto give_turn = [&] { asm volatile("bar.arrive %0, %1;" ::"r"(3 - worker), "n"(2 * group_threads) : "memory"); };
  if (worker == 1) give_turn();
  auto next = [&](int i) {
    for (; i < count && !wants(i); ++i) {
      turn();
      give_turn();
      for (int item = 2 * i; item < 2 * i + 2; ++item) {
        stages.await_full(item);
        stages.release(item);
      }
    }
    return i;
  };
  auto begin = [&](int i) {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const int number = i % Count * 2 + part;
      whole[part] = levels[part] == all;
      if (!whole[part]) seen[part] = levels[part] == none ? 0 : bits.seen_word(number, worker);
    }
  };
  // The dropout bits, computed before the second matmul starts: alongside two matmuls they take longer.
  auto drop = [&](int i) {
    if (p.threshold == 0) return;
#pragma unroll
    for (int part = 0; part < 2; ++part) kept[part] = work.kept_of(visits.tile(2 * i + part));
  };
  auto start_logits = [&](float(&logits)[wide_keys / 8][4], int i) {
    begin_products();
    start_rows<T, D>(logits, own, slot(2 * i));
    end_products();
  };
  auto start_sums = [&](int i) {
    start_across<T, D>(work.sums, work.shares, slot(2 * i + 1));
    end_products();
  };
  auto share_out = [&](float(&logits)[wide_keys / 8][4], int i, auto&& ready) {
    stages.release(2 * i);
    if (!(p.scale > 0)) scale_all(logits, p.scale * log2e);
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      if (!whole[part]) hide<false>(logits, seen[part], 8 * part);
    }
    work.share_out(logits, kept, ready);
  };
  for (int i = next(0); i < count; i = next(i + 1)) {
    float logits[wide_keys / 8][4];
    turn();
    start_logits(logits, i);
    give_turn();
    drop(i);
    begin(i);
    await_products<0>();
    share_out(logits, i, [] {});
    for (; wants(i + 1); ++i) {
      stages.await_full(2 * i + 1);  // before the first matmul: no wait may come between two of them
      turn();
      start_logits(logits, i + 1);
      drop(i + 1);  // overlaps with the logits on the tensor cores
      begin_products();
      start_sums(i);
      give_turn();
      begin(i + 1);
      await_products<1>();
      share_out(logits, i + 1, [&] {
        await_products<0>();
        stages.release(2 * i + 1);
      });
    }
    stages.await_full(2 * i + 1);
    begin_products();
    start_sums(i);
    await_products<0>();
    stages.release(2 * i + 1);
  }
  work.store(rows);
}

template <class T, int D>
__global__ void __launch_bounds__(all_threads, 1)
    wide_forward_kernel(const __grid_constant__ Problem p, const __grid_constant__ BoxSources sources) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int bytes = GroupTile<T, D>::bytes;
  extern __shared__ unsigned char memory[];
  __shared__ Visits visits;
  __shared__ typename Stages<wide_slots<D>>::Barriers barriers;
  const Stages<wide_slots<D>> stages(barriers);
  __shared__ WideBits bits[wide_slots<D>];
  const uint32_t queries = aligned_memory(memory), slots = queries + workers * bytes;
  const RowBlock<group_rows> rows(p, blockIdx.x);
  copy_own_queries<T, D>(p, rows, queries);
  stages.set_up(has_odd_rows(p));
  const int found = visits.fill_for(p, rows), count = (found + 1) / 2;
  if (threadIdx.x == 0 && found % 2) visits.entries[found] = 0;  // a tile that no worker sees
  await_copies<0>();
  publish_writes();
  __syncthreads();
  if (threadIdx.x < group_threads) {
    keep_registers<copier_registers>();
    copy_wide_keys<T, D>(p, sources, rows, visits, stages, bits, count, slots);
  } else {
    take_registers<copier_registers>();
    const int worker = threadIdx.x / group_threads - 1;
    work_wide_forward<T, D>(p, rows, visits, stages, BitsView<false>(bits), count, worker, queries + worker * bytes,
                            slots);
  }
#endif
}

}  // namespace capibara::cuda::attention
