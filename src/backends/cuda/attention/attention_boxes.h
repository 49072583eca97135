// Boxes of attention's operands that Hopper's copy engine (TMA) loads into shared memory: 64 rows by 128 bytes, laid
// out as in TileOf. Elements beyond the rows of a head, or beyond their width, are filled with zeros.
#pragma once

#include <cuda.h>

#include "backends/cuda/attention/attention_bias_grid.h"

namespace capibara::cuda::attention {

// The sources of boxes: [batch * heads or groups, length, size or value_size] each; unset if rows are not 16-byte
// pieces, which threads copy. For the bias, its gradients and those of logits: [heads, queries, keys].
struct BoxSources {
  CUtensorMap query, key, value, cotangent, bias, bias_gradients, gradients;
};

inline __host__ __device__ bool has_odd_rows(const Problem& p) { return p.size % 8 != 0 || p.value_size % 8 != 0; }

// ---- on the host ----------------------------------------------------------------------------------------------------

inline bool set_source(CUtensorMap& to, const void* from, int heads, int rows, int width, bool bfloat16) {
  static const auto encode = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(result == cudaDriverEntryPointSuccess ? found : nullptr);
  }();
  if (!encode) return false;
  const auto unsigned_width = static_cast<cuuint64_t>(width);
  const cuuint64_t sizes[3] = {unsigned_width, static_cast<cuuint64_t>(rows), static_cast<cuuint64_t>(heads)};
  const cuuint64_t steps[2] = {2 * unsigned_width, 2 * unsigned_width * static_cast<cuuint64_t>(rows)};
  const cuuint32_t box[3] = {64, 64, 1}, every[3] = {1, 1, 1};
  return encode(&to, bfloat16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3,
                const_cast<void*>(from), sizes, steps, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

inline bool set_sources(BoxSources& to, const Problem& p, bool bfloat16) {
  const int heads = p.batch * p.heads, groups = p.batch * p.groups;
  const int biases = (p.bias_step[0] ? p.batch : 1) * (p.bias_step[1] ? p.heads : 1);
  auto of_bias = [&](CUtensorMap& source, const void* from, int count) {
    return set_source(source, from, count, p.queries, p.keys, bfloat16);
  };
  if (has_bias_boxes(p) && !of_bias(to.bias, p.bias, biases)) return false;
  const int entries =
      p.gradients == p.dbias ? p.batch : p.batch - 1;  // those whose gradients are not stored in place of the bias's
  if (p.gradients && !(of_bias(to.gradients, p.gradients, entries * p.part_groups * p.per_group()) &&
                       of_bias(to.bias_gradients, p.dbias, biases)))
    return false;
  if (has_odd_rows(p)) return true;
  return set_source(to.query, p.query, heads, p.queries, p.size, bfloat16) &&
         set_source(to.key, p.key, groups, p.keys, p.size, bfloat16) &&
         set_source(to.value, p.value, groups, p.keys, p.value_size, bfloat16) &&
         (!p.cotangent || set_source(to.cotangent, p.cotangent, heads, p.queries, p.value_size, bfloat16));
}

// ---- on the device, by one thread -----------------------------------------------------------------------------------

// Makes the barrier also wait for this many bytes.
inline __device__ void expect_bytes(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
inline __device__ void start_box(uint32_t to, const CUtensorMap& from, int column, int row, int head,
                                 uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
          "r"(to),
      "l"(&from), "r"(column), "r"(row), "r"(head), "r"(barrier)
      : "memory");
}
// Starts copying rows [row, row + 64) of a head to tiles of `Rows` rows of D elements.
template <int D, int Rows>
__device__ void start_boxes(uint32_t to, const CUtensorMap& from, int row, int head, uint32_t barrier) {
#pragma unroll
  for (int part = 0; part < D / 64; ++part) start_box(to + part * Rows * 128, from, part * 64, row, head, barrier);
}
// Stores from shared memory; `await_stores` waits until this thread's boxes have been read from it.
inline __device__ void store_box(const CUtensorMap& to, uint32_t from, int column, int row, int head) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];\ncp.async.bulk.commit_group;" ::
          "l"(&to),
      "r"(from), "r"(column), "r"(row), "r"(head)
      : "memory");
}
inline __device__ void await_stores() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

}  // namespace capibara::cuda::attention
