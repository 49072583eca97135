// Launches backward attention by warpgroups, on Hopper: dQ, then dK and dV; or first dK and dV together with the
// gradients of the logits, from which other kernels compute the rest.
#include <type_traits>

#include "backends/cuda/attention/attention_gradients.h"
#include "backends/cuda/attention/attention_parts.h"
#include "backends/cuda/attention/attention_start.h"
#include "backends/cuda/attention/hopper/attention_bias_tiles.h"
#include "backends/cuda/attention/hopper/attention_copies.h"
#include "backends/cuda/attention/hopper/attention_worker_stages.h"

// Per-query numbers of a stage, for workers whose rows are keys.

namespace capibara::cuda::attention {

// For the queries of a stage: the offset of the logits, and delta. Rows that do not exist have
// zeros: their cotangents are zeros too.
struct RowNumbers {
  float2 base[32], delta[32];

  // Each copier thread writes one of them.
  __device__ void write(float value, float unit, float of_delta) {
    reinterpret_cast<float*>(this)[threadIdx.x] = threadIdx.x < 64 ? base_of(value, unit) : value * of_delta;
  }
};

inline __device__ float2 load_pair(uint32_t address) {
  float2 pair;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(pair.x), "=f"(pair.y) : "r"(address) : "memory");
  return pair;
}

// Loads the numbers of a thread's eight pairs of queries; `spread_numbers` repeats them for both of its keys.
inline __device__ void load_numbers(float2 (&numbers)[8], uint32_t from) {
#pragma unroll
  for (int j = 0; j < 8; ++j) numbers[j] = load_pair(from + 32 * j);
}
inline __device__ void spread_numbers(float (&to)[8][4], uint32_t from) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float2 pair = load_pair(from + 32 * j);
    to[j][0] = to[j][2] = pair.x, to[j][1] = to[j][3] = pair.y;
  }
}

// The copier warpgroup of the kernel whose rows are keys.

// The rows of a block of keys, and its tiles of queries: those of every head of the group.
template <int Rows>
struct KeyBlock {
  int batch, group, first, query_tiles, per_group;
  int64_t begin;  // index of row 0 in [batch, groups, keys]

  __device__ KeyBlock(const Problem& p, int block) {
    const int tiles = (p.keys + Rows - 1) / Rows;
    if (p.gradients) {
      const TileOfPart at = tile_of_part(block, tiles, p.batch, p.groups, p.part_groups);
      batch = at.batch, group = p.first_group + at.head, first = at.tile * Rows;
    } else {
      const auto [tile, which] = tile_of(p, block, tiles, p.groups);
      batch = which / p.groups, group = which % p.groups, first = tile * Rows;
    }
    query_tiles = (p.queries + 63) / 64;
    per_group = p.per_group();
    begin = (static_cast<int64_t>(batch) * p.groups + group) * p.keys;
  }
  // A tile of queries: its head and its first query.
  struct At {
    int head, query;
  };
  __device__ At at(int tile) const {
    if (per_group == 1) return {group, tile * 64};
    const int number = tile / query_tiles;
    return {group * per_group + number, (tile - number * query_tiles) * 64};
  }
};

// Data of the next visit that a copier thread needs, prefetched during the current one: one of RowNumbers, and a
// word of the mask.
struct NextVisits {
  float numbers[2][group_threads];
  uint64_t masks[2][group_threads];

  // For the queries starting at row `row`, and the keys starting at `key`.
  __device__ void copy(const Problem& p, int visit, int batch, int head, int query, int key, int64_t row) {
    const int own = static_cast<int>(threadIdx.x % 64);
    const bool exists = query + own < p.queries;
    const float* number = (threadIdx.x < 64 ? p.lse : p.delta) + row + own;
    copy_small<4>(&numbers[visit % 2][threadIdx.x], exists ? number : p.lse, exists);
    if (p.mask) {
      const uint64_t* word = mask_bits_at(p, batch, head, query + own, key);
      copy_small<8>(&masks[visit % 2][threadIdx.x], exists && key < p.keys ? word : p.mask_bits,
                    exists && key < p.keys);
    }
    end_copies();
  }
  __device__ float number(int visit) const { return numbers[visit % 2][threadIdx.x]; }
  __device__ uint64_t mask(const Problem& p, int visit) const {
    return p.mask ? masks[visit % 2][threadIdx.x] : ~uint64_t{0};
  }

 private:
  template <int Bytes>
  static __device__ void copy_small(const void* to, const void* from, bool exists) {
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
        "l"(from), "n"(Bytes), "r"(exists ? Bytes : 0)
        : "memory");
  }
};

