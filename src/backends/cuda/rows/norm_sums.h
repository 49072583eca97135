// The gradients of norms: launches the kernel over rows, then adds the sums of its blocks in a fixed order, so that
// results are reproducible from run to run.
#pragma once

#include "backends/cuda/block_sums.h"
#include "backends/cuda/bulk_copies.h"
#include "backends/cuda/row_pieces.h"
#include "backends/cuda/rows/norm_split.h"

// Inputs and outputs of the norms' backward kernels, and copying a row to a stage of shared memory.

namespace capibara::cuda {
namespace {

template <class T>
struct NormGradients {
  const T *dy, *x, *scale;
  const float *means, *deviations;
  T* dx;
  float* partial;  // [centered ? 2 : 1][blocks][columns]
  int64_t rows;
  int columns;
};

// A row in a stage of shared memory: normalized x is x * deviation + shift.
struct Row {
  int64_t number;
  int slot;
  float deviation, shift;
};

// Starts copying x and dy, one after the other; each thread copies the pieces that it reads itself.
template <class T, int pieces>
__device__ void copy_row(const NormGradients<T>& in, int64_t row, Piece<T>* to) {
  const int per_row = in.columns / Piece<T>::size;
  if (row < in.rows) {
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at >= per_row) continue;
      copy_piece(to + at, reinterpret_cast<const Piece<T>*>(in.x + row * in.columns) + at);
      copy_piece(to + per_row + at, reinterpret_cast<const Piece<T>*>(in.dy + row * in.columns) + at);
    }
  }
  commit_pieces();
}

}  // namespace

// Layer norm and RMS norm backward, row by row: memory-bound, each row is read once into shared memory.
//
// A block owns one row at a time, a thread the same 16-byte pieces of every row. The next rows are prefetched while
// one is processed, each thread copying the pieces that it reads itself. Gradients of scale and bias are summed in
// registers and written once per block; a second kernel adds the blocks.

namespace {

// dx for every row, and for each block the sums of dy * normalized x and of dy over its rows.
template <class T, int pieces, int stages, bool centered>
__global__ void __launch_bounds__(max_norm_threads) pull_back(NormGradients<T> in) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ Exchange<float2> exchange;
  constexpr int size = Piece<T>::size;
  const int per_row = in.columns / size;
  auto* const staged = reinterpret_cast<Piece<T>*>(memory);  // [stages][x, dy][per_row]
  Piece<T> factor[pieces];
  float scale_sums[pieces][size], bias_sums[centered ? pieces : 1][size];
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const int at = threadIdx.x + p * blockDim.x;
    if (at < per_row) factor[p] = reinterpret_cast<const Piece<T>*>(in.scale)[at];
#pragma unroll
    for (int i = 0; i < size; ++i) scale_sums[p][i] = bias_sums[centered ? p : 0][i] = 0;
  }
  auto copy = [&](int64_t row, int slot) { copy_row<T, pieces>(in, row, staged + 2 * slot * per_row); };
  const int64_t step = gridDim.x;
#pragma unroll
  for (int s = 0; s + 1 < stages; ++s) copy(blockIdx.x + s * step, s);
  const float inverse = 1.0f / static_cast<float>(in.columns);
  // For the row to be written next and the following one, if registers suffice; else they are recomputed.
  constexpr bool held = pieces == 2;
  float normals[2][held ? pieces : 1][size], weights[2][held ? pieces : 1][size];
  auto make = [&](const Row& row, int p, int i, const Piece<T>& x, const Piece<T>& dy, float& normal, float& weight) {
    normal = as_float(x.values[i]) * row.deviation + row.shift;
    weight = as_float(dy.values[i]) * as_float(factor[p].values[i]);
  };
  // Adds a row to the column sums, and publishes its own two sums, which the block has after its next barrier.
  auto add_row = [&](auto parity, const Row& row, int iteration) {
    const Piece<T>* const own = staged + 2 * row.slot * per_row;
    float sum = 0, product = 0;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at >= per_row) continue;
      const Piece<T> x = own[at], dy = own[per_row + at];
