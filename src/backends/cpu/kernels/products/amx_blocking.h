// How a matmul on AMX is cut into tasks and blocks: its result does not depend on it.
#pragma once

#include <algorithm>

#include "backends/cpu/kernels/products/gemm_parts.h"

namespace capibara::cpu {

struct AmxBlocking {
  int64_t rows, columns;  // of a task
  int64_t chunk;          // columns of a task that are packed at once
  int64_t inner_bytes;    // k of a row that are packed at once
  bool shares = false;    // whether all threads pack the right operand together before the tasks begin

  // `row_bytes`: of all k. `along_inner`: whether the k of the right operand are neighbours in memory, not its columns:
  // what is packed at once is read in long pieces.
  static AmxBlocking of(int64_t m, int64_t n, int64_t row_bytes, bool along_inner, int threads) {
    constexpr int64_t few = 64, second_cache = 1 << 20, max_inner = 4096;
    if (m <= few) {
      const int64_t columns = std::clamp<int64_t>(rounded(n / (threads > 1 ? 2 * threads : 1), 64), 64, 1024);
      if (along_inner) return {rounded(m, 16), columns, std::min<int64_t>(columns, 128), 2048};
      return {rounded(m, 16), columns, columns, 256};
    }
    const int64_t inner = std::min(rounded(row_bytes, 64), max_inner);
    AmxBlocking blocking{std::min<int64_t>(rounded(m, 32), 2048), rounded(n, 32), 0, inner};
    while (blocking.tasks(m, n) < threads && std::max(blocking.rows, blocking.columns) > 64) {
      int64_t& longer = blocking.rows > blocking.columns ? blocking.rows : blocking.columns;
      longer = rounded(longer / 2, 32);
    }
    blocking.chunk = std::min(blocking.columns, second_cache / inner / 32 * 32);
    return blocking;
  }
  int64_t tasks(int64_t m, int64_t n) const { return (m + rows - 1) / rows * ((n + columns - 1) / columns); }
};

}  // namespace capibara::cpu
