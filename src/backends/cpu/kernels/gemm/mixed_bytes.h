// Matmuls of int8 by uint8: both are packed as bytes of one type, which only the tile tells apart.
#pragma once

#include "backends/cpu/kernels/gemm/gemm.h"

namespace capibara::cpu {

// Only where the processor multiplies them: has_tile.
struct SignedByUnsigned : Kind<std::int8_t, std::uint32_t, 8> {};
struct UnsignedBySigned : Kind<std::uint8_t, std::uint32_t, 8> {};

}  // namespace capibara::cpu