#pragma unroll
      for (int i = 0; i < size; ++i) {
        float normal, weight;
        make(row, p, i, x, dy, normal, weight);
        const float gradient = as_float(dy.values[i]);
        scale_sums[p][i] += gradient * normal;
        if (centered) {
          bias_sums[p][i] += gradient;
          sum += weight;
        }
        product += weight * normal;
        if (held) {
          normals[parity.value][p][i] = normal;
          weights[parity.value][p][i] = weight;
        }
      }
    }
    publish_sums(sum, product, exchange, iteration);
  };
  auto write_row = [&](auto parity, const Row& row, float2 sums) {
    const Piece<T>* const own = staged + 2 * row.slot * per_row;
    const float share = -row.deviation * inverse, by_normal = sums.y * share;
    const float everywhere = centered ? sums.x * share : 0.0f;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at >= per_row) continue;
      Piece<T> x, dy;
      if (!held) x = own[at], dy = own[per_row + at];
      float result[size];
#pragma unroll
      for (int i = 0; i < size; ++i) {
        float normal, weight;
        if (held)
          normal = normals[parity.value][p][i], weight = weights[parity.value][p][i];
        else
          make(row, p, i, x, dy, normal, weight);
        result[i] = weight * row.deviation + (normal * by_normal + everywhere);
      }
      put_piece(in.dx + row.number * in.columns + at * size, result);
    }
  };
  auto row_at = [&](int64_t number, int slot) {
    const bool exists = number < in.rows;
    const float deviation = exists ? in.deviations[number] : 0, mean = exists && centered ? in.means[number] : 0;
    return Row{number, slot, deviation, -mean * deviation};
  };
  // The sums of a row are exchanged within the block while the previous row is written.
  Row now = row_at(blockIdx.x, 0);
  wait_pieces<stages - 2>();
  add_row(std::integral_constant<int, 0>{}, now, 0);
  auto advance = [&](auto parity, int iteration) {
    const Row next = row_at(now.number + step, now.slot + 1 == stages ? 0 : now.slot + 1);
    copy(now.number + (stages - 1) * step, now.slot == 0 ? stages - 1 : now.slot - 1);
    const float2 sums = published_sums(exchange, iteration);
    wait_pieces<stages - 2>();
    if (next.number < in.rows) add_row(std::integral_constant<int, 1 - parity.value>{}, next, iteration + 1);
    write_row(parity, now, sums);
    now = next;
    return now.number < in.rows;
  };
  for (int iteration = 0; advance(std::integral_constant<int, 0>{}, iteration); iteration += 2) {
    if (!advance(std::integral_constant<int, 1>{}, iteration + 1)) break;
  }
  const int64_t columns = in.columns;
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const int at = threadIdx.x + p * blockDim.x;
    if (at < per_row) {
      float* const own = in.partial + blockIdx.x * columns + static_cast<int64_t>(at) * size;
#pragma unroll
      for (int i = 0; i < size; ++i) {
        own[i] = scale_sums[p][i];
        if (centered) own[gridDim.x * columns + i] = bias_sums[p][i];
      }
    }
  }
}

}  // namespace

// Layer norm and RMS norm backward on Hopper: rows by bulk copies, several of them in flight.
//
// A block owns one row at a time, a thread the same 16-byte pieces of every row. One barrier publishes the row's sums
// and marks its stage of shared memory as free for another row. Gradients of scale and bias are summed
// in registers and written once per block; a second kernel adds the blocks.