// The copier's loop: queries and cotangents for the visits, and the other data that workers read with them.
template <class T, int D, Bias kind, int Rows, int Count>
__device__ void copy_queries(const Problem& p, const BoxSources& sources, const KeyBlock<Rows>& block,
                             const Visits& visits, const Stages<Count>& stages, TileBits<true>* bits,
                             RowNumbers* numbers, NextVisits& ahead, int count, uint32_t tiles) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  constexpr bool biased = kind != Bias::none;
  const int worker = Rows == 64 ? 0 : static_cast<int>(threadIdx.x / 64), above = 64 * worker;  // of this thread
  using At = typename KeyBlock<Rows>::At;
  const bool odd = has_odd_rows(p);
  At next = count > 0 ? block.at(visits.tile(0)) : At{}, now{};
  auto row_of = [&](const At& at) {
    return (static_cast<int64_t>(block.batch) * p.heads + at.head) * p.queries + at.query;
  };
  auto copy_odd = [&](uint32_t to) {
    const int64_t row = row_of(now);
    const int exist = p.queries - now.query;
    GroupTile<T, D>::copy(to, static_cast<const T*>(p.query) + row * p.size, exist, p.size);
    GroupTile<T, D>::copy(to + bytes, static_cast<const T*>(p.cotangent) + row * p.value_size, exist, p.value_size);
  };
  auto copy = [&](int stage, int i, uint32_t barrier) {
    now = next;
    if (i + 1 < count) next = block.at(visits.tile(i + 1));
    const uint32_t to = tiles + stage * stage_bytes_of<T, D, biased>;
    if (odd) {
      copy_odd(to);
    } else if (threadIdx.x == 0) {
      const int head = block.batch * p.heads + now.head;
      expect_bytes(barrier, 2 * bytes);
      start_boxes<D, 64>(to, sources.query, now.query, head, barrier);
      start_boxes<D, 64>(to + bytes, sources.cotangent, now.query, head, barrier);
    }
    if (biased) copy_bias<T, true>(p, sources, to + 2 * bytes, block.batch, now.head, now.query, block.first, barrier);
  };
  auto look_ahead = [&](int i) {
    ahead.copy(p, i, block.batch, next.head, next.query, block.first + above, row_of(next));
  };
  if (count > 0) look_ahead(0);
  auto make = [&](int stage, int i) {
    await_copies<0>();
    const uint64_t mask = ahead.mask(p, i);
    constexpr bool bare = kind == Bias::bare;  // products accumulate on both
    numbers[stage].write(ahead.number(i), bare ? p.bias_factor : log2e, bare ? -1.0f : 1.0f);
    if (i + 1 < count) look_ahead(i + 1);
    bits[stage].write_seen(p, visits.level(i, worker), block.batch, now.head, now.query + threadIdx.x % 64,
                           block.first + above, mask);
  };
  stages.copy_all(count, copied_by_threads<biased>(p), odd, copy, make);
}

// A worker's loop for dK and dV: sums over queries, and the gradients of the logits, which are
// stored if a bias needs them.

