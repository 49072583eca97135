// The contribution of a segment of the sequence to the state after it (forward) or to the gradient of the state before
// it (backward): the first of two kernels if segments are processed in parallel.
#pragma once

#include "backends/cuda/recurrence/selective_scan_tiles.h"

namespace capibara::cuda {
namespace {

template <int Own, int Parts, int Lane>
struct SegmentMemory {
  static constexpr int channels = Lane * 32, width = Own * Parts;
  float dt[2][tile_steps][channels], added[2][tile_steps][channels], columns[2][tile_steps][width], bias[channels];
};

// Forward: all segments except the last; backward: all except the first, with `dy` the gradients of outputs.
template <class T, int Own, int Parts, int Lane, bool is_forward>
__global__ void __launch_bounds__(Parts * 32) segment_ends(ScanInputs<T> in, const T* dy, ScanSizes s, float* ends) {
  using Where = Place<Own, Parts, Lane>;
  using Rows = TileRows<T, Where>;
  extern __shared__ float4 shared[];
  auto& memory = *reinterpret_cast<SegmentMemory<Own, Parts, Lane>*>(shared);
  const Where place(s, is_forward ? blockIdx.z : blockIdx.z + 1);
  const int lane_channel = threadIdx.x % 32 * Lane, first_state = place.part * Own;
  const int begin = place.segment * s.segment_chunks * s.chunk;
  const int end = min(s.length, begin + s.segment_chunks * s.chunk),
            tiles = (end - begin + tile_steps - 1) / tile_steps;
  float A[Lane][Own], h[Lane][Own], sums[Lane];
#pragma unroll
  for (int l = 0; l < Lane; ++l) {
    sums[l] = 0;
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      A[l][i] = place.decay(in.A, l, i);
      h[l][i] = 0;
    }
  }
  load_vector(in.bias, place, memory.bias);
  __syncthreads();

  struct Tile {
    Rows delta, added, z;
    TileColumns<T, Where> columns;
    TileResets resets;
  };
  auto start_of = [&](int number) { return begin + (is_forward ? number : tiles - 1 - number) * tile_steps; };
  auto fetch = [&](Tile& tile, int t0) {
    tile.delta.fetch(in.delta, place, t0, end);
    tile.added.fetch(is_forward ? in.u : dy, place, t0, end);
    if (!is_forward && in.z) tile.z.fetch(in.z, place, t0, end);
    tile.columns.fetch(is_forward ? in.B : in.C, place, t0, end);
    tile.resets.fetch(in.reset, place, t0, end);
  };
  auto store = [&](const Tile& tile, int t0, int slot) {
#pragma unroll
    for (int q = 0; q < Rows::count; ++q) {
      if (!Rows::is_one(q)) continue;
      const int step = Rows::step(q), channel = Rows::channel(q);
      float dt[4], added[4];
      step_sizes(tile.delta.quads[q], memory.bias + channel, s.has_softplus, t0 + step < end, dt);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float own = tile.added.quads[q][i];
        added[i] = is_forward ? dt[i] * own : ungated(own, tile.z.quads[q], i, in.z != nullptr);
      }
      store_floats(&memory.dt[slot][step][channel], dt[0], dt[1], dt[2], dt[3]);
      store_floats(&memory.added[slot][step][channel], added[0], added[1], added[2], added[3]);
    }
    tile.columns.store(memory.columns[slot][0]);
  };
  auto advance = [&](int slot, unsigned resets) {
    auto steps = [&](auto resetting) {
#pragma unroll
      for (int k = 0; k < tile_steps; ++k) {
        const int t = is_forward ? k : tile_steps - 1 - k;
        float dt[Lane], added[Lane], columns[Own];
        read_floats(&memory.dt[slot][t][lane_channel], dt);
        read_floats(&memory.added[slot][t][lane_channel], added);
        read_floats(&memory.columns[slot][t][first_state], columns);
        const bool cleared = resetting.value && resets >> t & 1;
#pragma unroll
        for (int l = 0; l < Lane; ++l) {
          sums[l] += dt[l];
#pragma unroll
          for (int i = 0; i < Own; ++i) {
            const float decay = exp2_fast(dt[l] * A[l][i]), own = added[l] * columns[i];
            if (is_forward)
              h[l][i] = cleared ? own : decay * h[l][i] + own;
            else
              h[l][i] = cleared ? 0.0f : decay * (h[l][i] + own);
          }
        }
      }
    };
    resets ? steps(std::true_type{}) : steps(std::false_type{});
  };

  Tile next;
  fetch(next, start_of(0));
  unsigned resets = next.resets.bits(), any = 0;
  store(next, start_of(0), 0);
  __syncthreads();
  for (int number = 0; number < tiles; ++number) {
    const bool more = number + 1 < tiles;
    if (more) fetch(next, start_of(number + 1));
    advance(number % 2, resets);
    any |= resets;
    if (more) {
      resets = next.resets.bits();
      store(next, start_of(number + 1), (number + 1) % 2);
    }
    __syncthreads();
  }
  const int64_t index = static_cast<int64_t>(place.batch) * s.segments + place.segment, rows = s.states + added_rows;
#pragma unroll
  for (int l = 0; l < Lane; ++l) {
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      if (place.exists(l, i)) ends[place.by_state(index, rows, l, i)] = h[l][i];
    }
    if (place.part == 0 && place.channel + l < s.dim) {
      float* const own = ends + (index * rows + s.states) * s.dim + place.channel + l;
      own[0] = sums[l];
      own[s.dim] = any ? 0.0f : 1.0f;
    }
  }
}

}  // namespace
}  // namespace capibara::cuda
