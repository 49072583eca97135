// Matmuls of ragged groups of rows as foreign calls of XLA programs: 128 x 128 tiles on tensor cores.
//
// The starts of groups are known only on the device, so the grid has one more tile per group than the rows could
// fill; a block finds its group by a prefix sum of the sizes, and surplus blocks exit immediately. On Hopper large
// bfloat16 operands are multiplied by persistent blocks with tiles of 128 x 256 (grouped_boxes.h).
//
// nvcc compiles the kernels and their handlers into the module; the C++ compiler compiles the claim into the library.
#include <cstdint>

#ifndef __CUDACC__  // ---- the claim

#include "backends/cuda/claims.h"
#include "lax/contract/ragged_dot.h"

namespace capibara::cuda {
namespace {

// True if rows are whole 16-byte pieces.
bool fits(const ArrayType& matrix) {
  if (matrix.dtype != DType::float32 && matrix.dtype != DType::bfloat16) return false;
  return matrix.size() > 0 && matrix.shape.back() * storage_size(matrix.dtype) % 16 == 0;
}

bool fit(std::span<const ArrayType> inputs, int64_t right_rank) {
  const ArrayType &left = inputs[0], &right = inputs[1], &sizes = inputs[2];
  return left.rank() == 2 && right.rank() == right_rank && sizes.rank() == 1 && sizes.dtype == DType::int32 &&
         sizes.size() > 0 && sizes.size() <= 4096 && left.shape[0] <= 1 << 22 && left.dtype == right.dtype &&
         fits(left) && fits(right);
}

std::optional<KernelCall> rows_call(std::span<const ArrayType> inputs, bool transposed) {
  if (!fit(inputs, 3)) return std::nullopt;
  // The rows of the result must be whole pieces too.
  if (inputs[1].shape[transposed ? 1 : 2] * storage_size(inputs[1].dtype) % 16 != 0) return std::nullopt;
  return KernelCall{"capibara_grouped_matmul", concat("transposed = ", transposed ? 1 : 0, " : i64"), {}};
}

std::optional<KernelCall> inner_call(std::span<const ArrayType> inputs) {
  if (!fit(inputs, 2)) return std::nullopt;
  return KernelCall{"capibara_grouped_outer", "", {}};
}

std::optional<KernelCall> claim_matmul(const ClaimArgs& args) {
  return rows_call(args.inputs, args.attrs.boolean("transpose_weights"));
}

std::optional<KernelCall> claim_outer(const ClaimArgs& args) { return inner_call(args.inputs); }

std::optional<KernelCall> claim_ragged_dot(const ClaimArgs& args) {
  if (args.attrs["precision"].get_if<std::string>()) return std::nullopt;  // a named algorithm
  if (const DType* preferred = args.attrs["preferred_element_type"].get_if<DType>()) {
    if (*preferred != args.inputs[0].dtype) return std::nullopt;
  }
  const auto numbers = args.attrs.opaque<RaggedDotDimensionNumbers>("ragged_dot_dimension_numbers");
  auto is = [&](DotDimensionNumbers dot, Ints group) {
    return numbers->equals(RaggedDotDimensionNumbers(std::move(dot), {0}, std::move(group)));
  };
  if (is({{1}, {1}, {}, {}}, {0})) return rows_call(args.inputs, false);
  if (is({{1}, {2}, {}, {}}, {0})) return rows_call(args.inputs, true);
  if (is({{0}, {0}, {}, {}}, {})) return inner_call(args.inputs);
  return std::nullopt;
}

}  // namespace

Claims grouped_matmul_claims() {
  return {{"grouped_matmul", claim_matmul}, {"grouped_outer", claim_outer}, {"ragged_dot_general", claim_ragged_dot}};
}

}  // namespace capibara::cuda

#else  // ---- the kernels ---------------------------------------------------------------------------------------------

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "backends/cuda/call_frame.h"
#include "backends/cuda/experts/grouped_boxes.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/tiles.h"

