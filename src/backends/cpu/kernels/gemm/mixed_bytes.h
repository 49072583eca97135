// Matmuls of int8 by uint8: both are packed as bytes of one type, and only the tile distinguishes them.
#pragma once

#include "backends/cpu/kernels/gemm/gemm.h"

namespace capibara::cpu {

// Only on processors that multiply them: has_tile.
struct SignedByUnsigned : Kind<std::int8_t, std::uint32_t, 8> {};
struct UnsignedBySigned : Kind<std::uint8_t, std::uint32_t, 8> {};

}  // namespace capibara::cpu
