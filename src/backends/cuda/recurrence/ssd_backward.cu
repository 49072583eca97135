// The backward kernel of the state space dual: a block goes backward through the chunks of one head, with the gradient
// of the state in its warps' registers. Gradients of B and C are sums over the heads of a group: blocks write
// theirs, and a second kernel adds them in a fixed order, so that results are reproducible from run to run.
#include "backends/cuda/recurrence/ssd_decays.h"
#include "backends/cuda/recurrence/ssd_tiles.h"

// The shared memory of the state space dual's backward kernel, and sums over it.

namespace capibara::cuda {
namespace {

template <int states>
struct SsdBackwardMemory {
  struct Stage {
    __nv_bfloat16 x[ssd_chunk * ssd_dim], dy[ssd_chunk * ssd_dim], B[ssd_chunk * states], C[ssd_chunk * states];
  };
  Stage stages[2];
  __nv_bfloat16 start[states * ssd_dim], gradient[states * ssd_dim];
  __nv_bfloat16 weights[ssd_chunk * ssd_chunk], dscores[ssd_chunk * ssd_chunk];
  Decays decays[2];
  // Per step, from the warps that have a part of it: sums of dy * y, of driven * its gradient from outputs of the
  // chunk, of x * its gradient from the state, and of x * driven's gradient.
  float received[2][ssd_chunk], given[4][ssd_chunk], sent[2][ssd_chunk], along[2][ssd_chunk];
  float before[2][8], dD[8];  // per warp: state * its gradient, for a chunk and the previous one; dy * x
};

inline __device__ float over_quad(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}
inline __device__ float over_warp(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

// dB and dC, [batch * length][groups][states]: sums over the heads of a group, in order; eight states per thread.
__global__ void __launch_bounds__(256) add_heads(const __nv_bfloat16* dB, const __nv_bfloat16* dC, __nv_bfloat16* to_B,
                                                 __nv_bfloat16* to_C, int64_t columns, int repeats, int states) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x, pieces = states / 8;
  if (i >= columns * pieces) return;
  const int64_t column = i / pieces, piece = i % pieces;
  const auto* from =
      reinterpret_cast<const Piece<__nv_bfloat16>*>(blockIdx.y ? dC : dB) + column * repeats * pieces + piece;
  float sums[8] = {};
#pragma unroll 8
  for (int head = 0; head < repeats; ++head) {
    const Piece<__nv_bfloat16> own = from[head * pieces];
#pragma unroll
    for (int k = 0; k < 8; ++k) sums[k] += as_float(own.values[k]);
  }
  put_piece((blockIdx.y ? to_C : to_B) + i * 8, sums);
}

template <int states>
__global__ void __launch_bounds__(ssd_threads, 1) ssd_backward(SsdInputs in, SsdSizes s, SsdGradients out) {
  using Memory = SsdBackwardMemory<states>;
  constexpr int tiles = states / 16;
  extern __shared__ __align__(128) unsigned char shared[];
  auto& memory = *reinterpret_cast<Memory*>(shared);
  const int head = blockIdx.x, batch = blockIdx.y, group = head / (s.heads / s.groups);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = warp % 4 * 16, side_part = warp / 4, column = side_part * 32, wide_column = side_part * (states / 2);
  const int lane_row = row + lane / 4, lane_pair = lane % 4 * 2;
  const int64_t first_row = static_cast<int64_t>(batch) * s.length, own = static_cast<int64_t>(batch) * s.heads + head;
  const int64_t x_stride = static_cast<int64_t>(s.heads) * ssd_dim, b_stride = static_cast<int64_t>(s.groups) * states;
  const RowTile<ssd_chunk> weights{shared_word(memory.weights)}, dscores{shared_word(memory.dscores)};
  const RowTile<ssd_dim> start{shared_word(memory.start)}, gradient{shared_word(memory.gradient)};
  auto copy = [&](int chunk) {
    if (chunk >= 0) {
      auto& stage = memory.stages[chunk % 2];
      const int t0 = chunk * ssd_chunk, rows = min(ssd_chunk, s.length - t0);
      const int64_t x_at = (first_row + t0) * x_stride + static_cast<int64_t>(head) * ssd_dim;
      const int64_t b_at = (first_row + t0) * b_stride + static_cast<int64_t>(group) * states;
      RowTile<ssd_dim>{shared_word(stage.x)}.copy(in.x + x_at, x_stride, rows);
      RowTile<ssd_dim>{shared_word(stage.dy)}.copy(out.dy + x_at, x_stride, rows);
      RowTile<states>{shared_word(stage.B)}.copy(in.B + b_at, b_stride, rows);
      RowTile<states>{shared_word(stage.C)}.copy(in.C + b_at, b_stride, rows);
    }
    commit_pieces();
  };
  copy(s.chunks - 1);
  const StatePart<states> part;
  float g[tiles][4];  // the gradient of the state after the chunk
  part.load(g, out.dlast + own * ssd_dim * states);
  const float D = in.D[head], A = in.A[head];
  float dA = 0, dbias = 0, dD = 0;
  SsdSteps steps;  // of the next chunk, in the first warp
  if (warp == 0) {
    steps.fetch(in, s, batch, head, (s.chunks - 1) * ssd_chunk);
    memory.decays[(s.chunks - 1) % 2].fill(steps, in, s, head, (s.chunks - 1) * ssd_chunk);
  }
  for (int chunk = s.chunks - 1; chunk >= 0; --chunk) {
    auto& stage = memory.stages[chunk % 2];
    const RowTile<ssd_dim> x{shared_word(stage.x)}, dy{shared_word(stage.dy)};
    const RowTile<states> B{shared_word(stage.B)}, C{shared_word(stage.C)};
    const Decays& decays = memory.decays[chunk % 2];
    const int t0 = chunk * ssd_chunk;
    copy(chunk - 1);
    if (warp == 0) steps.fetch(in, s, batch, head, t0 - ssd_chunk);
    const float* const from =
        out.starts + ((static_cast<int64_t>(batch) * s.chunks + chunk) * s.heads + head) * (states * ssd_dim);
    float before = 0;
    part.each_pair(g, [&](int n, int p, float a, float b) {
      const float2 state = *reinterpret_cast<const float2*>(from + n * ssd_dim + p);
      before += a * state.x + b * state.y;
      start.store(n, p, state.x, state.y);
      gradient.store(n, p, a, b);
    });
    before = over_warp(before);
    if (lane == 0) memory.before[chunk % 2][warp] = before;
    wait_pieces<1>();
    __syncthreads();
    if (in.z) {  // gradients before the gate
      for (int i = threadIdx.x; i < ssd_chunk * ssd_dim / 2; i += ssd_threads) {
        const int q = i / (ssd_dim / 2), p = i % (ssd_dim / 2) * 2;
        if (t0 + q >= s.length) continue;
        const float2 given = dy.load(q, p), z = floats_of(*reinterpret_cast<const uint32_t*>(
                                                in.z + (first_row + t0 + q) * x_stride + head * ssd_dim + p));
        dy.store(q, p, given.x * (z.x * sigmoid(z.x)), given.y * (z.y * sigmoid(z.y)));
      }
      __syncthreads();
    }
    float received[2] = {0, 0};
    {  // Weights and the gradients of scores, rows of outputs by columns of inputs.
      float scores[4][4] = {}, products[4][4] = {};
#pragma unroll
      for (int k = 0; k < states / 16; ++k) {
        uint32_t a[4], b[4];
        C.left(a, row, k);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          B.right(b, column + 16 * j, k);
          multiply_add(scores[2 * j], a, b[0], b[1]);
          multiply_add(scores[2 * j + 1], a, b[2], b[3]);
        }
      }
#pragma unroll
      for (int k = 0; k < ssd_dim / 16; ++k) {
        uint32_t a[4], b[4];
        dy.left(a, row, k);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          x.right(b, column + 16 * j, k);
          multiply_add(products[2 * j], a, b[0], b[1]);
          multiply_add(products[2 * j + 1], a, b[2], b[3]);
        }
      }
      float given[4][2] = {};
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int q = lane_row + 8 * half;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          float weight[2], dscore[2];
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const int source = column + 8 * j + lane_pair + i;
            const float decay = decays.between(q, source), score = scores[j][2 * half + i];
            weight[i] = score * decay;
            dscore[i] = products[j][2 * half + i] * decay * decays.step[source];
            received[half] += dscore[i] * score;
            given[j][i] += dscore[i] * score;
          }
          weights.store(q, column + 8 * j + lane_pair, weight[0], weight[1]);
          dscores.store(q, column + 8 * j + lane_pair, dscore[0], dscore[1]);
        }
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float sum = given[j][i];
#pragma unroll
          for (int distance = 4; distance < 32; distance *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
          if (lane < 4) memory.given[warp % 4][column + 8 * j + lane_pair + i] = sum;
        }
      }
    }
    // Contributions through the state: gradients of inputs, of B and of C.
    float ddriven[4][4] = {}, dB[tiles][4] = {}, dC[tiles][4] = {};