namespace capibara::cuda {
namespace {

constexpr unsigned all_lanes = 0xffffffffu;

// ---- groups -------------------------------------------------------------------------------------------------------

struct Rows {
  int group, begin, end;  // begin == end: a surplus tile
};

// The rows of tile `number` among the tiles of all groups or, if not `by_tiles`, those of group `number`; the rows in
// no group follow the last one. Computed by one warp.
__device__ Rows find_rows(const int* sizes, int groups, int length, int number, bool by_tiles) {
  const int lane = threadIdx.x % 32;
  int rows_before = 0, tiles_before = 0;
  for (int first = 0; first <= groups; first += 32) {
    const int group = first + lane;
    const int size = group < groups ? max(sizes[group], 0) : group == groups ? length : 0;
    int64_t end = size;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int64_t left = __shfl_up_sync(all_lanes, end, step);
      if (lane >= step) end += left;
    }
    const int last = static_cast<int>(min(static_cast<int64_t>(length), rows_before + end));
    int begin = __shfl_up_sync(all_lanes, last, 1);
    if (lane == 0) begin = rows_before;
    const int own = (last - begin + side - 1) / side;
    int tiles = own;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int left = __shfl_up_sync(all_lanes, tiles, step);
      if (lane >= step) tiles += left;
    }
    const int before = tiles_before + tiles - own;
    const bool is_own = by_tiles ? number >= before && number < before + own : number == group;
    const unsigned found = __ballot_sync(all_lanes, is_own);
    if (found) {
      const int winner = __ffs(found) - 1, tile = by_tiles ? number - __shfl_sync(all_lanes, before, winner) : 0;
      const int at = __shfl_sync(all_lanes, begin, winner) + tile * side, to = __shfl_sync(all_lanes, last, winner);
      return {first + winner, at, by_tiles ? min(at + side, to) : to};
    }
    rows_before = __shfl_sync(all_lanes, last, 31);
    tiles_before += __shfl_sync(all_lanes, tiles, 31);
  }
  return {0, 0, 0};
}

__device__ Rows shared_rows(const int* sizes, int groups, int length, int number, bool by_tiles) {
  __shared__ Rows rows;
  if (threadIdx.x < 32) {
    const Rows found = find_rows(sizes, groups, length, number, by_tiles);
    if (threadIdx.x == 0) rows = found;
  }
  __syncthreads();
  return rows;
}

// x [rows, inner] by weights [groups, inner, columns], transposed [groups, columns, inner].
template <class T, bool transposed>
__global__ void __launch_bounds__(threads, 2) rows_kernel(const T* x, const T* weights, const int* sizes, T* out,
                                                          int groups, int length, int inner, int columns) {
  const Rows rows = shared_rows(sizes, groups, length, static_cast<int>(blockIdx.y), true);
  if (rows.begin >= rows.end) return;
  const int first = static_cast<int>(blockIdx.x) * side;
  const bool in_group = rows.group < groups;
  const Tile tile{rows.end - rows.begin, min(side, columns - first), in_group ? inner : 0};
  const T* own = weights + static_cast<int64_t>(in_group ? rows.group : 0) * inner * columns;
  float sums[4][8][4] = {};
  multiply<T, false, !transposed>(sums, x + static_cast<int64_t>(rows.begin) * inner, inner,
                                  own + (transposed ? static_cast<int64_t>(first) * inner : first),
                                  transposed ? inner : columns, tile);
  store_tile(sums, out + static_cast<int64_t>(rows.begin) * columns + first, columns, tile);
}

// x^T y over the rows of each group: [rows, inner], [rows, columns] -> [groups, inner, columns].
template <class T>
__global__ void __launch_bounds__(threads, 2)
    outer_kernel(const T* x, const T* y, const int* sizes, T* out, int groups, int length, int inner, int columns) {
  const int group = static_cast<int>(blockIdx.z);
  const Rows rows = shared_rows(sizes, groups, length, group, false);
  const int first = static_cast<int>(blockIdx.y) * side, column = static_cast<int>(blockIdx.x) * side;
  const Tile tile{min(side, inner - first), min(side, columns - column), rows.end - rows.begin};
  float sums[4][8][4] = {};
  multiply<T, true, true>(sums, x + static_cast<int64_t>(rows.begin) * inner + first, inner,
                          y + static_cast<int64_t>(rows.begin) * columns + column, columns, tile);
  store_tile(sums, out + (static_cast<int64_t>(group) * inner + first) * columns + column, columns, tile);
}

