// The backward kernels of the selective scan.
//
// A block goes backward through its segment chunk by chunk. It runs forward through a chunk once to checkpoint the
// state at every eighth step; then it recomputes eight steps at a time, keeping states and decays in registers, and
// goes backward through them. Warps' sums over their own states are added when they are written.
#include "backends/cuda/recurrence/selective_scan_device.h"
#include "backends/cuda/recurrence/selective_scan_segments.h"

// Sums over channels, for the gradients of B and C, on tensor cores; and sums over blocks and segments.

namespace capibara::cuda {
namespace {

// Sums 16 numbers over the lanes of a warp, as a matmul with ones: row m of the result has number m, summed over
// four lanes in each of its 8 columns. The operands of tensor cores have 11 bits: `exact` also adds the remainders.
struct LaneSums {
  float ones[8];  // 1 in lanes of row r

  __device__ LaneSums() {
#pragma unroll
    for (int r = 0; r < 8; ++r) ones[r] = static_cast<int>(threadIdx.x % 32 / 4) == r ? 1.0f : 0.0f;
  }
  __device__ static void multiply(float (&c)[4], float a0, float a1, float a2, float a3, float b0, float b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)), "r"(__float_as_uint(a3)),
          "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
  }
  // Adds numbers 2j and 2j + 1.
  __device__ void add_pair(float (&c)[4], int j, float first, float second) const {
    if (j < 4)
      multiply(c, ones[2 * j], 0, ones[2 * j + 1], 0, first, second);
    else
      multiply(c, 0, ones[2 * j - 8], 0, ones[2 * j - 7], first, second);
  }
  __device__ static float head(float value) { return __uint_as_float(__float_as_uint(value) & 0xffffe000u); }

  // Returns, in all lanes of row r, the sums of numbers r and r + 8.
  template <bool exact>
  __device__ float2 of(const float (&values)[16]) const {
    float upper[4] = {0, 0, 0, 0}, lower[4] = {0, 0, 0, 0};  // rows below 8 and from 8 on: two independent chains
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float first = values[2 * j], second = values[2 * j + 1];
      float(&sum)[4] = j < 4 ? upper : lower;
      if constexpr (exact) {
        add_pair(sum, j, first - head(first), second - head(second));
        add_pair(sum, j, head(first), head(second));
      } else {
        add_pair(sum, j, first, second);
      }
    }
    float2 sums{upper[0] + upper[1], lower[2] + lower[3]};
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
      sums.x += __shfl_xor_sync(0xffffffffu, sums.x, step);
      sums.y += __shfl_xor_sync(0xffffffffu, sums.y, step);
    }
    return sums;
  }
};

// dB and dC: the blocks' sums, [batch][blocks][length][2][width], added in order.
template <class T>
__global__ void __launch_bounds__(128)
    add_blocks(const float* sums, T* dB, T* dC, int64_t rows, int length, int states, int width, int blocks) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 128 + threadIdx.x;
  if (i >= rows * 2 * width) return;
  const int64_t row = i / (2 * width), batch = row / length, t = row % length;
  const int value = static_cast<int>(i % (2 * width)), n = value % width;
  if (n >= states) return;
  const float* from = sums + (batch * blocks * length + t) * 2 * width + value;
  const int64_t step = static_cast<int64_t>(length) * 2 * width;
  float sum = 0;
#pragma unroll 8
  for (int block = 0; block < blocks; ++block) sum += from[block * step];
  (value < width ? dB : dC)[row * states + n] = from_float<T>(sum);
}

// dA, dD and dbias: the segments' sums, [batch][segments][dA, dD, dbias], added in order.
__global__ void __launch_bounds__(128)
    add_segments(const float* partial, float* dA, float* dD, float* dbias, int dim, int states, int segments) {
  const int64_t own = static_cast<int64_t>(states + added_rows) * dim,
                i = static_cast<int64_t>(blockIdx.x) * 128 + threadIdx.x;
  const int64_t batch = blockIdx.y, matrix = static_cast<int64_t>(states) * dim;
  if (i >= own) return;
  float sum = 0;
  for (int segment = 0; segment < segments; ++segment) sum += partial[(batch * segments + segment) * own + i];
  if (i < matrix)
    dA[batch * matrix + i] = sum;
  else
    (i < matrix + dim ? dD : dbias - dim)[batch * dim + i - matrix] = sum;
}

