// How a matmul on AMX is cut into tasks and blocks: its result does not depend on it.
#pragma once

#include <algorithm>

#include "backends/cpu/kernels/products/gemm_parts.h"

namespace capibara::cpu {

struct AmxBlocking {
  int64_t rows, columns;       // of a task
  int64_t chunk;               // columns of a task that are computed from the first k to the last before the next ones
  int64_t inner_bytes = 1024;  // k of a row that meet a panel of the right operand while that is in the first cache
  int64_t packed_bytes = 256;  // k of a row that a task packs at once
  bool in_place = true;        // whether a left operand may be read in place

  // `row_bytes`: of all k. The rows of a task stay in the second cache. `along_inner`: whether the k of the right
  // operand are neighbours in memory, not its columns: what is packed at once is read in long pieces.
  static AmxBlocking of(int64_t m, int64_t n, int64_t row_bytes, bool along_inner, int threads) {
    constexpr int64_t few = 64, left_bytes = 1 << 20, chunk = 128;
    const int64_t tasks = threads > 1 ? 2 * threads : 1;
    if (m <= few) {
      const int64_t columns = std::clamp<int64_t>(rounded(n / tasks, 64), 64, 1024);
      if (along_inner) return {rounded(m, 16), columns, std::min(columns, chunk), 1024, 2048};
      return {rounded(m, 16), columns, columns};
    }
    const int64_t rows = std::clamp<int64_t>(left_bytes / std::max<int64_t>(1, row_bytes) / 64 * 64, 256, 512);
    AmxBlocking blocking{std::min(rows, rounded(m, 64)), rounded(n, 64), chunk};
    blocking.packed_bytes = 2048;
    while (blocking.tasks(m, n) < tasks && std::max(blocking.rows, blocking.columns) > 64) {
      int64_t& longer = blocking.rows >= blocking.columns ? blocking.rows : blocking.columns;
      longer = rounded(longer / 2, 32);
    }
    return blocking;
  }
  int64_t tasks(int64_t m, int64_t n) const { return (m + rows - 1) / rows * ((n + columns - 1) / columns); }
};

}  // namespace capibara::cpu
