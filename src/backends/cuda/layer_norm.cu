// Layer norm, forward and backward, as foreign calls of XLA programs: each row is read once and stays in registers.
//
// Both are bound by memory. A block owns one row at a time; a thread owns the same 16-byte pieces of every row, so that
// the backward kernel sums the gradients of scale and bias in registers and writes them once for each block. A second
// kernel adds the blocks in a fixed order: results are equal from run to run.
//
// nvcc compiles the kernels and their handlers into the module; the C++ compiler compiles the claim into the library.
#include <cstdint>

namespace capibara::cuda {
namespace {

constexpr int max_threads = 512, max_pieces = 4;  // of a block, of a thread

// Whether the pieces of a row, whole ones of 16 bytes, have room in a block.
constexpr bool holds_row(int64_t columns, int64_t element_bytes) {
  const int64_t size = 16 / element_bytes;
  return columns > 0 && columns % size == 0 && columns / size <= max_threads * max_pieces;
}

}  // namespace
}  // namespace capibara::cuda

#ifndef __CUDACC__  // ---- the claim
                    // ------------------------------------------------------------------------------------

#include <algorithm>

#include "backends/cuda/claims.h"

namespace capibara::cuda {
namespace {

bool fits(const ArrayType& rows) {
  if (rows.dtype != DType::float32 && rows.dtype != DType::bfloat16) return false;
  return rows.size() > 0 && holds_row(rows.shape.back(), storage_size(rows.dtype));
}

// Blocks of the backward kernel: enough to fill the GPU, few enough that their sums are little memory.
int64_t block_count(const ArrayType& rows, int64_t multiprocessors) {
  const int64_t threads = std::max<int64_t>(32, rows.shape.back() * storage_size(rows.dtype) / 16);
  const int64_t blocks = multiprocessors * std::clamp<int64_t>(1024 / threads, 1, 8);
  return std::max<int64_t>(1, std::min(blocks, rows.size() / rows.shape.back()));
}

std::optional<KernelCall> claim_forward(const ClaimArgs& args) {
  if (!fits(args.inputs[0])) return std::nullopt;
  return KernelCall{"capibara_layer_norm", float_setting("epsilon", args.attrs.real("epsilon")), {}};
}

std::optional<KernelCall> claim_backward(const ClaimArgs& args) {
  const ArrayType& x = args.inputs[1];
  if (!fits(x)) return std::nullopt;
  ArrayType sums;
  sums.shape = {2, block_count(x, args.multiprocessors), x.shape.back()};
  return KernelCall{"capibara_layer_norm_grad", "", {sums}};
}

}  // namespace

Claims layer_norm_claims() { return {{"layer_norm", claim_forward}, {"layer_norm_grad", claim_backward}}; }

}  // namespace capibara::cuda

#else  // ---- the kernels ---------------------------------------------------------------------------------------------

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "backends/cuda/call_frame.h"
#include "backends/cuda/kernels.h"

namespace capibara::cuda {
namespace {

// Sixteen bytes of a row.
template <class T>
struct alignas(16) Piece {
  static constexpr int size = 16 / sizeof(T);
  T values[size];
};

template <class T>
__device__ float as_float(T value) {
  return static_cast<float>(value);
}
template <class T>
__device__ T from_float(float value) {
  return static_cast<T>(value);
}
template <>
__device__ __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16(value);
}

// The sums of two numbers over a block, known to all its threads.
__device__ float2 block_sums(float a, float b, float2* shared) {
  for (int step = 16; step > 0; step /= 2) {
    a += __shfl_xor_sync(0xffffffffu, a, step);
    b += __shfl_xor_sync(0xffffffffu, b, step);
  }
  const int warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
  if (warps == 1) return {a, b};
  __syncthreads();  // nobody still reads the sums of the row before
  if (threadIdx.x % 32 == 0) shared[warp] = {a, b};
  __syncthreads();
  float2 total{0, 0};
  for (int i = 0; i < warps; ++i) {
    total.x += shared[i].x;
    total.y += shared[i].y;
  }
  return total;
}

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias over rows of `columns` elements; `pieces` for each thread.
template <class T, int pieces>
__global__ void __launch_bounds__(max_threads) forward(const T* x, const T* scale, const T* bias, T* y, float* means,
                                                       float* deviations, int64_t rows, int columns, float epsilon) {
  __shared__ float2 shared[32];
  constexpr int size = Piece<T>::size;
  const int per_row = columns / size;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const auto* from = reinterpret_cast<const Piece<T>*>(x + row * columns);
    float values[pieces][size];
    float sum = 0;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at < per_row) {
        const Piece<T> piece = from[at];
#pragma unroll
        for (int i = 0; i < size; ++i) sum += values[p][i] = as_float(piece.values[i]);
      }
    }
    const float mean = block_sums(sum, 0, shared).x / columns;
    float squares = 0;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      if (static_cast<int>(threadIdx.x + p * blockDim.x) < per_row) {
#pragma unroll
        for (int i = 0; i < size; ++i) squares += (values[p][i] - mean) * (values[p][i] - mean);
      }
    }
    const float deviation = rsqrtf(block_sums(squares, 0, shared).x / columns + epsilon);
    if (threadIdx.x == 0) {
      means[row] = mean;
      deviations[row] = deviation;
    }
    auto* to = reinterpret_cast<Piece<T>*>(y + row * columns);
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at < per_row) {
        const Piece<T> factor = reinterpret_cast<const Piece<T>*>(scale)[at], offset = reinterpret_cast<const Piece<T>*>(bias)[at];
        Piece<T> result;
#pragma unroll
        for (int i = 0; i < size; ++i) {
          result.values[i] = from_float<T>((values[p][i] - mean) * deviation * as_float(factor.values[i]) + as_float(offset.values[i]));
        }
        to[at] = result;
      }
    }
  }
}