template <int Own, int Parts, int Lane>
struct BackwardMemory {
  static constexpr int channels = Lane * 32, width = Own * Parts, threads = Parts * 32;
  float dt[max_chunk][channels], driven[max_chunk][channels], dy[max_chunk][channels];
  float B[max_chunk][width], C[max_chunk][width];
  float checkpoints[max_chunk / sub_chunk][Lane * Own][threads];
  float partial[Parts][3][sub_chunk][channels];  // sums over states: gradient * B, gradient * change * A, state * C
  float D[channels], bias[channels];
};

template <class T, int Own, int Parts, int Lane>
__global__ void __launch_bounds__(Parts * 32) backward(ScanInputs<T> in, ScanSizes s, ScanGradients<T> out) {
  using Where = Place<Own, Parts, Lane>;
  using Rows = TileRows<T, Where>;
  extern __shared__ float4 shared[];
  auto& memory = *reinterpret_cast<BackwardMemory<Own, Parts, Lane>*>(shared);
  const Where place(s, blockIdx.z);
  const LaneSums lane_sums;
  const int lane = threadIdx.x % 32, lane_channel = lane * Lane, first_state = place.part * Own;
  const int first_chunk = place.segment * s.segment_chunks, last_chunk = min(s.chunks, first_chunk + s.segment_chunks);
  float A[Lane][Own], g[Lane][Own], dA[Lane][Own] = {};
  load_decays(in.A, place, A);
  load_states(out.dlast, place, g);
  pass_segments(out.ends, s, place, A, s.segments - 1, -1, g);
  load_vector(in.D, place, memory.D);
  load_vector(in.bias, place, memory.bias);
  // For the four channels whose gradients this thread writes.
  float dD[4] = {0, 0, 0, 0}, dbias[4] = {0, 0, 0, 0};
  constexpr int per_row = Where::channels / 4;
  const int own_step = threadIdx.x / per_row, own_channel = threadIdx.x % per_row * 4;

  // The steps of a chunk in the layout of the passes below; returns a bit per step that clears the state.
  struct Tile {
    Rows u, delta, z, dy;
    TileColumns<T, Where> B, C;
    TileResets resets;
  };
  auto fetch = [&](Tile& tile, int t0, int end) {
    tile.u.fetch(in.u, place, t0, end);
    tile.delta.fetch(in.delta, place, t0, end);
    tile.dy.fetch(out.dy, place, t0, end);
    if (in.z) tile.z.fetch(in.z, place, t0, end);
    tile.B.fetch(in.B, place, t0, end);
    tile.C.fetch(in.C, place, t0, end);
    tile.resets.fetch(in.reset, place, t0, end);
  };
  auto store_chunk = [&](int t0, int end) {
    uint64_t resets = 0;
    Tile now, next;
    fetch(now, t0, end);
#pragma unroll 1
    for (int first = 0; first < s.chunk; first += tile_steps) {
      fetch(next, t0 + first + tile_steps, end);
#pragma unroll
      for (int q = 0; q < Rows::count; ++q) {
        if (!Rows::is_one(q)) continue;
        const int step = first + Rows::step(q), channel = Rows::channel(q);
        float dt[4], gradient[4];
        step_sizes(now.delta.quads[q], memory.bias + channel, s.has_softplus, t0 + step < end, dt);
#pragma unroll
        for (int i = 0; i < 4; ++i) gradient[i] = ungated(now.dy.quads[q][i], now.z.quads[q], i, in.z != nullptr);
        const Quad<T>& x = now.u.quads[q];
        store_floats(&memory.dt[step][channel], dt[0], dt[1], dt[2], dt[3]);
        store_floats(&memory.driven[step][channel], dt[0] * x[0], dt[1] * x[1], dt[2] * x[2], dt[3] * x[3]);
        store_floats(&memory.dy[step][channel], gradient[0], gradient[1], gradient[2], gradient[3]);
      }
      now.B.store(memory.B[first]);
      now.C.store(memory.C[first]);
      resets |= static_cast<uint64_t>(now.resets.bits()) << first;
      now = next;
    }
    return resets;
  };

  for (int chunk = last_chunk - 1; chunk >= first_chunk; --chunk) {
    const int t0 = chunk * s.chunk, end = min(s.length, t0 + s.chunk), subs = (end - t0 + sub_chunk - 1) / sub_chunk;
    __syncthreads();
    const uint64_t resets = store_chunk(t0, end);
    float h[Lane][Own];
#pragma unroll
    for (int l = 0; l < Lane; ++l) {
#pragma unroll
      for (int i = 0; i < Own; ++i) {
        const int64_t index = static_cast<int64_t>(place.batch) * s.chunks + chunk;
        h[l][i] = place.exists(l, i) ? out.starts[place.by_state(index, s.states, l, i)] : 0.0f;
      }
    }
    __syncthreads();
    // One step forward: saves `decay` and `before` for the backward pass.
    auto advance = [&](int t, bool cleared, float(&decay)[Lane][Own], float(&before)[Lane][Own]) {
      float dt[Lane], driven[Lane], B[Own];
      read_floats(&memory.dt[t][lane_channel], dt);
      read_floats(&memory.driven[t][lane_channel], driven);
      read_floats(&memory.B[t][first_state], B);
#pragma unroll
      for (int l = 0; l < Lane; ++l) {
#pragma unroll
        for (int i = 0; i < Own; ++i) {
          decay[l][i] = exp2_fast(dt[l] * A[l][i]);
          before[l][i] = cleared ? 0.0f : h[l][i];
          h[l][i] = decay[l][i] * before[l][i] + driven[l] * B[i];
        }
      }
    };
#pragma unroll 1
    for (int p = 0; p < subs; ++p) {  // the states at every eighth step
#pragma unroll
      for (int l = 0; l < Lane; ++l) {
#pragma unroll
        for (int i = 0; i < Own; ++i) memory.checkpoints[p][l * Own + i][threadIdx.x] = h[l][i];
      }
      if (p + 1 == subs) break;
      const auto cleared = static_cast<unsigned>(resets >> p * sub_chunk) & 0xffu;
      auto run = [&](auto resetting) {
#pragma unroll
        for (int k = 0; k < sub_chunk; ++k) {
          float decay[Lane][Own], before[Lane][Own];
          advance(p * sub_chunk + k, resetting.value && cleared >> k & 1, decay, before);
        }
      };
      cleared ? run(std::true_type{}) : run(std::false_type{});
    }
    auto go_back = [&](int p, unsigned cleared, auto resetting) {
      float decay[sub_chunk][Lane][Own], before[sub_chunk][Lane][Own];
#pragma unroll
      for (int l = 0; l < Lane; ++l) {
#pragma unroll
        for (int i = 0; i < Own; ++i) h[l][i] = memory.checkpoints[p][l * Own + i][threadIdx.x];
      }
#pragma unroll
      for (int k = 0; k < sub_chunk; ++k)
        advance(p * sub_chunk + k, resetting.value && cleared >> k & 1, decay[k], before[k]);
      float values[16];  // own * driven and dy * h of the states, for one or two steps
#pragma unroll
      for (int k = sub_chunk - 1; k >= 0; --k) {
        const int t = p * sub_chunk + k;
        const bool is_cleared = resetting.value && cleared >> k & 1;
        float dt[Lane], driven[Lane], dy[Lane], B[Own], C[Own], from_B[Lane], from_A[Lane], y[Lane];
        read_floats(&memory.dt[t][lane_channel], dt);
        read_floats(&memory.driven[t][lane_channel], driven);
        read_floats(&memory.dy[t][lane_channel], dy);
        read_floats(&memory.B[t][first_state], B);
        read_floats(&memory.C[t][first_state], C);
        constexpr int steps = 8 / Own;  // whose numbers are summed at once
        float* const own_values = values + k % steps * 2 * Own;
#pragma unroll
        for (int l = 0; l < Lane; ++l) {
          from_B[l] = from_A[l] = y[l] = 0;
#pragma unroll
          for (int i = 0; i < Own; ++i) {
            // Going backward, the state after a step is the one before the next, unless the next step cleared it.
            if (resetting.value) h[l][i] = decay[k][l][i] * before[k][l][i] + driven[l] * B[i];
            const float own = dy[l] * C[i] + g[l][i], faded = own * decay[k][l][i], moved = faded * before[k][l][i];
            const float dB = own * driven[l], dC = dy[l] * h[l][i];
            own_values[i] = l == 0 ? dB : own_values[i] + dB;
            own_values[Own + i] = l == 0 ? dC : own_values[Own + i] + dC;
            y[l] += C[i] * h[l][i];
            from_B[l] += own * B[i];
            from_A[l] += moved * A[l][i];
            dA[l][i] += moved * dt[l];
            g[l][i] = is_cleared ? 0.0f : faded;
            h[l][i] = before[k][l][i];
          }
        }
        write_floats(&memory.partial[place.part][0][k][lane_channel], from_B);
        write_floats(&memory.partial[place.part][1][k][lane_channel], from_A);
        write_floats(&memory.partial[place.part][2][k][lane_channel], y);
        if (k % steps == 0) {
          const float2 sums = lane_sums.of<sizeof(T) == 4>(values);
          const int number = lane / 4 + lane % 2 * 8, step = number / (2 * Own), value = number % (2 * Own);
          if (lane % 4 < 2 && t0 + t + step < end) {
            const int64_t row = (static_cast<int64_t>(place.batch) * gridDim.x + blockIdx.x) * s.length + t0 + t + step;
            out.sums[(row * 2 + value / Own) * Where::width + first_state + value % Own] = lane % 2 ? sums.y : sums.x;
          }
        }
      }
    };
    // Totals of the warps' sums over states, for eight steps; the rows are prefetched while the block waits.
    struct Read {
      Quad<T> u, delta, z, dy;
    };
    auto read = [&](int p) {
      const int t = t0 + p * sub_chunk + own_step, channel = place.first_channel + own_channel;
      const bool exists = own_step < sub_chunk && t < end;
      const int64_t row = (place.first_row + (exists ? t : t0)) * s.dim;
      Read rows;
      rows.u = load_quad(in.u + row, channel, s.dim, exists);
      rows.delta = load_quad(in.delta + row, channel, s.dim, exists);
      if (in.z) {
        rows.z = load_quad(in.z + row, channel, s.dim, exists);
        rows.dy = load_quad(out.dy + row, channel, s.dim, exists);
      }
      return rows;
    };
    auto write = [&](int p, const Read& rows) {
      const int step = p * sub_chunk + own_step, t = t0 + step, channel = place.first_channel + own_channel;
      if (own_step >= sub_chunk || t >= end) return;
      float sums[3][4] = {};
#pragma unroll
      for (int part = 0; part < Parts; ++part) {
#pragma unroll
        for (int kind = 0; kind < 3; ++kind) {
          float own[4];
          read_floats(&memory.partial[part][kind][own_step][own_channel], own);
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[kind][i] += own[i];
        }
      }
      const int64_t row = (place.first_row + t) * s.dim;
      const Quad<T>&u = rows.u, &delta = rows.delta;
      float du[4], ddelta[4], dz[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float dt = memory.dt[step][own_channel + i], dy = memory.dy[step][own_channel + i];
        const float gradient = s.has_softplus ? sigmoid(delta[i] + memory.bias[own_channel + i]) : 1.0f;
        du[i] = dt * sums[0][i] + memory.D[own_channel + i] * dy;
        ddelta[i] = (u[i] * sums[0][i] + sums[1][i] * (1 / log2_e)) * gradient;
        dD[i] += dy * u[i];
        dbias[i] += ddelta[i];
      }
      store_quad(out.du + row, channel, s.dim, du);
      store_quad(out.ddelta + row, channel, s.dim, ddelta);
      if (!in.z) return;
      const Quad<T>&z = rows.z, &dy = rows.dy;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float gate = sigmoid(z[i]), y = sums[2][i] + memory.D[own_channel + i] * u[i];
        dz[i] = dy[i] * y * (gate * (1.0f + z[i] * (1.0f - gate)));
      }
      store_quad(out.dz + row, channel, s.dim, dz);
    };
#pragma unroll 1
    for (int p = subs - 1; p >= 0; --p) {
      const auto cleared = static_cast<unsigned>(resets >> p * sub_chunk) & 0xffu;
      cleared ? go_back(p, cleared, std::true_type{}) : go_back(p, 0, std::false_type{});
      const Read rows = read(p);
      __syncthreads();
      write(p, rows);
      __syncthreads();
    }
  }

  const int64_t own_size = static_cast<int64_t>(s.states + added_rows) * s.dim,
                matrix = static_cast<int64_t>(s.states) * s.dim;
  const bool alone = s.segments == 1;
  float* const own = out.partial + (static_cast<int64_t>(place.batch) * s.segments + place.segment) * own_size;
  store_states(alone ? out.dA : own - place.batch * matrix, place, dA);
  if (place.segment == 0) store_states(out.dinitial, place, g);
  // dD and dbias: summed over the eight steps that the threads have written.
  float(&rows)[2][sub_chunk][Where::channels] =
      reinterpret_cast<float(&)[2][sub_chunk][Where::channels]>(memory.partial);
  if (own_step < sub_chunk) {
    store_floats(&rows[0][own_step][own_channel], dD[0], dD[1], dD[2], dD[3]);
    store_floats(&rows[1][own_step][own_channel], dbias[0], dbias[1], dbias[2], dbias[3]);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 2 * Where::channels; i += Where::threads) {
    const int kind = i / Where::channels, channel = i % Where::channels, to = place.first_channel + channel;
    float sum = 0;
#pragma unroll
    for (int step = 0; step < sub_chunk; ++step) sum += rows[kind][step][channel];
    if (to >= s.dim) continue;
    if (alone)
      (kind ? out.dbias : out.dD)[static_cast<int64_t>(place.batch) * s.dim + to] = sum;
    else
      own[matrix + static_cast<int64_t>(kind) * s.dim + to] = sum;
  }
}