namespace {

// Rows in flight per block; the blocks of a multiprocessor share 200 KiB for them.
constexpr int max_bulk_stages = 3;
constexpr int bulk_stages(int stage_bytes, int blocks) {
  const int room = 200 * 1024 / blocks / stage_bytes;
  return room < 1 ? 1 : room < max_bulk_stages ? room : max_bulk_stages;
}

// dx for every row, and for each block the sums of dy * normalized x and of dy over its rows.
template <class T, int pieces, bool centered>
__global__ void __launch_bounds__(max_norm_threads) pull_back_bulk(NormGradients<T> in, int stages) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ uint64_t full[max_bulk_stages];
  __shared__ Exchange<float2> exchange;
  constexpr int size = Piece<T>::size;
  constexpr bool held = pieces * size < 32;  // the row stays in registers; else it is read from shared memory twice
  const int per_row = in.columns / size;
  const int64_t step = gridDim.x;
  const uint32_t row_bytes = in.columns * sizeof(T);
  // Starts copying x and dy, one after the other.
  auto bring = [&](int64_t row, int slot) {
    if (row >= in.rows) return;
    unsigned char* const to = memory + slot * 2 * row_bytes;
    expect_bytes(full + slot, 2 * row_bytes);
    start_bulk(to, in.x + row * in.columns, row_bytes, full + slot);
    start_bulk(to + row_bytes, in.dy + row * in.columns, row_bytes, full + slot);
  };
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < stages; ++slot) set_barrier(full + slot, 1);
    publish_barriers();
    for (int slot = 0; slot < stages; ++slot) bring(blockIdx.x + slot * step, slot);
  }
  __syncthreads();
  Piece<T> factor[pieces];
  float scale_sums[pieces][size], bias_sums[centered ? pieces : 1][size];
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const int at = threadIdx.x + p * blockDim.x;
    if (at < per_row) factor[p] = reinterpret_cast<const Piece<T>*>(in.scale)[at];
#pragma unroll
    for (int i = 0; i < size; ++i) scale_sums[p][i] = bias_sums[centered ? p : 0][i] = 0;
  }
  const float inverse = 1.0f / static_cast<float>(in.columns);
  float deviation = blockIdx.x < in.rows ? in.deviations[blockIdx.x] : 0.0f;
  float mean = centered && blockIdx.x < in.rows ? in.means[blockIdx.x] : 0.0f;
  int slot = 0, iteration = 0;
  uint32_t phase = 0;
  for (int64_t row = blockIdx.x; row < in.rows; row += step, ++iteration) {
    const bool more = row + step < in.rows;
    const float next_deviation = more ? in.deviations[row + step] : 0.0f;
    const float next_mean = centered && more ? in.means[row + step] : 0.0f;
    await(full + slot, phase);
    const auto* const staged = reinterpret_cast<const Piece<T>*>(memory + slot * 2 * row_bytes);
    const float shift = -mean * deviation;  // x normalized is x * deviation + shift
    Piece<T> x[held ? pieces : 1], dy[held ? pieces : 1];
    float sum = 0, product = 0;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at >= per_row) continue;
      x[held ? p : 0] = staged[at];
      dy[held ? p : 0] = staged[per_row + at];
#pragma unroll
      for (int i = 0; i < size; ++i) {
        const float gradient = as_float(dy[held ? p : 0].values[i]), weight = gradient * as_float(factor[p].values[i]);
        const float normal = as_float(x[held ? p : 0].values[i]) * deviation + shift;
        scale_sums[p][i] += gradient * normal;
        if (centered) {
          bias_sums[p][i] += gradient;
          sum += weight;
        }
        product += weight * normal;
      }
    }
    const float2 totals = block_sums(sum, product, exchange, iteration);
    if (held && threadIdx.x == 0) bring(row + stages * step, slot);
    const float share = -deviation * inverse, by_normal = totals.y * share;
    const float everywhere = centered ? totals.x * share : 0.0f;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at >= per_row) continue;
      if (!held) x[0] = staged[at], dy[0] = staged[per_row + at];
      float result[size];
