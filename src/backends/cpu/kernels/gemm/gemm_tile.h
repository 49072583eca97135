// The innermost step of a matmul: one tile of the result, held in registers while iterating over k.
#pragma once

#include "backends/cpu/kernels/gemm/mixed_bytes.h"

namespace capibara::cpu {

// c = or += a * b for packed panels; `steps` counts groups of `together` k. `b_step`: bytes from one group of b to the
// next; `c_step`: bytes between rows of c.
template <class Kind>
using TileFunction = void (*)(int64_t steps, const typename Kind::Packed* a, const typename Kind::Packed* b,
                              int64_t b_step, typename Kind::Sum* c, int64_t c_step, int64_t accumulate);

// Tiles of two heights, each of one to `vectors` vectors of columns, so that little is computed in vain at the edges.
template <class Kind>
struct Tile {
  int rows = 0, few_rows = 0;
  int lanes = 0, vectors = 0;
  TileFunction<Kind> run[2][3] = {};  // [few rows][vectors - 1]
  int half_rows = 0;                  // an intermediate height, if there is one
  TileFunction<Kind> half[3] = {};

  // The least height that fits this many rows, and the function for a height.
  int64_t height(int64_t left) const { return left <= few_rows ? few_rows : left <= half_rows ? half_rows : rows; }
  TileFunction<Kind> function(int64_t height, int64_t vectors) const {
    if (height == half_rows) return half[vectors - 1];
    return run[height == rows ? 0 : 1][vectors - 1];
  }
};

inline constexpr int max_tile_rows = 14, max_tile_columns = 32;

// The tile for this processor; 0 rows where has_tile is false.
template <class Kind>
const Tile<Kind>& best_tile();

#if defined(__aarch64__)
extern const Tile<Singles> neon_singles;
extern const Tile<Doubles> neon_doubles;
extern const Tile<Words> neon_words;
extern const Tile<Bfloat16> neon_bfloat16;
extern const Tile<SignedBytes> neon_signed_bytes;
extern const Tile<UnsignedBytes> neon_unsigned_bytes;
#elif defined(__x86_64__)
Tile<SignedBytes> x86_signed_bytes();
Tile<UnsignedBytes> x86_unsigned_bytes();
Tile<SignedByUnsigned> x86_signed_by_unsigned();
Tile<UnsignedBySigned> x86_unsigned_by_signed();
#endif

}  // namespace capibara::cpu