#pragma unroll
    for (int k = 0; k < states / 16; ++k) {
      uint32_t a[4], b[4];
      B.left(a, row, k);
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        gradient.right_crossed(b, column + 16 * j, k);
        multiply_add(ddriven[2 * j], a, b[0], b[1]);
        multiply_add(ddriven[2 * j + 1], a, b[2], b[3]);
      }
    }
#pragma unroll
    for (int k = 0; k < ssd_dim / 16; ++k) {
      uint32_t by_x[4], by_dy[4], b[4];
      x.left(by_x, row, k);
      dy.left(by_dy, row, k);
#pragma unroll
      for (int j = 0; j < tiles / 2; ++j) {
        gradient.right(b, wide_column + 16 * j, k);
        multiply_add(dB[2 * j], by_x, b[0], b[1]);
        multiply_add(dB[2 * j + 1], by_x, b[2], b[3]);
        start.right(b, wide_column + 16 * j, k);
        multiply_add(dC[2 * j], by_dy, b[0], b[1]);
        multiply_add(dC[2 * j + 1], by_dy, b[2], b[3]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int q = lane_row + 8 * half;
      const float kept = decays.from_start[q], left = decays.to_end[q], driving = left * decays.step[q];
      float sent = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float2 input = x.load(q, column + 8 * j + lane_pair);
        sent += input.x * (ddriven[j][2 * half] *= left);
        sent += input.y * (ddriven[j][2 * half + 1] *= left);
      }
#pragma unroll
      for (int j = 0; j < tiles; ++j) {
        const float2 reading = C.load(q, wide_column + 8 * j + lane_pair);
        received[half] += reading.x * (dC[j][2 * half] *= kept);
        received[half] += reading.y * (dC[j][2 * half + 1] *= kept);
        dB[j][2 * half] *= driving;
        dB[j][2 * half + 1] *= driving;
      }
      sent = over_quad(sent);
      const float all = over_quad(received[half]);
      if (lane % 4 == 0) {
        memory.sent[side_part][q] = sent;
        memory.received[side_part][q] = all;
      }
    }
    if (warp == 0 && chunk > 0) memory.decays[(chunk + 1) % 2].fill(steps, in, s, head, t0 - ssd_chunk);
    __syncthreads();
    // Contributions inside the chunk.
#pragma unroll
    for (int k = 0; k < ssd_chunk / 16; ++k) {
      uint32_t a[4], b[4];
      weights.left_crossed(a, row, k);
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        dy.right_crossed(b, column + 16 * j, k);
        multiply_add(ddriven[2 * j], a, b[0], b[1]);
        multiply_add(ddriven[2 * j + 1], a, b[2], b[3]);
      }
      uint32_t crossed[4];
      dscores.left(a, row, k);
      dscores.left_crossed(crossed, row, k);
#pragma unroll
      for (int j = 0; j < tiles / 2; ++j) {
        B.right_crossed(b, wide_column + 16 * j, k);
        multiply_add(dC[2 * j], a, b[0], b[1]);
        multiply_add(dC[2 * j + 1], a, b[2], b[3]);
        C.right_crossed(b, wide_column + 16 * j, k);
        multiply_add(dB[2 * j], crossed, b[0], b[1]);
        multiply_add(dB[2 * j + 1], crossed, b[2], b[3]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int q = lane_row + 8 * half;
      const bool exists = t0 + q < s.length;
      const int64_t at = (first_row + t0 + q) * x_stride + static_cast<int64_t>(head) * ssd_dim + column + lane_pair;
      const float step = decays.step[q];
      float along = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float2 input = x.load(q, column + 8 * j + lane_pair), given = dy.load(q, column + 8 * j + lane_pair);
        along += input.x * ddriven[j][2 * half] + input.y * ddriven[j][2 * half + 1];
        dD += given.x * input.x + given.y * input.y;
        if (exists)
          *reinterpret_cast<uint32_t*>(out.dx + at + 8 * j) =
              pair_of(ddriven[j][2 * half] * step + D * given.x, ddriven[j][2 * half + 1] * step + D * given.y);
      }
      along = over_quad(along);
      if (lane % 4 == 0) memory.along[side_part][q] = along;
      if (!exists) continue;
      const int64_t to = ((first_row + t0 + q) * s.heads + head) * states + wide_column + lane_pair;
#pragma unroll
      for (int j = 0; j < tiles; ++j) {
        *reinterpret_cast<uint32_t*>(out.head_dB + to + 8 * j) = pair_of(dB[j][2 * half], dB[j][2 * half + 1]);
        *reinterpret_cast<uint32_t*>(out.head_dC + to + 8 * j) = pair_of(dC[j][2 * half], dC[j][2 * half + 1]);
      }
    }
    if (in.z) {  // recompute outputs, for the gradient of the gate
      float output[4][4] = {};
#pragma unroll
      for (int k = 0; k < states / 16; ++k) {
        uint32_t a[4], b[4];
        C.left(a, row, k);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          start.right_crossed(b, column + 16 * j, k);
          multiply_add(output[2 * j], a, b[0], b[1]);
          multiply_add(output[2 * j + 1], a, b[2], b[3]);
        }
      }
      const float kept[2] = {decays.from_start[lane_row], decays.from_start[lane_row + 8]};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) output[j][i] *= kept[i / 2];
      }
