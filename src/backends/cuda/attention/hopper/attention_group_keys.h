// The slopes of keys and values by warpgroups: rows are keys, sums go over the queries of all heads of a group in a
// fixed order.
#pragma once

#include "backends/cuda/attention/hopper/attention_key_worker.h"

namespace capibara::cuda::attention {

template <class T, int D, Bias kind, bool split>
__global__ void __launch_bounds__(all_threads, 1)
    group_keys_kernel(const __grid_constant__ Problem p, const __grid_constant__ BoxSources sources) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int bytes = GroupTile<T, D>::bytes, own_tiles = rows_of<split> / 64;
  constexpr bool biased = kind != Bias::none;
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
    copy_queries<T, D, kind>(p, sources, block, visits, stages, bits, numbers, ahead, count, tiles);
  } else {
    take_registers<key_copier_registers>();
    const int worker = threadIdx.x / group_threads - 1;
    const WorkerStages<split, count_of_stages> own_stages{stages, visits, count, worker};
    work_on_keys<T, D, kind, split>(p, sources, block, own_stages, BitsView<true>(bits), kept_address(numbers),
                                    own + 2 * (worker % own_tiles) * bytes, tiles, aligned_floats(memory));
  }
#endif
}

}  // namespace capibara::cuda::attention
