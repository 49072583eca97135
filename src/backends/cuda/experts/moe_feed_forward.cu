// Copies of tokens to the rows of their experts and back, as foreign calls of XLA programs: memory-bound.
//
// A block copies, sums or differentiates one row, in pieces of 16 bytes. On an H200 the copies of 16384 tokens to four
// experts each take 249 us instead of 394 by XLA's code for the composition, their sums 157 instead of 168, and the
// gradient of these 370 instead of 397.
//
// nvcc compiles the kernels and their handlers into the module; the C++ compiler compiles the claim into the library.
#ifndef __CUDACC__  // ---- the claim ----------------------------------------------------------------------------------

#include "backends/cuda/rows/norm_claims.h"

namespace capibara::cuda {
namespace {

// True if rows are whole 16-byte pieces of a type that the kernels take.
bool fits(const ArrayType& matrix) {
  return matrix.rank() == 2 && matrix.size() > 0 && is_row_type(matrix.dtype) && matrix.shape[0] <= 1 << 30 &&
         matrix.shape[1] <= 1 << 30 && matrix.shape[1] * storage_size(matrix.dtype) % 16 == 0;
}

std::optional<KernelCall> claim_dispatch(const ClaimArgs& args) {
  if (!fits(args.inputs[0]) || args.inputs[1].size() == 0) return std::nullopt;
  return KernelCall{"capibara_moe_dispatch", "", {}};
}

std::optional<KernelCall> claim_combine(const ClaimArgs& args) {
  if (!fits(args.inputs[0]) || args.inputs[1].dtype != DType::float32) return std::nullopt;
  return KernelCall{"capibara_moe_combine", "", {}};
}

std::optional<KernelCall> claim_combine_grad(const ClaimArgs& args) {
  const ArrayType &rows = args.inputs[1], &weights = args.inputs[2];
  if (!fits(rows) || weights.dtype != DType::float32) return std::nullopt;
  return KernelCall{"capibara_moe_combine_grad", "", {weights.with_shape({rows.shape[0]}).strong()}};
}

}  // namespace

Claims moe_feed_forward_claims() {
  return {{"moe_dispatch", claim_dispatch}, {"moe_combine", claim_combine}, {"moe_combine_grad", claim_combine_grad}};
}

}  // namespace capibara::cuda

#else  // ---- the kernels ---------------------------------------------------------------------------------------------

#include "backends/cuda/block_sums.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/row_pieces.h"

namespace capibara::cuda {
namespace {

constexpr int max_threads = 256;

// Copies of tokens and the rows that hold them, clipped to those that exist.
struct Copies {
  const int* numbers;
  int count;