#pragma unroll
      for (int k = 0; k < ssd_chunk / 16; ++k) {
        uint32_t a[4], b[4];
        weights.left(a, row, k);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int source = 16 * k + i / 2 * 8 + lane_pair;
          const float2 weight = floats_of(a[i]);
          a[i] = pair_of(weight.x * decays.step[source], weight.y * decays.step[source + 1]);
        }
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          x.right_crossed(b, column + 16 * j, k);
          multiply_add(output[2 * j], a, b[0], b[1]);
          multiply_add(output[2 * j + 1], a, b[2], b[3]);
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int q = lane_row + 8 * half;
        if (t0 + q >= s.length) continue;
        const int64_t at = (first_row + t0 + q) * x_stride + static_cast<int64_t>(head) * ssd_dim + column + lane_pair;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float2 input = x.load(q, column + 8 * j + lane_pair);
          const float2 z = floats_of(*reinterpret_cast<const uint32_t*>(in.z + at + 8 * j));
          const float2 given = floats_of(*reinterpret_cast<const uint32_t*>(out.dy + at + 8 * j));
          const float first = sigmoid(z.x), second = sigmoid(z.y);
          *reinterpret_cast<uint32_t*>(out.dz + at + 8 * j) =
              pair_of(given.x * (output[j][2 * half] + D * input.x) * (first * (1.0f + z.x * (1.0f - first))),
                      given.y * (output[j][2 * half + 1] + D * input.y) * (second * (1.0f + z.y * (1.0f - second))));
        }
      }
    }
    // The gradient of the state before the chunk: C, scaled in two parts of 8 bits, times dy.
    const float whole = decays.whole;
