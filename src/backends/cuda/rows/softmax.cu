// Softmax of rows and its reverse derivative as foreign calls of XLA programs.
//
// Both are memory-bound. Rows of whole 16-byte pieces that a block holds in registers are read once. Others, of any
// length and alignment, are read twice, the second time mostly from the cache; the first pass keeps a maximum and the
// sum of exponentials relative to it.
//
// nvcc compiles the kernels and their handlers into the module; the C++ compiler compiles the claim into the library.
#ifndef __CUDACC__  // ---- the claim ----------------------------------------------------------------------------------

#include <limits>

#include "backends/cuda/rows/norm_claims.h"

namespace capibara::cuda {
namespace {

std::optional<KernelCall> claim(const ArrayType& rows, const char* target) {
  if (!is_row_type(rows.dtype) || rows.size() == 0) return std::nullopt;
  if (rows.shape.back() > std::numeric_limits<int32_t>::max() / 2) return std::nullopt;
  return KernelCall{target, "", {}};
}

std::optional<KernelCall> claim_forward(const ClaimArgs& args) { return claim(args.inputs[0], "capibara_softmax"); }
std::optional<KernelCall> claim_backward(const ClaimArgs& args) {
  return claim(args.inputs[0], "capibara_softmax_grad");
}

}  // namespace

Claims softmax_claims() { return {{"softmax", claim_forward}, {"softmax_grad", claim_backward}}; }

}  // namespace capibara::cuda

#else  // ---- the kernels ---------------------------------------------------------------------------------------------

#include "backends/cuda/kernels.h"
#include "backends/cuda/rows/norm_split.h"
#include "backends/cuda/rows/row_powers.h"

namespace capibara::cuda {
namespace {

// Exponentials are relative to their thread's maximum until the block has that of the row.
template <class T, int pieces>
__global__ void __launch_bounds__(max_norm_threads) held_softmax(const T* x, T* y, int64_t rows, int columns) {
  __shared__ Exchange<float2> exchange;
  constexpr int size = Piece<T>::size;
  const int per_row = columns / size;
  int iteration = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const auto* from = reinterpret_cast<const Piece<T>*>(x + row * columns);
    float values[pieces][size];
    Powers own;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at >= per_row) continue;
      const Piece<T> piece = from[at];
      widen<T, size>(piece.values, values[p]);
#pragma unroll
      for (int i = 0; i < size; ++i) own.greatest = fmaxf(own.greatest, values[p][i]);
    }
    const float base = own.base();
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      if (static_cast<int>(threadIdx.x + p * blockDim.x) >= per_row) continue;
#pragma unroll
      for (int i = 0; i < size; ++i) own.sum += values[p][i] = power<T>(values[p][i] - base);
    }
    const Powers all = own.of_block<T>(exchange, iteration++);
    const float factor = power<T>(base - all.greatest) / all.sum;
    T* const to = y + row * columns;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at >= per_row) continue;
#pragma unroll
      for (int i = 0; i < size; ++i) values[p][i] *= factor;
      put_piece(to + at * size, values[p]);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(512) any_softmax(const T* x, T* y, int64_t rows, int columns) {
  __shared__ Exchange<float2> exchange;
  int iteration = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = x + row * columns;
    T* to = y + row * columns;
    Powers own;
    visit_row(from, columns, [&](int, auto& values) { own.add<T>(values); });
    const Powers all = own.of_block<T>(exchange, iteration++);
    const float factor = 1.0f / all.sum;
    visit_row(from, columns, [&](int column, auto& values) {
      for (float& value : values) value = power<T>(value - all.greatest) * factor;
      write_values(to, column, values);
    });
  }
}

// dx = y * (dy - sum(dy * y))
template <class T, int pieces>
__global__ void __launch_bounds__(max_norm_threads)
    held_gradient(const T* dy, const T* y, T* dx, int64_t rows, int columns) {
  __shared__ Exchange<float2> exchange;
  constexpr int size = Piece<T>::size;
  const int per_row = columns / size;
  int iteration = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const auto* gradients = reinterpret_cast<const Piece<T>*>(dy + row * columns);
    const auto* shares = reinterpret_cast<const Piece<T>*>(y + row * columns);
    Piece<T> gradient[pieces], share[pieces];
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at >= per_row) continue;
      gradient[p] = gradients[at];
      share[p] = shares[at];
    }
    float sum = 0;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      if (static_cast<int>(threadIdx.x + p * blockDim.x) >= per_row) continue;
#pragma unroll
      for (int i = 0; i < size; ++i) sum += as_float(gradient[p].values[i]) * as_float(share[p].values[i]);
    }
    sum = block_sums(sum, 0, exchange, iteration++).x;
    T* const to = dx + row * columns;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at >= per_row) continue;
      float result[size];