#pragma unroll
      for (int i = 0; i < size; ++i) {
        const float weight = as_float(dy[held ? p : 0].values[i]) * as_float(factor[p].values[i]);
        const float normal = as_float(x[held ? p : 0].values[i]) * deviation + shift;
        result[i] = weight * deviation + (normal * by_normal + everywhere);
      }
      put_piece(in.dx + row * in.columns + at * size, result);
    }
    if (!held) {
      __syncthreads();
      if (threadIdx.x == 0) bring(row + stages * step, slot);
    }
    deviation = next_deviation;
    mean = next_mean;
    if (++slot == stages) slot = 0, phase ^= 1;
  }
  const int64_t columns = in.columns;
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const int at = threadIdx.x + p * blockDim.x;
    if (at >= per_row) continue;
    float* const own = in.partial + blockIdx.x * columns + static_cast<int64_t>(at) * size;
#pragma unroll
    for (int i = 0; i < size; i += 4) {
      *reinterpret_cast<float4*>(own + i) = {scale_sums[p][i], scale_sums[p][i + 1], scale_sums[p][i + 2],
                                             scale_sums[p][i + 3]};
      if (centered)
        *reinterpret_cast<float4*>(own + gridDim.x * columns + i) = {bias_sums[p][i], bias_sums[p][i + 1],
                                                                     bias_sums[p][i + 2], bias_sums[p][i + 3]};
    }
  }
#endif
}

// Adds the blocks' sums: 32 columns per block, one column per lane, the rows of `partial` split over its warps.
// The grid's second dimension selects scale or bias.
template <class T>
__global__ void __launch_bounds__(1024) add_blocks(const float* partial, T* dscale, T* dbias, int blocks, int columns) {
  __shared__ float sums[32][33];
  const int lane = threadIdx.x, group = threadIdx.y, column = blockIdx.x * 32 + lane;
  partial += static_cast<int64_t>(blockIdx.y) * blocks * columns;
  float sum = 0;
  if (column < columns) {
#pragma unroll 4
    for (int block = group; block < blocks; block += 32) sum += partial[static_cast<int64_t>(block) * columns + column];
  }
  sums[group][lane] = sum;
  __syncthreads();
  if (group != 0 || column >= columns) return;
  float total = 0;
  for (int i = 0; i < 32; ++i) total += sums[i][lane];
  (blockIdx.y == 0 ? dscale : dbias)[column] = from_float<T>(total);
}

// Launches the kernel over rows.
template <class T, bool centered>
cudaError_t start_rows(const NormGradients<T>& in, int blocks, cudaStream_t stream) {
  const int row_pieces = in.columns / Piece<T>::size;
  const BackwardSplit split = backward_split_of(row_pieces);
  auto launch = [&](auto kernel, int bytes, auto... rest) {
    const cudaError_t room = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (room == cudaSuccess) kernel<<<blocks, split.threads, bytes, stream>>>(in, rest...);
    return room;
  };
  if (hopper_size() > 0) {
    const int stage = 2 * row_pieces * 16, stages = bulk_stages(stage, split.blocks);
    auto start = [&](auto kernel) { return launch(kernel, stages * stage, stages); };
    return split.pieces == 1   ? start(pull_back_bulk<T, 1, centered>)
           : split.pieces == 2 ? start(pull_back_bulk<T, 2, centered>)
                               : start(pull_back_bulk<T, 4, centered>);
  }
  const int bytes = split.stages * 2 * row_pieces * 16;
  return split.pieces == 1   ? launch(pull_back<T, 1, 4, centered>, bytes)
         : split.pieces == 2 ? launch(pull_back<T, 2, 4, centered>, bytes)
                             : launch(pull_back<T, 4, 3, centered>, bytes);
}

template <class T, bool centered>
cudaError_t start_pull_back(const NormGradients<T>& in, T* dscale, T* dbias, int blocks, cudaStream_t stream) {
  const cudaError_t status = start_rows<T, centered>(in, blocks, stream);
  if (status != cudaSuccess) return status;
  const dim3 grid((in.columns + 31) / 32, centered ? 2 : 1);
  add_blocks<T><<<grid, dim3(32, 32), 0, stream>>>(in.partial, dscale, dbias, blocks, in.columns);
  return cudaSuccess;
}

}  // namespace
}  // namespace capibara::cuda