#pragma unroll
    for (int j = 0; j < tiles; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) g[j][i] *= whole;
    }
#pragma unroll
    for (int k = 0; k < ssd_chunk / 16; ++k) {
      uint32_t a[4], high[4], low[4], b[4];
      C.left_crossed(a, part.row, k);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int q = 16 * k + i / 2 * 8 + lane_pair;
        float2 values = floats_of(a[i]);
        values.x *= decays.from_start[q];
        values.y *= decays.from_start[q + 1];
        high[i] = pair_of(values.x, values.y);
        const float2 rounded = floats_of(high[i]);
        low[i] = pair_of(values.x - rounded.x, values.y - rounded.y);
      }
#pragma unroll
      for (int j = 0; j < tiles / 2; ++j) {
        dy.right_crossed(b, part.column + 16 * j, k);
        multiply_add(g[2 * j], high, b[0], b[1]);
        multiply_add(g[2 * j + 1], high, b[2], b[3]);
        multiply_add(g[2 * j], low, b[0], b[1]);
        multiply_add(g[2 * j + 1], low, b[2], b[3]);
      }
    }
    __syncthreads();
    if (warp == 0) {  // gradients of the steps, two per lane: a step's decay is part of all pairs around it
      float along[2], difference[2], inside = 0, carried = 0;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int q = 2 * lane + i;
        const float step = decays.step[q], sent = step * (memory.sent[0][q] + memory.sent[1][q]);
        float given = sent;
#pragma unroll
        for (int w = 0; w < 4; ++w) given += memory.given[w][q];
        along[i] = memory.along[0][q] + memory.along[1][q];
        difference[i] = memory.received[0][q] + memory.received[1][q] - given;
        inside += sent;
      }