// dx for every row, and for each block the sums of dy * normalized x and of dy over its rows.
template <class T, int pieces>
__global__ void __launch_bounds__(max_threads)
    backward(const T* dy, const T* x, const T* scale, const float* means, const float* deviations, T* dx,
             float* partial, int64_t rows, int columns) {
  __shared__ float2 shared[32];
  constexpr int size = Piece<T>::size;
  const int per_row = columns / size;
  float factor[pieces][size], scale_sums[pieces][size], bias_sums[pieces][size];
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const int at = threadIdx.x + p * blockDim.x;
#pragma unroll
    for (int i = 0; i < size; ++i) {
      factor[p][i] = at < per_row ? as_float(reinterpret_cast<const Piece<T>*>(scale)[at].values[i]) : 0;
      scale_sums[p][i] = bias_sums[p][i] = 0;
    }
  }
  Piece<T> next_x[pieces], next_dy[pieces];
  auto load = [&](int64_t row) {
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at < per_row && row < rows) {
        next_x[p] = reinterpret_cast<const Piece<T>*>(x + row * columns)[at];
        next_dy[p] = reinterpret_cast<const Piece<T>*>(dy + row * columns)[at];
      }
    }
  };
  load(blockIdx.x);
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float mean = means[row], deviation = deviations[row];
    float normal[pieces][size], weighted[pieces][size];
    float sum = 0, product = 0;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      if (static_cast<int>(threadIdx.x + p * blockDim.x) < per_row) {
#pragma unroll
        for (int i = 0; i < size; ++i) {
          const float slope = as_float(next_dy[p].values[i]);
          normal[p][i] = (as_float(next_x[p].values[i]) - mean) * deviation;
          weighted[p][i] = slope * factor[p][i];
          scale_sums[p][i] += slope * normal[p][i];
          bias_sums[p][i] += slope;
          sum += weighted[p][i];
          product += weighted[p][i] * normal[p][i];
        }
      }
    }
    load(row + gridDim.x);  // on its way while the block agrees on its sums
    const float2 sums = block_sums(sum, product, shared);
    const float mean_sum = sums.x / columns, mean_product = sums.y / columns;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at < per_row) {
        Piece<T> result;
#pragma unroll
        for (int i = 0; i < size; ++i) {
          result.values[i] = from_float<T>(deviation * (weighted[p][i] - mean_sum - normal[p][i] * mean_product));
        }
        reinterpret_cast<Piece<T>*>(dx + row * columns)[at] = result;
      }
    }
  }
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const int at = threadIdx.x + p * blockDim.x;
    if (at < per_row) {
#pragma unroll
      for (int i = 0; i < size; ++i) {
        const int64_t column = static_cast<int64_t>(at) * size + i;
        partial[static_cast<int64_t>(blockIdx.x) * columns + column] = scale_sums[p][i];
        partial[static_cast<int64_t>(gridDim.x + blockIdx.x) * columns + column] = bias_sums[p][i];
      }
    }
  }
}

// Adds the blocks' sums: 32 columns for a block, one column in each lane, the rows of `partial` shared by its warps.
template <class T>
__global__ void add_blocks(const float* partial, T* dscale, T* dbias, int blocks, int columns) {
  __shared__ float sums[2][32][33];
  const int lane = threadIdx.x, group = threadIdx.y, column = blockIdx.x * 32 + lane;
  float first = 0, second = 0;
  if (column < columns) {
    for (int block = group; block < blocks; block += 32) {
      first += partial[static_cast<int64_t>(block) * columns + column];
      second += partial[static_cast<int64_t>(blocks + block) * columns + column];
    }
  }
  sums[0][group][lane] = first;
  sums[1][group][lane] = second;
  __syncthreads();
  if (group == 0 && column < columns) {
    float a = 0, b = 0;
    for (int i = 0; i < 32; ++i) {
      a += sums[0][i][lane];
      b += sums[1][i][lane];
    }
    dscale[column] = from_float<T>(a);
    dbias[column] = from_float<T>(b);
  }
}