template <int states, class T>
cudaError_t start_for(const ScanInputs<T>& in, const ScanSizes& s, const ScanGradients<T>& out, cudaStream_t stream) {
  constexpr ScanSplit split = backward_split(states);
  constexpr int own = split.own, parts = split.parts, lane = split.per_lane;
  using Memory = BackwardMemory<own, parts, lane>;
  static_assert(sizeof(Memory) == backward_bytes(split), "what the claim counts with");
  cudaError_t status = cudaSuccess;
  if (s.segments > 1)
    status = start_scan_kernel<SegmentMemory<own, parts, lane>>(segment_ends<T, own, parts, lane, false>,
                                                                scan_grid(split, s, s.segments - 1), split.threads(),
                                                                stream, in, out.dy, s, out.ends);
  if (status == cudaSuccess)
    status = start_scan_kernel<Memory>(backward<T, own, parts, lane>, scan_grid(split, s, s.segments), split.threads(),
                                       stream, in, s, out);
  if (status != cudaSuccess) return status;
  const int64_t rows = s.batch * s.length, numbers = rows * 2 * split.width();
  add_blocks<T><<<static_cast<unsigned>((numbers + 127) / 128), 128, 0, stream>>>(
      out.sums, out.dB, out.dC, rows, s.length, s.states, split.width(), static_cast<int>(split.blocks_of(s.dim)));
  if (s.segments > 1) {
    const auto blocks = static_cast<unsigned>((static_cast<int64_t>(s.states + added_rows) * s.dim + 127) / 128);
    add_segments<<<dim3(blocks, static_cast<unsigned>(s.batch)), 128, 0, stream>>>(
        out.partial, out.dA, out.dD, out.dbias, s.dim, s.states, s.segments);
  }
  return cudaGetLastError();
}

template <class T>
cudaError_t start(const ScanInputs<T>& in, const ScanSizes& s, const ScanGradients<T>& out, cudaStream_t stream) {
  return s.states <= 16 ? start_for<16>(in, s, out, stream) : start_for<max_states>(in, s, out, stream);
}

}  // namespace

cudaError_t start_scan_backward(const ScanInputs<float>& in, const ScanSizes& s, const ScanGradients<float>& out,
                                cudaStream_t stream) {
  return start(in, s, out, stream);
}
cudaError_t start_scan_backward(const ScanInputs<__nv_bfloat16>& in, const ScanSizes& s,
                                const ScanGradients<__nv_bfloat16>& out, cudaStream_t stream) {
  return start(in, s, out, stream);
}

}  // namespace capibara::cuda
