// The forward kernel of the selective scan.
//
// A tile of 16 steps goes through a block three times: its threads share the work that is the same for all states, each
// warp advances its states through the tile, and the warps' parts of the outputs are added and written. Registers hold
// the tile that follows on its way; one barrier for each tile.
#pragma once

#include "backends/cuda/recurrence/selective_scan_tiles.h"

namespace capibara::cuda {
namespace {

template <int Own, int Parts, int Lane>
struct ForwardMemory {
  static constexpr int channels = Lane * 32, width = Own * Parts;
  float dt[2][tile_steps][channels], driven[2][tile_steps][channels];
  float B[2][tile_steps][width], C[2][tile_steps][width];
  float partial[2][Parts][tile_steps][channels];
  float D[channels], bias[channels];
};

template <class T, int Own, int Parts, int Lane>
__global__ void __launch_bounds__(Parts * 32)
    forward(ScanInputs<T> in, ScanSizes s, const float* ends, T* y, float* last, float* starts) {
  using Where = Place<Own, Parts, Lane>;
  using Rows = TileRows<T, Where>;
  extern __shared__ float4 shared[];
  auto& memory = *reinterpret_cast<ForwardMemory<Own, Parts, Lane>*>(shared);
  const Where place(s, blockIdx.z);
  const int lane_channel = threadIdx.x % 32 * Lane, first_state = place.part * Own;
  const int begin = place.segment * s.segment_chunks * s.chunk;
  const int end = min(s.length, begin + s.segment_chunks * s.chunk);
  float A[Lane][Own], h[Lane][Own];
  load_decays(in.A, place, A);
  load_states(in.initial, place, h);
  pass_segments(ends, s, place, A, 0, 1, h);
  load_vector(in.D, place, memory.D);
  load_vector(in.bias, place, memory.bias);
  __syncthreads();

  struct Tile {
    Rows u, delta, z;
    TileColumns<T, Where> B, C;
    TileResets resets;
  };
  auto fetch = [&](Tile& tile, int t0) {
    tile.u.fetch(in.u, place, t0, end);
    tile.delta.fetch(in.delta, place, t0, end);
    if (in.z) tile.z.fetch(in.z, place, t0, end);
    tile.B.fetch(in.B, place, t0, end);
    tile.C.fetch(in.C, place, t0, end);
    tile.resets.fetch(in.reset, place, t0, end);
  };
  auto store = [&](const Tile& tile, int t0, int slot) {
#pragma unroll
    for (int q = 0; q < Rows::count; ++q) {
      if (!Rows::is_one(q)) continue;
      const int step = Rows::step(q), channel = Rows::channel(q);
      const Quad<T>& u = tile.u.quads[q];
      float dt[4];
      step_sizes(tile.delta.quads[q], memory.bias + channel, s.has_softplus, t0 + step < end, dt);
      store_floats(&memory.dt[slot][step][channel], dt[0], dt[1], dt[2], dt[3]);
      store_floats(&memory.driven[slot][step][channel], dt[0] * u[0], dt[1] * u[1], dt[2] * u[2], dt[3] * u[3]);
    }
    tile.B.store(memory.B[slot][0]);
    tile.C.store(memory.C[slot][0]);
  };
  auto advance = [&](int slot, unsigned resets) {
    auto steps = [&](auto resetting) {
#pragma unroll
      for (int t = 0; t < tile_steps; ++t) {
        float dt[Lane], driven[Lane], B[Own], C[Own], sum[Lane];
        read_floats(&memory.dt[slot][t][lane_channel], dt);
        read_floats(&memory.driven[slot][t][lane_channel], driven);
        read_floats(&memory.B[slot][t][first_state], B);
        read_floats(&memory.C[slot][t][first_state], C);
        if (resetting.value && resets >> t & 1) {
#pragma unroll
          for (int l = 0; l < Lane; ++l) {
#pragma unroll
            for (int i = 0; i < Own; ++i) h[l][i] = 0;
          }
        }
#pragma unroll
        for (int l = 0; l < Lane; ++l) {
          sum[l] = 0;
#pragma unroll
          for (int i = 0; i < Own; ++i) {
            h[l][i] = exp2_fast(dt[l] * A[l][i]) * h[l][i] + driven[l] * B[i];
            sum[l] += h[l][i] * C[i];
          }
        }
        write_floats(&memory.partial[slot][place.part][t][lane_channel], sum);
      }
    };
    resets ? steps(std::true_type{}) : steps(std::false_type{});
  };
  auto write = [&](const Tile& tile, int t0, int slot) {
#pragma unroll
    for (int q = 0; q < Rows::count; ++q) {
      const int step = Rows::step(q), channel = Rows::channel(q);
      if (!Rows::is_one(q) || t0 + step >= end) continue;
      float sums[4] = {0, 0, 0, 0};
#pragma unroll
      for (int part = 0; part < Parts; ++part) {
        float own[4];
        read_floats(&memory.partial[slot][part][step][channel], own);
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[i] += own[i];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sums[i] = ungated(sums[i] + memory.D[channel + i] * tile.u.quads[q][i], tile.z.quads[q], i, in.z != nullptr);
      store_quad(y + (place.first_row + t0 + step) * s.dim, place.first_channel + channel, s.dim, sums);
    }
  };

  Tile now, next;
  fetch(now, begin);
  store(now, begin, 0);
  __syncthreads();
  int slot = 0;
  for (int t0 = begin; t0 < end; t0 += tile_steps, slot ^= 1) {
    if (t0 % s.chunk == 0) {
      const int64_t index = static_cast<int64_t>(place.batch) * s.chunks + t0 / s.chunk;
#pragma unroll
      for (int i = 0; i < Own; ++i) {
#pragma unroll
        for (int l = 0; l < Lane; ++l) {
          if (place.exists(l, i)) starts[place.by_state(index, s.states, l, i)] = h[l][i];
        }
      }
    }
    const bool more = t0 + tile_steps < end;
    if (more) fetch(next, t0 + tile_steps);
    advance(slot, now.resets.bits());
    if (more) store(next, t0 + tile_steps, slot ^ 1);
    __syncthreads();
    write(now, t0, slot);
    now = next;
  }
  if (place.segment + 1 == s.segments) store_states(last, place, h);
}

}  // namespace
}  // namespace capibara::cuda