#pragma unroll
      for (int w = 0; w < 8; ++w) carried += memory.before[chunk % 2][w];
      const float at_end = whole * carried + over_warp(inside);
      float after = difference[0] + difference[1];  // sum over the lanes from this one on
#pragma unroll
      for (int distance = 1; distance < 32; distance *= 2) {
        const float sum = __shfl_down_sync(0xffffffffu, after, distance);
        if (lane + distance < 32) after += sum;
      }
      after = __shfl_down_sync(0xffffffffu, after, 1);
      if (lane == 31) after = 0;
      float back[2];
      back[1] = after + difference[1];
      back[0] = back[1] + difference[0];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int q = 2 * lane + i, t = t0 + q;
        if (t >= s.length) continue;
        const int64_t at = (first_row + t) * s.heads + head;
        const bool cleared = in.reset && in.reset[first_row + t];
        const float dlog = cleared ? 0.0f : back[i] + at_end;
        float dstep = along[i] + dlog * A;
        if (s.has_softplus) dstep *= sigmoid(__bfloat162float(in.dt[at]) + in.bias[head]);
        dA += dlog * decays.step[q];
        dbias += dstep;
        out.ddt[at] = __float2bfloat16(dstep);
      }
    }
  }
  part.store(g, out.dinitial + own * ssd_dim * states);
  dD = over_warp(dD);
  if (lane == 0) memory.dD[warp] = dD;
  __syncthreads();
  if (warp != 0) return;
  dA = over_warp(dA);
  dbias = over_warp(dbias);
  if (lane != 0) return;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < 8; ++w) sum += memory.dD[w];
  out.dA[own] = dA;
  out.dbias[own] = dbias;
  out.dD[own] = sum;
}

template <int states>
cudaError_t start_for(const SsdInputs& in, const SsdSizes& s, const SsdGradients& out, cudaStream_t stream) {
  const cudaError_t status = start_ssd_kernel<SsdBackwardMemory<states>>(ssd_backward<states>, in, s, out, stream);
  if (status != cudaSuccess) return status;
  const int64_t columns = s.batch * s.length * s.groups, pieces = columns * (states / 8);
  add_heads<<<dim3(static_cast<unsigned>((pieces + 255) / 256), 2), 256, 0, stream>>>(
      out.head_dB, out.head_dC, out.dB, out.dC, columns, s.heads / s.groups, states);
  return cudaGetLastError();
}

}  // namespace

cudaError_t start_ssd_backward(const SsdInputs& in, const SsdSizes& s, const SsdGradients& out, cudaStream_t stream) {
  const auto start = s.states == 32 ? start_for<32> : s.states == 64 ? start_for<64> : start_for<128>;
  return start(in, s, out, stream);
}

}  // namespace capibara::cuda
