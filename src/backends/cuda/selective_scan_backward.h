// The backward kernels of the selective scan.
#pragma once

#include "backends/cuda/selective_scan_device.h"

namespace capibara::cuda {
namespace {
template <class T>
struct Gradients {
  const T* dy;
  const float *dlast, *starts;
  T *du, *ddelta, *dz;
  float *dA, *dD, *dbias, *dinitial;
  float* sums;  // [batch][blocks][length][2][width]
};

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
    // What a step reads, of the thread's own channel; nothing where there is none.
    auto input = [&](const T* rows, int t) {
      return place.present ? as_float(rows[(first_row + t0 + t) * s.dim + channel]) : 0.0f;
    };
    auto step_of = [&](float raw) { return s.has_softplus ? softplus(raw) : raw; };
    auto is_reset = [&](int t) { return in.reset && in.reset[first_row + t0 + t]; };
    // Of eight steps at once, so that their loads are on their way together; zeros behind the last.
    auto load = [&](const T* rows, int first, float (&to)[sub_chunk]) {
#pragma unroll
      for (int k = 0; k < sub_chunk; ++k) to[k] = first + k < count ? input(rows, first + k) : 0.0f;
    };
    auto advance = [&](int t, float delta, float u) {
      const float dt = place.present ? step_of(delta + bias) : 0.0f, driven = dt * u;
      const bool reset = is_reset(t);
#pragma unroll
      for (int i = 0; i < Own; ++i)
        h[i] = exp2_fast(dt * A[i] * log2_e) * (reset ? 0.0f : h[i]) + driven * B[t * width + place.state(i)];
    };
    const int parts = (count + sub_chunk - 1) / sub_chunk;
    float deltas[sub_chunk], us[sub_chunk];
    load(in.delta, 0, deltas);
    load(in.u, 0, us);
    for (int p = 0; p < parts; ++p) {  // the states at the starts of eight steps each
#pragma unroll
      for (int i = 0; i < Own; ++i) checkpoints[(p * Own + i) * threads + thread] = h[i];
      if (p + 1 == parts) break;
      float next_deltas[sub_chunk], next_us[sub_chunk];
      load(in.delta, (p + 1) * sub_chunk, next_deltas);
      load(in.u, (p + 1) * sub_chunk, next_us);
#pragma unroll
      for (int k = 0; k < sub_chunk; ++k) {
        advance(p * sub_chunk + k, deltas[k], us[k]);
        deltas[k] = next_deltas[k];
        us[k] = next_us[k];
      }
    }
    for (int p = parts - 1; p >= 0; --p) {  // `deltas` and `us` are those of the last eight steps
      const int steps = min(sub_chunk, count - p * sub_chunk);
      float slopes[sub_chunk], gates[sub_chunk];
      load(out.dy, p * sub_chunk, slopes);
      if (in.z) load(in.z, p * sub_chunk, gates);
      if (p + 1 < parts) {
        load(in.delta, p * sub_chunk, deltas);
        load(in.u, p * sub_chunk, us);
      }
#pragma unroll
      for (int i = 0; i < Own; ++i) h[i] = checkpoints[(p * Own + i) * threads + thread];
#pragma unroll
      for (int k = 0; k < sub_chunk; ++k) {
        if (k >= steps) break;
        const bool reset = is_reset(p * sub_chunk + k);
#pragma unroll
        for (int i = 0; i < Own; ++i) before[(k * Own + i) * threads + thread] = reset ? 0.0f : h[i];
        if (k + 1 < steps) advance(p * sub_chunk + k, deltas[k], us[k]);
      }
#pragma unroll
      for (int k = sub_chunk - 1; k >= 0; --k) {
        if (k >= steps) continue;
        const int t = p * sub_chunk + k;
        const int64_t at = (first_row + t0 + t) * s.dim + channel;
        const float raw = deltas[k] + bias, u = us[k];
        const float dt = place.present ? step_of(raw) : 0.0f, driven = dt * u;
        const float given = slopes[k], z = in.z ? gates[k] : 0.0f;
        const float gate = in.z ? sigmoid(z) : 1.0f, dy = in.z ? given * (z * gate) : given;
        const bool reset = is_reset(t);
        float from_B = 0, from_A = 0, y = 0, both[values];
#pragma unroll
        for (int i = 0; i < Own; ++i) {
          const int n = t * width + place.state(i);
          const float decay = exp2_fast(dt * A[i] * log2_e), old = before[(k * Own + i) * threads + thread];
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
      for (int i = thread; i < steps * 2 * width; i += threads) {
        const int k = i / (2 * width), n = i % (2 * width);
        float sum = 0;
        for (int w = 0; w < warps; ++w) sum += partial[(k * warps + w) * 2 * width + n];
        const int64_t row =
            (static_cast<int64_t>(place.batch) * gridDim.x + blockIdx.x) * s.length + t0 + p * sub_chunk + k;
        out.sums[row * 2 * width + n] = sum;
      }
      __syncthreads();
    }
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