#pragma unroll
      for (int i = 0; i < size; ++i) result[i] = as_float(share[p].values[i]) * (as_float(gradient[p].values[i]) - sum);
      put_piece(to + at * size, result);
    }
  }
}

// Reads the elements of `row` in the columns that visit_row passes for a row of the same alignment.
template <class T, int count>
__device__ void read_values(const T* row, int column, float (&values)[count]) {
  if constexpr (count == 1) {
    values[0] = as_float(row[column]);
  } else {
    const Piece<T> piece = *reinterpret_cast<const Piece<T>*>(row + column);
    widen<T, count>(piece.values, values);
  }
}

template <class T>
__global__ void __launch_bounds__(512) any_gradient(const T* dy, const T* y, T* dx, int64_t rows, int columns) {
  __shared__ Exchange<float2> exchange;
  int iteration = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t first = row * columns;
    float own = 0;
    visit_row(y + first, columns, [&](int column, auto& shares) {
      constexpr int count = sizeof shares / sizeof(float);
      float gradients[count];
      read_values(dy + first, column, gradients);
      for (int i = 0; i < count; ++i) own += shares[i] * gradients[i];
    });
    const float sum = block_sums(own, 0, exchange, iteration++).x;
    visit_row(y + first, columns, [&](int column, auto& shares) {
      constexpr int count = sizeof shares / sizeof(float);
      float gradients[count];
      read_values(dy + first, column, gradients);
      for (int i = 0; i < count; ++i) gradients[i] = shares[i] * (gradients[i] - sum);
      write_values(dx + first, column, gradients);
    });
  }
}

// ---- handlers -----------------------------------------------------------------------------------------------------

// Calls `held` with the pieces per thread and the number of threads if a block holds a row, else `any`.
template <class T, class Held, class Any>
void choose(const Extent& extent, const Held& held, const Any& any) {
  if (!holds_row(extent.columns, sizeof(T))) return any(whole_warps(extent.columns / 32, 256));
  const int row_pieces = extent.columns / Piece<T>::size;
  auto threads = [&](int pieces) { return whole_warps((row_pieces + pieces - 1) / pieces, max_norm_threads); };
  if (row_pieces <= 128)
    held(std::integral_constant<int, 1>{}, threads(1));
  else if (row_pieces <= 256)
    held(std::integral_constant<int, 2>{}, threads(2));
  else
    held(std::integral_constant<int, 4>{}, threads(4));
}

template <class T>
void start_forward(const ffi::CallFrame* frame, const Extent& extent, cudaStream_t stream) {
  const T* x = data_of<T>(operand(frame, 0));
  T* y = data_of<T>(result(frame, 0));
  const unsigned grid = grid_of(extent.rows);
  choose<T>(
      extent,
      [&](auto pieces, int threads) {
        held_softmax<T, pieces.value><<<grid, threads, 0, stream>>>(x, y, extent.rows, extent.columns);
      },
      [&](int threads) { any_softmax<T><<<grid, threads, 0, stream>>>(x, y, extent.rows, extent.columns); });
}

template <class T>
void start_backward(const ffi::CallFrame* frame, const Extent& extent, cudaStream_t stream) {
  const T *dy = data_of<T>(operand(frame, 0)), *y = data_of<T>(operand(frame, 1));
  T* dx = data_of<T>(result(frame, 0));
  const unsigned grid = grid_of(extent.rows);
  choose<T>(
      extent,
      [&](auto pieces, int threads) {
        held_gradient<T, pieces.value><<<grid, threads, 0, stream>>>(dy, y, dx, extent.rows, extent.columns);
      },
      [&](int threads) { any_gradient<T><<<grid, threads, 0, stream>>>(dy, y, dx, extent.rows, extent.columns); });
}

void* run(ffi::CallFrame* frame, bool is_forward) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible) || frame->stage != 3) return nullptr;
  const ffi::Buffer& x = operand(frame, 0);
  const Extent extent = extent_of(x);
  const bool started = with_type(x.dtype, [&](auto number) {
    using T = decltype(number);
    is_forward ? start_forward<T>(frame, extent, own_stream(frame))
               : start_backward<T>(frame, extent, own_stream(frame));
  });
  return started ? outcome(frame) : ffi::failure(frame, "softmax: the CUDA kernel takes float32, bfloat16 and float16");
}

void* softmax(ffi::CallFrame* frame) { return run(frame, true); }
void* softmax_grad(ffi::CallFrame* frame) { return run(frame, false); }

constexpr KernelRecord records[] = {{"capibara_softmax", softmax, ffi::command_buffer_compatible},
                                    {"capibara_softmax_grad", softmax_grad, ffi::command_buffer_compatible}};

}  // namespace

Handlers softmax_handlers() { return {records, sizeof records / sizeof records[0]}; }

}  // namespace capibara::cuda

#endif
