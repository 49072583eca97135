// Attention forwards by warpgroups, 128 keys at a time: two visits of 64 are one, and keys and values have slots of
// their own, so that those of the keys are free as soon as the logits are computed.
#pragma once

#include "backends/cuda/attention_forward_worker.h"
#include "backends/cuda/attention_wide_copies.h"

namespace capibara::cuda::attention {

template <class T, int D, int Count>
__device__ void work_wide_forward(const Problem& p, const RowBlock<group_rows>& rows, const Visits& visits,
                                  const Stages<Count>& stages, const WideBits* bits, int count, int worker,
                                  uint32_t own, uint32_t slots) {
  ForwardWorker<T, D, false, wide_keys> work(p, rows, worker);
  uint32_t seen[2] = {}, kept[2] = {};
  bool whole[2] = {};
  auto slot = [&](int item) { return slots + item % Count * WideTile<T, D>::bytes; };
  auto wants = [&](int i) {
    if (i == count || (visits.level(2 * i, worker) == none && visits.level(2 * i + 1, worker) == none)) return false;
    stages.await_full(2 * i);
    const WideBits& own_bits = bits[i % Count];
    return own_bits[0].level(worker) != none || own_bits[1].level(worker) != none;
  };
  // The workers take turns at starting products: one computes shares while the tensor cores work for the other. Each
  // takes one turn for every visit, wanted or not.
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
      const TileBits<false>& own_bits = bits[i % Count][part];
      const Level level = own_bits.level(worker);
      whole[part] = level == all;
      if (level != all) seen[part] = level == none ? 0 : own_bits.seen_word(worker);
      if (p.threshold > 0) kept[part] = work.kept_of(visits.tile(2 * i + part));
    }
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
    begin(i);
    await_products<0>();
    share_out(logits, i, [] {});
    for (; wants(i + 1); ++i) {
      stages.await_full(2 * i + 1);  // before the first product: no wait may come between two of them
      turn();
      start_logits(logits, i + 1);
      begin(i + 1);  // while the tensor cores compute logits
      begin_products();
      start_sums(i);
      give_turn();
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
__global__ void __launch_bounds__(all_threads, 1) wide_forward_kernel(const __grid_constant__ Problem p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int bytes = GroupTile<T, D>::bytes;
  extern __shared__ unsigned char memory[];
  __shared__ Visits visits;
  __shared__ Stages<wide_slots<D>> stages;
  __shared__ WideBits bits[wide_slots<D>];
  const uint32_t queries = aligned_memory(memory), slots = queries + workers * bytes;
  const RowBlock<group_rows> rows(p, blockIdx.x);
  copy_own_queries<T, D>(p, rows, queries);
  stages.set_up();
  const int found = visits.fill_for(p, rows), count = (found + 1) / 2;
  if (threadIdx.x == 0 && found % 2) visits.entries[found] = 0;  // a tile that no worker sees
  await_copies<0>();
  publish_writes();
  __syncthreads();
  if (threadIdx.x < group_threads) {
    give_registers<copier_registers>();
    copy_wide_keys<T, D>(p, rows, visits, stages, bits, count, slots);
  } else {
    take_registers<worker_registers>();
    const int worker = threadIdx.x / group_threads - 1;
    work_wide_forward<T, D>(p, rows, visits, stages, bits, count, worker, queries + worker * bytes, slots);
  }
#endif
}

}  // namespace capibara::cuda::attention
