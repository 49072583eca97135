// Tiles of 16 steps of the selective scan: fetched into registers while another tile is processed, then stored in
// shared memory in the scan's layout. Steps after the last have size 0 and change nothing.
#pragma once

#include "backends/cuda/recurrence/selective_scan_device.h"

namespace capibara::cuda {
namespace {

// Rows of a block's channels: this thread's four channels each.
template <class T, class Place>
struct TileRows {
  static constexpr int per_row = Place::channels / 4, all = tile_steps * per_row;
  static constexpr int count = (all + Place::threads - 1) / Place::threads;
  Quad<T> quads[count];

  static __device__ int number(int q) { return threadIdx.x + q * Place::threads; }
  static __device__ bool is_one(int q) { return all % Place::threads == 0 || number(q) < all; }
  static __device__ int step(int q) { return number(q) / per_row; }
  static __device__ int channel(int q) { return number(q) % per_row * 4; }  // of the block

  __device__ void fetch(const T* from, const Place& place, int t0, int length) {
#pragma unroll
    for (int q = 0; q < count; ++q) {
      const int t = t0 + step(q);
      const bool exists = is_one(q) && t < length;
      quads[q] = load_quad(from + (place.first_row + (exists ? t : 0)) * place.dim, place.first_channel + channel(q),
                           place.dim, exists);
    }
  }
};

// Rows of B or C, zeros for states that do not exist.
template <class T, class Place>
struct TileColumns {
  static constexpr int count = (tile_steps * Place::width + Place::threads - 1) / Place::threads;
  T values[count];

  __device__ void fetch(const T* from, const Place& place, int t0, int length) {
#pragma unroll
    for (int q = 0; q < count; ++q) {
      const int i = threadIdx.x + q * Place::threads, t = t0 + i / Place::width, n = i % Place::width;
      const bool exists = n < place.states && t < length;
      values[q] = exists ? from[(place.first_row + t) * place.states + n] : from_float<T>(0.0f);
    }
  }
  __device__ void store(float* to) const {
#pragma unroll
    for (int q = 0; q < count; ++q) to[threadIdx.x + q * Place::threads] = as_float(values[q]);
  }
};

// A bit per step of a tile, set if the step first clears the state; the same in all threads.
struct TileResets {
  bool own;

  template <class Place>
  __device__ void fetch(const uint8_t* reset, const Place& place, int t0, int length) {
    const int lane = threadIdx.x % 32, t = t0 + lane;
    own = reset && lane < tile_steps && t < length && reset[place.first_row + t] != 0;
  }
  __device__ unsigned bits() const { return __ballot_sync(0xffffffffu, own); }
};

// The step sizes of four channels, 0 after the last step.
template <class T>
__device__ void step_sizes(const Quad<T>& delta, const float* bias, bool has_softplus, bool exists, float (&to)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float raw = delta[i] + bias[i];
    to[i] = exists ? (has_softplus ? softplus(raw) : raw) : 0.0f;
  }
}

// The gradient of an output before the gate.
template <class T>
__device__ float ungated(float gradient, const Quad<T>& z, int i, bool gated) {
  return gated ? gradient * (z[i] * sigmoid(z[i])) : gradient;
}

// Loads a vector over the block's channels, zeros for channels that do not exist.
template <class Place>
__device__ void load_vector(const float* from, const Place& place, float* to) {
  for (int i = threadIdx.x; i < Place::channels; i += Place::threads)
    to[i] = place.first_channel + i < place.dim ? from[place.first_channel + i] : 0.0f;
}

// Loads, from [batch, dim, state], the numbers for each channel and state of a thread.
template <class Place, int Own, int Lane>
__device__ void load_states(const float* from, const Place& place, float (&to)[Lane][Own]) {
#pragma unroll
  for (int l = 0; l < Lane; ++l) {
#pragma unroll
    for (int i = 0; i < Own; ++i) to[l][i] = place.exists(l, i) ? from[place.by_channel(l, i)] : 0.0f;
  }
}
template <class Place, int Own, int Lane>
__device__ void store_states(float* to, const Place& place, const float (&from)[Lane][Own]) {
#pragma unroll
  for (int l = 0; l < Lane; ++l) {
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      if (place.exists(l, i)) to[place.by_channel(l, i)] = from[l][i];
    }
  }
}
// Loads their decays per unit of time, as base-2 exponents.
template <class Place, int Own, int Lane>
__device__ void load_decays(const float* A, const Place& place, float (&to)[Lane][Own]) {
#pragma unroll
  for (int l = 0; l < Lane; ++l) {
#pragma unroll
    for (int i = 0; i < Own; ++i) to[l][i] = place.decay(A, l, i);
  }
}

// Advances the state from the edge of the sequence to the edge of this segment, with the contributions of the segments
// from `first` on in direction `step`.
template <class Place, int Own, int Lane>
__device__ void pass_segments(const float* ends, const ScanSizes& s, const Place& place, const float (&A)[Lane][Own],
                              int first, int step, float (&h)[Lane][Own]) {
  for (int j = first; j != place.segment; j += step) {
    const int64_t index = static_cast<int64_t>(place.batch) * s.segments + j, rows = s.states + added_rows;
    const float* const own = ends + index * rows * s.dim;
#pragma unroll
    for (int l = 0; l < Lane; ++l) {
      const int channel = min(place.channel + l, s.dim - 1);
      const float sum = own[static_cast<int64_t>(s.states) * s.dim + channel];
      const bool kept = own[static_cast<int64_t>(s.states + 1) * s.dim + channel] != 0;
#pragma unroll
      for (int i = 0; i < Own; ++i) {
        const float added = place.exists(l, i) ? ends[place.by_state(index, rows, l, i)] : 0.0f;
        h[l][i] = (kept ? exp2_fast(sum * A[l][i]) * h[l][i] : 0.0f) + added;
      }
    }
  }
}

}  // namespace
}  // namespace capibara::cuda
