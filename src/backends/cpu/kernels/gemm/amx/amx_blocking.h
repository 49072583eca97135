// How a matmul on AMX is cut into tasks and blocks: its result does not depend on it.
#pragma once

#include <algorithm>

#include "backends/cpu/kernels/gemm/gemm_parts.h"

namespace capibara::cpu {

struct AmxBlocking {
  int64_t rows, columns;  // of a task
  int64_t chunk;          // columns of a task that are packed at once
  int64_t inner_bytes;    // k of a row that are packed at once
  bool shares = false;    // whether all threads pack the right operand together before the tasks begin

  // `row_bytes`: of all k. `along_inner`: whether the k of the right operand are neighbours in memory, not its columns:
  // what is packed at once is read in long pieces.
  static AmxBlocking of(int64_t m, int64_t n, int64_t row_bytes, bool along_inner, int threads) {
    constexpr int64_t few = 64, second_cache = 1 << 20, max_inner = 4096, max_shared_inner = 32 << 10;
    if (m <= few) {
      const int64_t columns = std::clamp<int64_t>(rounded(n / (threads > 1 ? 2 * threads : 1), 64), 64, 1024);
      if (along_inner) return {rounded(m, 16), columns, std::min<int64_t>(columns, 128), 2048};
      return {rounded(m, 16), columns, columns, 256};
    }
    AmxBlocking blocking{rounded(m, 32), rounded(n, 32), 0, std::min(rounded(row_bytes, 64), max_inner)};
    blocking.rows = std::min<int64_t>(blocking.rows, 2048);
    blocking.shares = threads > 1 && row_bytes <= max_shared_inner;
    if (threads > 1) {
      // Tall tasks: many rows meet columns that another thread has packed and this one has to fetch.
      const int64_t rows = std::clamp<int64_t>(second_cache / std::max<int64_t>(1, row_bytes) / 64 * 64, 256, 512);
      blocking.rows = std::min(blocking.rows, rows);
      for (int64_t* extent : {&blocking.columns, &blocking.rows}) {
        while (blocking.tasks(m, n) < 2 * threads && *extent > 64) *extent = rounded(*extent / 2, 32);
      }
    }
    blocking.chunk = std::min(blocking.columns, second_cache / blocking.inner_bytes / 32 * 32);
    return blocking;
  }
  int64_t tasks(int64_t m, int64_t n) const { return (m + rows - 1) / rows * ((n + columns - 1) / columns); }
};

}  // namespace capibara::cpu
