// Matmuls on AMX tiles: 16 rows of 64 bytes, multiplied by a single instruction.
//
// A packed operand is a list of panels of 16 rows (left) or columns (right), and a panel a list of tiles of 64 bytes of
// k each. A tile of the left operand stores the k of a row contiguously; one of the right operand four bytes of k
// of column after column: [k / group][column][k % group]. Absent rows, columns and k are zeros.
#pragma once

#include "backends/cpu/kernels/gemm/gemm.h"

namespace capibara::cpu {

inline constexpr int64_t amx_rows = 16, amx_row_bytes = 64, amx_tile_bytes = 1024;

// Only on processors with AMX: has_amx. `together`: number of k in a tile.
template <class P, class S, bool LeftSigned = true, bool RightSigned = true>
struct AmxKind : Kind<P, S, static_cast<int>(amx_row_bytes / sizeof(P))> {
  static constexpr bool left_signed = LeftSigned, right_signed = RightSigned;
};
using AmxBfloat16 = AmxKind<Bfloat16Bits, float>;
using AmxSignedBytes = AmxKind<std::int8_t, std::uint32_t, true, true>;
using AmxUnsignedBytes = AmxKind<std::uint8_t, std::uint32_t, false, false>;
using AmxSignedByUnsigned = AmxKind<std::int8_t, std::uint32_t, true, false>;
using AmxUnsignedBySigned = AmxKind<std::uint8_t, std::uint32_t, false, true>;

template <class K>
concept IsAmxKind = requires {
  K::left_signed;
};

// A matrix in memory to be packed: items are the rows of a left operand, the columns of a right one.
struct AmxSource {
  const std::byte* data;
  int64_t size;  // bytes of an element: 1 or 2
  const Axis &items, &inner;
};
enum class AmxSide { left, right };
// Packs items [first, first + count) and k [k0, k0 + k), rounded up to whole tiles, as panels of `panel_inner` k
// each. Product's `left` and `right` are called with that number as their width.
void pack_amx(const AmxSource& source, AmxSide side, int64_t first, int64_t count, int64_t k0, int64_t k,
              int64_t panel_inner, std::byte* out);

}  // namespace capibara::cpu