template <class T, int D, Bias kind, bool split, int Count>
__device__ void work_on_keys(const Problem& p, const BoxSources& sources, const KeyBlock<rows_of<split>>& keys,
                             const WorkerStages<split, Count>& stages, const BitsView<true>& bits, uint32_t numbers,
                             uint32_t own, uint32_t tiles, float* shared) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  constexpr bool biased = kind != Bias::none, bare = kind == Bias::bare;
  const int worker = stages.worker, count = stages.count();
  const bool stores = bare || (biased && p.gradients), drops = !bare && p.threshold > 0;
  const int lane = threadIdx.x % 32, first_row = keys.first + 64 * worker % rows_of<split> + threadIdx.x / 32 % 4 * 16;
  Place at{keys.batch, {-1, -1}, {first_row + lane / 4, first_row + lane / 4 + 8}, 0, {}};
  float key_sums[D / 8][4] = {}, value_sums[D / 8][4] = {}, shares[8][4], gradients[8][4];
  uint32_t narrow_shares[4][4], narrow_gradients[4][4];
  Level level = none;  // of the last visit queried, and its visibility bits
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
  // Initialises the accumulators of products if the bias is bare.
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
  // From the logits to launching the last matmuls.
  auto step = [&](int i) {
    const uint32_t from = stage(i), operand = operand_at(from), own_numbers = numbers_of(i);
    if constexpr (bare) {
      spread_numbers(gradients, own_numbers + 256);
      compute_now(gradients);
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
    start_rows_of<T, D, bare>(gradients, own_operand + bytes / 16, operand + bytes / 16);
    end_products();
    if (biased && !bare && !has_bias_pieces(p)) {
      const auto place = keys.at(stages.tile(i));
      at.head[0] = at.head[1] = place.head;
      at.column = place.query + 2 * (lane % 4);
    }
    const bool whole = level == all;
    float2 base[8];  // loaded before the logits are ready
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
      multiply_all(gradients, shares);
    else if (drops)
      take_gradients<64>(
          p, shares, gradients, [&](int j, int e) { return kept >> bit_of<true>(j, e) & 1; }, delta);
    else
      take_gradients<64>(
          p, shares, gradients, [](int, int) { return true; }, delta);
    compute_now(gradients);
    narrow<T>(narrow_gradients, gradients);
    if (stores) store_turned<T>(from + offset, narrow_gradients);  // over the bias
    begin_products();
    start_across_of<T, D>(key_sums, narrow_gradients, operand);
    end_products();
    if (!stores || !may_send_tile(worker)) return;
    const auto place = keys.at(stages.tile(i));
    const uint32_t tile = from + 2 * bytes + worker * bias_tile_bytes;
    const GradientBoxes to(p, sources, keys.batch, place.head);
    store_box(to.boxes, tile, keys.first + 64 * worker, place.query, to.number);
  };
  for (int i = next_visit(stages, 0, count, wants); i < count; i = next_visit(stages, i + 1, count, wants)) {
    prepare(i);
    for (bool more = true; more; ++i) {
      step(i);
      more = bare && wants(i + 1);  // consecutive visits: none is skipped while a stage is held
      if (more) prepare(i + 1);     // overlaps with the last matmuls
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

// dK and dV by warpgroups: rows are keys, sums run over the queries of all heads of a group in a
// fixed order.

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

// dQ by warpgroups: sums over keys in a fixed order. The last matmul of one tile overlaps with those of the
// next.

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
  float sums[D / 8][4] = {}, shares[8][4], gradients[8][4];
  uint32_t queries[D / 16][4], narrowed[4][4], seen = 0, kept = 0;
  Level level = none;  // of the last visit queried
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
  auto start_gradients = [&](int i) {
    begin_products();
    start_rows<T, D>(gradients, own + bytes, stage(i) + bytes);
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
      take_gradients<64>(
          p, shares, gradients, [&](int j, int e) { return kept >> bit_of<false>(j, e) & 1; }, row_delta);
    else
      take_gradients<64>(
          p, shares, gradients, [](int, int) { return true; }, row_delta);
    compute_now(gradients);
  };
  for (int i = next_visit(stages, 0, count, wants); i < count; i = next_visit(stages, i + 1, count, wants)) {
    start_logits(i);
    begin(i);
    start_gradients(i);
    await_products<1>();
    share_out(i);
    await_products<0>();
    finish();
    narrow<T>(narrowed, gradients);
    for (; wants(i + 1); ++i) {
      start_logits(i + 1);
      begin(i + 1);  // overlaps with the logits on the tensor cores
      start_gradients(i + 1);
      start_across<T, D>(sums, narrowed, stage(i));
      end_products();
      await_products<2>();
      share_out(i + 1);
      compute_first(shares[7][3]);
      await_products<1>();
      finish();
      compute_first(gradients[7][3]);
      await_products<0>();
      stages.release(i);
      narrow<T>(narrowed, gradients);
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

namespace {

template <bool split>
dim3 backward_blocks(int64_t rows, int64_t heads) {
  return dim3(static_cast<unsigned>((rows + rows_of<split> - 1) / rows_of<split> * heads));
}

template <class T, int D>
cudaError_t start_by_gradients(Problem problem, Element element, cudaStream_t stream) {
  constexpr int bytes = backward_group_bytes<T, D, true, false>;
  const dim3 blocks = backward_blocks<false>(problem.keys, static_cast<int64_t>(problem.batch) * problem.part_groups);
  cudaError_t status = cudaSuccess;
  for (int group = 0; status == cudaSuccess && group < problem.groups; group += problem.part_groups) {
    problem.first_group = group;
    const auto kernel =
        is_bare(problem) ? group_keys_kernel<T, D, Bias::bare, false> : group_keys_kernel<T, D, Bias::any, false>;
    status = start_group<T>(kernel, blocks, all_threads, bytes, problem, stream);
    if (status == cudaSuccess) status = start_group_sums(problem, element, stream);
  }
  return status;
}

template <class T, int D, bool biased, bool split>
cudaError_t start_both(const Problem& problem, cudaStream_t stream) {
  const int64_t batch = problem.batch;
  const dim3 queries = backward_blocks<split>(problem.queries, batch * problem.heads);
  const dim3 keys = backward_blocks<split>(problem.keys, batch * problem.groups);
  constexpr int bytes = backward_group_bytes<T, D, biased, split>;
  const cudaError_t status =
      start_group<T>(group_queries_kernel<T, D, biased, split>, queries, all_threads, bytes, problem, stream);
  if (status != cudaSuccess) return status;
  constexpr Bias kind = biased ? Bias::any : Bias::none;
  return start_group<T>(group_keys_kernel<T, D, kind, split>, keys, all_threads, bytes, problem, stream);
}

}  // namespace

cudaError_t start_group_backward(const Problem& problem, Element element, cudaStream_t stream) {
  return by_group_size(problem, element, [&](auto type, auto size) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value;
    if (problem.gradients) return start_by_gradients<T, D>(problem, element, stream);
    if (problem.bias) return start_both<T, D, true, false>(problem, stream);
    return problem.blocks ? start_both<T, D, false, true>(problem, stream)
                          : start_both<T, D, false, false>(problem, stream);
  });
}

}  // namespace capibara::cuda::attention