  __device__ int at(int i) const { return min(max(numbers[i], 0), count - 1); }
};

// x [tokens, pieces] -> rows [copies, pieces]
__global__ void __launch_bounds__(max_threads)
    dispatch(const uint4* x, Copies permutation, uint4* rows, int choices, int pieces) {
  const int64_t row = blockIdx.x, token = permutation.at(blockIdx.x) / choices;
#pragma unroll 4
  for (int p = threadIdx.x; p < pieces; p += blockDim.x) __stcs(rows + row * pieces + p, x[token * pieces + p]);
}

// The sum of the rows of each token by its weights.
template <class T>
__global__ void __launch_bounds__(max_threads)
    combine(const T* rows, const float* weights, Copies inverse, T* out, int choices, int columns) {
  constexpr int size = Piece<T>::size, unrolled = 4;
  const int64_t token = blockIdx.x;
  const int first = static_cast<int>(token) * choices;
  for (int column = threadIdx.x * size; column < columns; column += blockDim.x * size) {
    float sums[size] = {};
    for (int begin = 0; begin < choices; begin += unrolled) {
      Piece<T> own[unrolled];
      float factors[unrolled];
#pragma unroll
      for (int c = 0; c < unrolled; ++c) {
        const int copy = first + min(begin + c, choices - 1);
        factors[c] = weights[copy];
        own[c] = *reinterpret_cast<const Piece<T>*>(rows + static_cast<int64_t>(inverse.at(copy)) * columns + column);
      }
#pragma unroll
      for (int c = 0; c < unrolled; ++c) {
        if (begin + c >= choices) continue;
        float values[size];
        widen<T, size>(own[c].values, values);
#pragma unroll
        for (int i = 0; i < size; ++i) sums[i] += values[i] * factors[c];
      }
    }
    put_piece(out + token * columns + column, sums);
  }
}

// The gradients of rows, and of each row's weight.
template <class T>
__global__ void __launch_bounds__(max_threads)
    combine_grad(const T* dy, const T* rows, const float* weights, Copies permutation, T* drows, float* dots,
                 int choices, int columns) {
  constexpr int size = Piece<T>::size;
  __shared__ Exchange<float2> exchange;
  const int64_t row = blockIdx.x;
  const int copy = permutation.at(blockIdx.x);
  const int64_t token = copy / choices;
  const float weight = weights[copy];
  float dot = 0;
#pragma unroll 2
  for (int column = threadIdx.x * size; column < columns; column += blockDim.x * size) {
    const auto gradient = *reinterpret_cast<const Piece<T>*>(dy + token * columns + column);
    const auto own = *reinterpret_cast<const Piece<T>*>(rows + row * columns + column);
    float gradients[size], values[size];
    widen<T, size>(gradient.values, gradients);
    widen<T, size>(own.values, values);
#pragma unroll
    for (int i = 0; i < size; ++i) {
      dot += gradients[i] * values[i];
      gradients[i] *= weight;
    }
    put_piece(drows + row * columns + column, gradients);
  }
  dot = block_sums(dot, 0, exchange, 0).x;
  if (threadIdx.x == 0) dots[row] = dot;
}

// The numbers of rows in the order of copies.
__global__ void __launch_bounds__(max_threads) reorder(const float* dots, Copies inverse, float* out) {
  const int copy = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (copy < inverse.count) out[copy] = dots[inverse.at(copy)];
}

// ---- handlers -----------------------------------------------------------------------------------------------------

Copies copies_of(const ffi::CallFrame* frame, int index) {
  const ffi::Buffer& numbers = operand(frame, index);
  return {data_of<const int>(numbers), static_cast<int>(numbers.dims[0])};
}

constexpr const char* refusal = "moe_feed_forward: the CUDA kernels take float32, bfloat16 and float16";

// (x, permutation, inverse) -> rows
void* moe_dispatch(ffi::CallFrame* frame) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible) || frame->stage != 3) return nullptr;
  const ffi::Buffer& x = operand(frame, 0);
  const Copies permutation = copies_of(frame, 1);
  const auto tokens = static_cast<int>(x.dims[0]);
  const bool started = with_type(x.dtype, [&](auto number) {
    const int pieces = static_cast<int>(x.dims[1]) / Piece<decltype(number)>::size;
    dispatch<<<static_cast<unsigned>(permutation.count), whole_warps(pieces, max_threads), 0, own_stream(frame)>>>(
        data_of<const uint4>(x), permutation, data_of<uint4>(result(frame, 0)), permutation.count / tokens, pieces);
  });
  return started ? outcome(frame) : ffi::failure(frame, refusal);
}

// (rows, weights, permutation, inverse) -> y
void* moe_combine(ffi::CallFrame* frame) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible) || frame->stage != 3) return nullptr;
  const ffi::Buffer &rows = operand(frame, 0), &weights = operand(frame, 1);
  const auto columns = static_cast<int>(rows.dims[1]);
  const bool started = with_type(rows.dtype, [&](auto number) {
    using T = decltype(number);
    combine<T><<<static_cast<unsigned>(weights.dims[0]), whole_warps(columns / Piece<T>::size, max_threads), 0,
                 own_stream(frame)>>>(data_of<T>(rows), data_of<float>(weights), copies_of(frame, 3),
                                      data_of<T>(result(frame, 0)), static_cast<int>(weights.dims[1]), columns);
  });
  return started ? outcome(frame) : ffi::failure(frame, refusal);
}

// (dy, rows, weights, permutation, inverse) -> (drows, dweights), scratch
void* moe_combine_grad(ffi::CallFrame* frame) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible) || frame->stage != 3) return nullptr;
  const ffi::Buffer &rows = operand(frame, 1), &weights = operand(frame, 2);
  const auto columns = static_cast<int>(rows.dims[1]);
  const Copies permutation = copies_of(frame, 3), inverse = copies_of(frame, 4);
  auto* const dots = data_of<float>(result(frame, 2));
  const bool started = with_type(rows.dtype, [&](auto number) {
    using T = decltype(number);
    combine_grad<T><<<static_cast<unsigned>(permutation.count), whole_warps(columns / Piece<T>::size, max_threads), 0,
                      own_stream(frame)>>>(data_of<T>(operand(frame, 0)), data_of<T>(rows), data_of<float>(weights),
                                           permutation, data_of<T>(result(frame, 0)), dots,
                                           static_cast<int>(weights.dims[1]), columns);
    reorder<<<static_cast<unsigned>((inverse.count + max_threads - 1) / max_threads), max_threads, 0,
              own_stream(frame)>>>(dots, inverse, data_of<float>(result(frame, 1)));
  });
  return started ? outcome(frame) : ffi::failure(frame, refusal);
}

constexpr KernelRecord records[] = {{"capibara_moe_dispatch", moe_dispatch, ffi::command_buffer_compatible},
                                    {"capibara_moe_combine", moe_combine, ffi::command_buffer_compatible},
                                    {"capibara_moe_combine_grad", moe_combine_grad, ffi::command_buffer_compatible}};

}  // namespace

Handlers moe_feed_forward_handlers() { return {records, sizeof records / sizeof records[0]}; }

}  // namespace capibara::cuda

#endif
