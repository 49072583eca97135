// Loops that run on rows of a matmul as soon as these are complete, while the rows are still in the cache.
#pragma once

#include <span>

#include "backends/cpu/loops/loops.h"

namespace capibara::cpu {

// True if each iteration of a region's outermost loop reads only its own share of some parameters, which hold `bytes`
// bytes each: the i-th of as many equal parts as the loop has iterations.
bool reads_own_share(const Function& region, std::span<const std::size_t> parameters, int64_t bytes);

}  // namespace capibara::cpu