// The same on Hopper, by persistent blocks: rows by the weights of their group or, if `is_outer`, x^T y.
template <bool is_outer, bool transposed>
__global__ void __launch_bounds__(attention::all_threads, 1)
    boxes_kernel(const __grid_constant__ CUtensorMap left, const __grid_constant__ CUtensorMap right, const int* sizes,
                 __nv_bfloat16* out, int groups, int length, int inner, int columns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ unsigned char memory[];
  __shared__ attention::Stages<boxes::stage_count>::Barriers barriers;
  __shared__ boxes::Work works[boxes::stage_count];
  const attention::Stages<boxes::stage_count> stages(barriers);
  const uint32_t tiles = attention::aligned_memory(memory);
  if (threadIdx.x == 0) {
    for (int s = 0; s < boxes::stage_count; ++s) {
      attention::set_up_barrier(stages.full(s), 1);
      attention::set_up_barrier(stages.empty(s), boxes::worker_warps);
    }
    publish_barriers();
    attention::publish_writes();
  }
  __syncthreads();
  const int across = (columns + boxes::tile_columns - 1) / boxes::tile_columns;
  if (threadIdx.x < attention::group_threads) {
    attention::keep_registers<40>();
    if (threadIdx.x >= 32) return;
    boxes::copy_tiles<is_outer, transposed>(left, right, stages, works, tiles, [&](int number) {
      const int column = number % across * boxes::tile_columns, tile = number / across;
      if (is_outer) {
        const int down = (inner + side - 1) / side, group = tile / down, row = tile % down * side;
        if (group >= groups) return boxes::Work{-1, 0, 0, 0, 0, 0};
        const Rows rows = find_rows(sizes, groups, length, group, false);
        return boxes::Work{group, row, min(side, inner - row), column, rows.begin, rows.end - rows.begin};
      }
      const Rows rows = find_rows(sizes, groups, length, tile, true);
      const int exist = rows.end - rows.begin;
      if (exist <= 0) return boxes::Work{-1, 0, 0, 0, 0, 0};
      return boxes::Work{rows.group, rows.begin, exist, column, 0, rows.group < groups ? inner : 0};
    });
  } else {
    attention::take_registers<40>();
    boxes::multiply_tiles<is_outer, transposed>(stages, works, tiles, columns, [&](int group, int row) {
      return out + (is_outer ? static_cast<int64_t>(group) * inner + row : row) * columns;
    });
  }
#endif
}

// ---- handlers -----------------------------------------------------------------------------------------------------

// Starts the kernel of persistent blocks; false if it does not take these operands. `maps`: x, then the other operand.
template <bool is_outer, bool transposed>
bool start_boxes(const ffi::CallFrame* frame, int groups, int length, int inner, int columns) {
  if (hopper_size() == 0) return false;
  CUtensorMap left, right;
  const void *x = operand(frame, 0).data, *other = operand(frame, 1).data;
  const int right_rows = is_outer ? length : transposed ? columns : inner;
  if (!attention::set_source(left, x, 1, length, inner, true) ||
      !attention::set_source(right, other, is_outer ? 1 : groups, right_rows, transposed ? inner : columns, true))
    return false;
  const auto kernel = boxes_kernel<is_outer, transposed>;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, boxes::shared_bytes) != cudaSuccess)
    return false;
  kernel<<<static_cast<unsigned>(hopper_size()), attention::all_threads, boxes::shared_bytes,
           static_cast<cudaStream_t>(ffi::stream_of(frame))>>>(
      left, right, static_cast<const int*>(operand(frame, 2).data), static_cast<__nv_bfloat16*>(result(frame, 0).data),
      groups, length, inner, columns);
  return true;
}

