// The backward kernels of the selective scan.
#pragma once

#include "backends/cuda/selective_scan_steps.h"
#include "backends/cuda/selective_scan_sums.h"

namespace capibara::cuda {
namespace {
template <class T, int Own, int Parts>
__global__ void __launch_bounds__(threads) backward(Inputs<T> in, Sizes s, Gradients<T> out) {
  constexpr int width = Own * Parts, warps = threads / 32, values = 2 * Own, left = values * Parts / 32;
  static_assert(left >= 1, "every thread of a warp keeps a sum");
  extern __shared__ float shared[];
  float* const checkpoints = shared;                                          // [max_chunk / sub_chunk][Own][threads]
  float* const before = checkpoints + max_chunk / sub_chunk * Own * threads;  // [sub_chunk][Own][threads]
  float* const B = before + sub_chunk * Own * threads;                        // [max_chunk][width]
  float* const C = B + max_chunk * width;
  float* const partial = C + max_chunk * width;  // [sub_chunk][warps][2 * width]
  const Place<Own, Parts> place(s.dim);
  const int channel = place.present ? place.channel : 0, thread = threadIdx.x, warp = thread / 32;
  const int64_t first_row = static_cast<int64_t>(place.batch) * s.length;
  const int64_t own_channel = static_cast<int64_t>(place.batch) * s.dim + channel;
  float A[Own], g[Own], dA[Own];
#pragma unroll
  for (int i = 0; i < Own; ++i) {
    const bool exists = place.present && place.state(i) < s.states;
    A[i] = exists ? in.A[static_cast<int64_t>(channel) * s.states + place.state(i)] : 0.0f;
    g[i] = exists ? out.dlast[own_channel * s.states + place.state(i)] : 0.0f;
    dA[i] = 0;
  }
  const float D = in.D[channel], bias = in.bias[channel];
  float dD = 0, dbias = 0;
  for (int chunk = s.chunks - 1; chunk >= 0; --chunk) {
    const int t0 = chunk * s.chunk, count = min(s.chunk, s.length - t0);
    __syncthreads();
    load_columns(in.B, in.C, first_row + t0, count, s.states, width, B, C);
    __syncthreads();
    float h[Own];
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      const int n = place.state(i);
      const int64_t at = (static_cast<int64_t>(place.batch) * s.chunks + chunk) * s.states + n;
      h[i] = place.present && n < s.states ? out.starts[at * s.dim + channel] : 0.0f;
    }
    // Eight steps at once. `all_exist` below: without a branch between steps, one's exponentials hide another's
    // latency.
    auto load = [&](int p) {
      return Steps<T, sub_chunk>::loaded(in, first_row, t0 + p * sub_chunk, s.length, s.dim, channel);
    };
    auto advance = [&](int t, float dt, float driven, bool reset) {
#pragma unroll
      for (int i = 0; i < Own; ++i)
        h[i] = exp2_fast(dt * log2_e * A[i]) * (reset ? 0.0f : h[i]) + driven * B[t * width + place.state(i)];
    };
    const int parts = (count + sub_chunk - 1) / sub_chunk;
    Steps<T, sub_chunk> now = load(0);
    for (int p = 0; p < parts; ++p) {  // the states at the starts of eight steps each
#pragma unroll
      for (int i = 0; i < Own; ++i) checkpoints[(p * Own + i) * threads + thread] = h[i];
      if (p + 1 == parts) break;
      const Steps<T, sub_chunk> next = load(p + 1);
      float dt[sub_chunk];
      step_sizes(now, bias, s.has_softplus, place.present, dt);
#pragma unroll
      for (int k = 0; k < sub_chunk; ++k) advance(p * sub_chunk + k, dt[k], dt[k] * now.u(k), now.reset(k));
      now = next;
    }
    auto go_back = [&](int p, auto all_exist) {
      const int steps = all_exist.value ? sub_chunk : count - p * sub_chunk;
      float dts[sub_chunk];
      T slopes[sub_chunk];
#pragma unroll
      for (int k = 0; k < sub_chunk; ++k)
        slopes[k] = out.dy[(first_row + t0 + min(p * sub_chunk + k, count - 1)) * s.dim + channel];
      if (p + 1 < parts) now = load(p);  // else they are those of the last eight steps
      step_sizes(now, bias, s.has_softplus, place.present, dts);
#pragma unroll
      for (int i = 0; i < Own; ++i) h[i] = checkpoints[(p * Own + i) * threads + thread];
#pragma unroll
      for (int k = 0; k < sub_chunk; ++k) {
        if (!all_exist.value && k >= steps) break;
#pragma unroll
        for (int i = 0; i < Own; ++i) before[(k * Own + i) * threads + thread] = now.reset(k) ? 0.0f : h[i];
        if (k + 1 < sub_chunk) advance(p * sub_chunk + k, dts[k], dts[k] * now.u(k), now.reset(k));
      }
#pragma unroll
      for (int k = sub_chunk - 1; k >= 0; --k) {
        if (!all_exist.value && k >= steps) continue;
        const int t = p * sub_chunk + k;
        const int64_t at = (first_row + t0 + t) * s.dim + channel;
        const float raw = now.delta(k) + bias, u = place.present ? now.u(k) : 0.0f;
        const float dt = dts[k], driven = dt * u, given = place.present ? as_float(slopes[k]) : 0.0f, z = now.z(k);
        const float gate = in.z ? sigmoid(z) : 1.0f, dy = in.z ? given * (z * gate) : given;
        const bool reset = now.reset(k);
        float from_B = 0, from_A = 0, y = 0, both[values];
#pragma unroll
        for (int i = 0; i < Own; ++i) {
          const int n = t * width + place.state(i);
          const float decay = exp2_fast(dt * log2_e * A[i]), old = before[(k * Own + i) * threads + thread];
          const float state = decay * old + driven * B[n];
          const float own = g[i] + dy * C[n], faded = own * decay, moved = faded * old;
          both[i] = own * driven;
          both[Own + i] = dy * state;
          y += C[n] * state;
          from_B += own * B[n];
          from_A += moved * A[i];
          dA[i] += moved * dt;
          g[i] = reset ? 0.0f : faded;
        }
        from_B = over_parts<Parts>(from_B);
        from_A = over_parts<Parts>(from_A);
        const float ddelta = (u * from_B + from_A) * (s.has_softplus ? sigmoid(raw) : 1.0f);
        if (in.z) y = over_parts<Parts>(y) + D * u;
        if (place.present && place.part == 0) {
          put(out.du + at, dt * from_B + D * dy);
          put(out.ddelta + at, ddelta);
          if (in.z) put(out.dz + at, given * y * (gate * (1.0f + z * (1.0f - gate))));
          dD += dy * u;
          dbias += ddelta;
        }
        const int first = over_channels<values, Parts>(both);
#pragma unroll
        for (int i = 0; i < left; ++i) {  // [2][width], the states of this thread's part
          const int value = first + i, n = value / Own * width + place.state(value % Own);
          partial[(k * warps + warp) * 2 * width + n] = both[i];
        }
      }
      __syncthreads();
      const int64_t row = (static_cast<int64_t>(place.batch) * gridDim.x + blockIdx.x) * s.length + t0 + p * sub_chunk;
      write_steps<warps, 2 * width>(partial, steps, out.sums + row * 2 * width);
      __syncthreads();
    };
    for (int p = parts - 1; p >= 0; --p)
      count - p* sub_chunk >= sub_chunk ? go_back(p, std::true_type{}) : go_back(p, std::false_type{});
  }
  if (!place.present) return;
#pragma unroll
  for (int i = 0; i < Own; ++i) {
    if (place.state(i) >= s.states) continue;
    out.dA[own_channel * s.states + place.state(i)] = dA[i];
    out.dinitial[own_channel * s.states + place.state(i)] = g[i];
  }
  if (place.part == 0) {
    out.dD[own_channel] = dD;
    out.dbias[own_channel] = dbias;
  }
}

}  // namespace
}  // namespace capibara::cuda
