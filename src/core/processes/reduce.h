// Element-wise sums, minima and maxima of blocks in a fixed tree order.
#pragma once

#include <capibara/dtype.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/processes/exchange.h"

namespace capibara::processes {

// The dtype in which partial sums are sent: float32 for narrower floats, so that they are rounded once.
DType partial_dtype(DType dtype);

// Combines blocks of `count` elements of dtype `from` into `count` elements of dtype `to`: the same, or either is the
// other's partial dtype. The tree: neighbours first, then pairs of them; an odd one out waits for the
// next level. So blocks of a power of two that start at a multiple of it are subtrees. Raises TypeError for keys.
void combine_blocks(Reduction kind, DType from, std::span<const std::byte* const> blocks, int64_t count, DType to,
                    std::byte* out);

}  // namespace capibara::processes