// ---- handlers -----------------------------------------------------------------------------------------------------

// How many pieces a thread holds, so that a block has at most 512 threads; 0 where rows are too long or no whole pieces.
// Forward, several loads in flight for each thread count for more than many threads: blocks of 128 as long as they reach.
// Backward a thread holds three rows at once, and more pieces would cost registers.
template <class T>
int pieces_for(int columns, bool is_forward) {
  if (!holds_row(columns, sizeof(T))) return 0;
  for (int pieces : {1, 2}) {
    if (columns / Piece<T>::size <= (is_forward ? 128 : max_threads) * pieces) return pieces;
  }
  return max_pieces;
}

int threads_for(int pieces_of_row, int pieces) { return ((pieces_of_row + pieces - 1) / pieces + 31) / 32 * 32; }

template <class T, int pieces>
void start_forward(const ffi::CallFrame* frame, const Extent& extent, cudaStream_t stream) {
  const int threads = threads_for(extent.columns / Piece<T>::size, pieces);
  const int64_t blocks = extent.rows < (int64_t{1} << 30) ? extent.rows : int64_t{1} << 30;
  forward<T, pieces><<<static_cast<unsigned>(blocks), threads, 0, stream>>>(
      static_cast<const T*>(operand(frame, 0).data), static_cast<const T*>(operand(frame, 1).data),
      static_cast<const T*>(operand(frame, 2).data), static_cast<T*>(result(frame, 0).data), static_cast<float*>(result(frame, 1).data),
      static_cast<float*>(result(frame, 2).data), extent.rows, extent.columns, float_attribute(frame, "epsilon", 1e-5f));
}

template <class T, int pieces>
void start_backward(const ffi::CallFrame* frame, const Extent& extent, cudaStream_t stream) {
  const int threads = threads_for(extent.columns / Piece<T>::size, pieces);
  const int blocks = static_cast<int>(result(frame, 3).dims[1]);
  auto* partial = static_cast<float*>(result(frame, 3).data);
  backward<T, pieces><<<blocks, threads, 0, stream>>>(
      static_cast<const T*>(operand(frame, 0).data), static_cast<const T*>(operand(frame, 1).data),
      static_cast<const T*>(operand(frame, 2).data), static_cast<const float*>(operand(frame, 3).data),
      static_cast<const float*>(operand(frame, 4).data), static_cast<T*>(result(frame, 0).data), partial, extent.rows, extent.columns);
  add_blocks<T><<<(extent.columns + 31) / 32, dim3(32, 32), 0, stream>>>(partial, static_cast<T*>(result(frame, 1).data),
                                                                        static_cast<T*>(result(frame, 2).data), blocks, extent.columns);
}

template <class T>
bool start(const ffi::CallFrame* frame, const Extent& extent, bool is_forward, cudaStream_t stream) {
  switch (pieces_for<T>(extent.columns, is_forward)) {
    case 1: is_forward ? start_forward<T, 1>(frame, extent, stream) : start_backward<T, 1>(frame, extent, stream); return true;
    case 2: is_forward ? start_forward<T, 2>(frame, extent, stream) : start_backward<T, 2>(frame, extent, stream); return true;
    case max_pieces:
      is_forward ? start_forward<T, max_pieces>(frame, extent, stream)
                 : start_backward<T, max_pieces>(frame, extent, stream);
      return true;
    default: return false;
  }
}

void* run(ffi::CallFrame* frame, bool is_forward) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible)) return nullptr;
  if (frame->stage != 3) return nullptr;
  const ffi::Buffer& x = operand(frame, is_forward ? 0 : 1);
  const Extent extent = extent_of(x);
  const auto stream = static_cast<cudaStream_t>(ffi::stream_of(frame));
  bool started = false;
  if (x.dtype == f32)
    started = start<float>(frame, extent, is_forward, stream);
  else if (x.dtype == bf16)
    started = start<__nv_bfloat16>(frame, extent, is_forward, stream);
  if (!started) return ffi::failure(frame, "layer_norm: the CUDA kernel takes float32 and bfloat16 rows of whole 16-byte pieces");
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : ffi::failure(frame, cudaGetErrorString(status));
}

void* layer_norm(ffi::CallFrame* frame) { return run(frame, true); }
void* layer_norm_grad(ffi::CallFrame* frame) { return run(frame, false); }

constexpr KernelRecord records[] = {{"capibara_layer_norm", layer_norm, ffi::command_buffer_compatible},
                                    {"capibara_layer_norm_grad", layer_norm_grad, ffi::command_buffer_compatible}};

}  // namespace

Handlers layer_norm_handlers() { return {records, sizeof records / sizeof records[0]}; }

}  // namespace capibara::cuda

#endif
