// The forward kernel of the state space dual: a block goes through the chunks of one head, with the state in its
// warps' registers.
#include "backends/cuda/recurrence/ssd_decays.h"
#include "backends/cuda/recurrence/ssd_tiles.h"

namespace capibara::cuda {
namespace {

template <int states>
struct SsdForwardMemory {
  struct Stage {
    __nv_bfloat16 x[ssd_chunk * ssd_dim], B[ssd_chunk * states], C[ssd_chunk * states];
  };
  Stage stages[2];
  __nv_bfloat16 weights[ssd_chunk * ssd_chunk], state[states * ssd_dim];
  Decays decays[2];
};

template <int states>
__global__ void __launch_bounds__(ssd_threads, 2) ssd_forward(SsdInputs in, SsdSizes s, SsdOutputs out) {
  using Memory = SsdForwardMemory<states>;
  extern __shared__ __align__(128) unsigned char shared[];
  auto& memory = *reinterpret_cast<Memory*>(shared);
  const int head = blockIdx.x, batch = blockIdx.y, group = head / (s.heads / s.groups);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = warp % 4 * 16, column = warp / 4 * 32, lane_row = row + lane / 4, lane_column = column + lane % 4 * 2;
  const int64_t first_row = static_cast<int64_t>(batch) * s.length, own = static_cast<int64_t>(batch) * s.heads + head;
  const int64_t x_stride = static_cast<int64_t>(s.heads) * ssd_dim, b_stride = static_cast<int64_t>(s.groups) * states;
  const RowTile<ssd_chunk> weights{shared_word(memory.weights)};
  const RowTile<ssd_dim> start{shared_word(memory.state)};
  auto copy = [&](int chunk) {
    if (chunk < s.chunks) {
      auto& stage = memory.stages[chunk % 2];
      const int t0 = chunk * ssd_chunk, rows = min(ssd_chunk, s.length - t0);
      RowTile<ssd_dim>{shared_word(stage.x)}.copy(in.x + (first_row + t0) * x_stride + head * ssd_dim, x_stride, rows);
      const int64_t at = (first_row + t0) * b_stride + static_cast<int64_t>(group) * states;
      RowTile<states>{shared_word(stage.B)}.copy(in.B + at, b_stride, rows);
      RowTile<states>{shared_word(stage.C)}.copy(in.C + at, b_stride, rows);
    }
    commit_pieces();
  };
  copy(0);
  const StatePart<states> part;
  float state[StatePart<states>::tiles][4];
  part.load(state, in.initial + own * ssd_dim * states);
  const float D = in.D[head];
  SsdSteps steps;  // of the next chunk, in the first warp
  if (warp == 0) {
    steps.fetch(in, s, batch, head, 0);
    memory.decays[0].fill(steps, in, s, head, 0);
  }
  for (int chunk = 0; chunk < s.chunks; ++chunk) {
    auto& stage = memory.stages[chunk % 2];
    const RowTile<ssd_dim> x{shared_word(stage.x)};
    const RowTile<states> B{shared_word(stage.B)}, C{shared_word(stage.C)};
    const Decays& decays = memory.decays[chunk % 2];
    copy(chunk + 1);
    if (warp == 0) steps.fetch(in, s, batch, head, (chunk + 1) * ssd_chunk);
    float* const to =
        out.starts + ((static_cast<int64_t>(batch) * s.chunks + chunk) * s.heads + head) * (states * ssd_dim);
    part.each_pair(state, [&](int n, int p, float a, float b) {
      *reinterpret_cast<float2*>(to + n * ssd_dim + p) = {a, b};
      start.store(n, p, a, b);
    });
    wait_pieces<1>();
    __syncthreads();
    // The weights of inputs in outputs, and the contribution of the state at the start of the chunk.
    float sums[4][4] = {}, output[4][4] = {};
#pragma unroll
    for (int k = 0; k < states / 16; ++k) {
      uint32_t a[4];
      C.left(a, row, k);
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        uint32_t b[4];
        B.right(b, column + 16 * j, k);
        multiply_add(sums[2 * j], a, b[0], b[1]);
        multiply_add(sums[2 * j + 1], a, b[2], b[3]);
        start.right_crossed(b, column + 16 * j, k);
        multiply_add(output[2 * j], a, b[0], b[1]);
        multiply_add(output[2 * j + 1], a, b[2], b[3]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int q = lane_row + 8 * half;
      const float kept = decays.from_start[q];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int from = lane_column + 8 * j;
        weights.store(q, from, sums[j][2 * half] * decays.between(q, from) * decays.step[from],
                      sums[j][2 * half + 1] * decays.between(q, from + 1) * decays.step[from + 1]);
        output[j][2 * half] *= kept;
        output[j][2 * half + 1] *= kept;
      }
    }
    if (warp == 0 && chunk + 1 < s.chunks)
      memory.decays[(chunk + 1) % 2].fill(steps, in, s, head, (chunk + 1) * ssd_chunk);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ssd_chunk / 16; ++k) {
      uint32_t a[4];
      weights.left(a, row, k);
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        uint32_t b[4];
        x.right_crossed(b, column + 16 * j, k);
        multiply_add(output[2 * j], a, b[0], b[1]);
        multiply_add(output[2 * j + 1], a, b[2], b[3]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int q = lane_row + 8 * half, t = chunk * ssd_chunk + q;
      if (t >= s.length) continue;
      const int64_t at = (first_row + t) * x_stride + static_cast<int64_t>(head) * ssd_dim + lane_column;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float2 input = x.load(q, lane_column + 8 * j);
        float first = output[j][2 * half] + D * input.x, second = output[j][2 * half + 1] + D * input.y;
        if (in.z) {
          const float2 z = floats_of(*reinterpret_cast<const uint32_t*>(in.z + at + 8 * j));
          first *= z.x * sigmoid(z.x);
          second *= z.y * sigmoid(z.y);
        }
        *reinterpret_cast<uint32_t*>(out.y + at + 8 * j) = pair_of(first, second);
      }
    }
    // The next state: B, scaled in two parts of 8 bits, times x.
    const float whole = decays.whole;
#pragma unroll
    for (int j = 0; j < StatePart<states>::tiles; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) state[j][i] *= whole;
    }
#pragma unroll
    for (int k = 0; k < ssd_chunk / 16; ++k) {
      uint32_t a[4], high[4], low[4];
      B.left_crossed(a, part.row, k);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int q = 16 * k + i / 2 * 8 + lane % 4 * 2;
        float2 values = floats_of(a[i]);
        values.x *= decays.to_end[q] * decays.step[q];
        values.y *= decays.to_end[q + 1] * decays.step[q + 1];
        high[i] = pair_of(values.x, values.y);
        const float2 rounded = floats_of(high[i]);
        low[i] = pair_of(values.x - rounded.x, values.y - rounded.y);
      }
#pragma unroll
      for (int j = 0; j < StatePart<states>::tiles / 2; ++j) {
        uint32_t b[4];
        x.right_crossed(b, part.column + 16 * j, k);
        multiply_add(state[2 * j], high, b[0], b[1]);
        multiply_add(state[2 * j + 1], high, b[2], b[3]);
        multiply_add(state[2 * j], low, b[0], b[1]);
        multiply_add(state[2 * j + 1], low, b[2], b[3]);
      }
    }
    __syncthreads();
  }
  part.store(state, out.last + own * ssd_dim * states);
}

template <int states>
cudaError_t start_for(const SsdInputs& in, const SsdSizes& s, const SsdOutputs& out, cudaStream_t stream) {
  return start_ssd_kernel<SsdForwardMemory<states>>(ssd_forward<states>, in, s, out, stream);
}

}  // namespace

cudaError_t start_ssd_forward(const SsdInputs& in, const SsdSizes& s, const SsdOutputs& out, cudaStream_t stream) {
  const auto start = s.states == 32 ? start_for<32> : s.states == 64 ? start_for<64> : start_for<128>;
  return start(in, s, out, stream);
}

}  // namespace capibara::cuda