template <class Kernel, class T>
void* start(const ffi::CallFrame* frame, Kernel kernel, dim3 grid, T*, int groups, int length, int inner, int columns) {
  constexpr int bytes = stages * 2 * stage_bytes;
  cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status == cudaSuccess) {
    kernel<<<grid, threads, bytes, static_cast<cudaStream_t>(ffi::stream_of(frame))>>>(
        static_cast<const T*>(operand(frame, 0).data), static_cast<const T*>(operand(frame, 1).data),
        static_cast<const int*>(operand(frame, 2).data), static_cast<T*>(result(frame, 0).data), groups, length, inner,
        columns);
    status = cudaGetLastError();
  }
  return status == cudaSuccess ? nullptr : ffi::failure(frame, cudaGetErrorString(status));
}

// The return value after kernels are launched.
void* outcome(const ffi::CallFrame* frame) {
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : ffi::failure(frame, cudaGetErrorString(status));
}

unsigned tiles_of(int64_t size) { return static_cast<unsigned>((size + side - 1) / side); }

template <class T>
void* run_rows(const ffi::CallFrame* frame) {
  const int64_t length = operand(frame, 0).dims[0], inner = operand(frame, 0).dims[1];
  const int64_t groups = operand(frame, 2).dims[0], columns = result(frame, 0).dims[1];
  int64_t transposed = 0;
  if (const void* value = ffi::find_attribute(frame, "transposed"))
    std::memcpy(&transposed, static_cast<const ffi::Scalar*>(value)->value, sizeof transposed);
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    const auto start_either = transposed ? start_boxes<false, true> : start_boxes<false, false>;
    if (start_either(frame, static_cast<int>(groups), static_cast<int>(length), static_cast<int>(inner),
                     static_cast<int>(columns)))
      return outcome(frame);
  }
  const dim3 grid(tiles_of(columns), tiles_of(length) + static_cast<unsigned>(groups) + 1);
  return start(frame, transposed ? rows_kernel<T, true> : rows_kernel<T, false>, grid, static_cast<T*>(nullptr),
               static_cast<int>(groups), static_cast<int>(length), static_cast<int>(inner), static_cast<int>(columns));
}

template <class T>
void* run_outer(const ffi::CallFrame* frame) {
  const int64_t length = operand(frame, 0).dims[0], inner = operand(frame, 0).dims[1];
  const int64_t groups = operand(frame, 2).dims[0], columns = operand(frame, 1).dims[1];
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    if (start_boxes<true, false>(frame, static_cast<int>(groups), static_cast<int>(length), static_cast<int>(inner),
                                 static_cast<int>(columns)))
      return outcome(frame);
  }
  const dim3 grid(tiles_of(columns), tiles_of(inner), static_cast<unsigned>(groups));
  return start(frame, outer_kernel<T>, grid, static_cast<T*>(nullptr), static_cast<int>(groups),
               static_cast<int>(length), static_cast<int>(inner), static_cast<int>(columns));
}

void* run(ffi::CallFrame* frame, bool is_outer) {
  if (ffi::answer_metadata(frame, ffi::command_buffer_compatible)) return nullptr;
  if (frame->stage != 3) return nullptr;
  const int32_t dtype = operand(frame, 0).dtype;
  if (dtype == f32) return is_outer ? run_outer<float>(frame) : run_rows<float>(frame);
  if (dtype == bf16) return is_outer ? run_outer<__nv_bfloat16>(frame) : run_rows<__nv_bfloat16>(frame);
  return ffi::failure(frame, "grouped_matmul: the CUDA kernel takes float32 and bfloat16");
}

void* grouped_matmul(ffi::CallFrame* frame) { return run(frame, false); }
void* grouped_outer(ffi::CallFrame* frame) { return run(frame, true); }

constexpr KernelRecord records[] = {{"capibara_grouped_matmul", grouped_matmul, ffi::command_buffer_compatible},
                                    {"capibara_grouped_outer", grouped_outer, ffi::command_buffer_compatible}};

}  // namespace

Handlers grouped_matmul_handlers() { return {records, sizeof records / sizeof records[0]}; }

}  // namespace capibara::cuda

#endif
