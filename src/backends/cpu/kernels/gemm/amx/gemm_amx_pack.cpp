// Packs operands into AMX tiles. Seen as 16 x 16 words of four bytes, a tile of the right operand is the transpose
// of a tile of the left one: for any memory layout, packing is a copy or an interleaving of rows, possibly followed by
// a transpose.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/gemm/amx/amx_kinds.h"

#if defined(__x86_64__)

#include "backends/cpu/kernels/gemm/transpose_avx512.h"

namespace capibara::cpu {

namespace {

using Rows = const std::byte* const*;  // null rows are absent

__mmask64 first_bytes(int64_t count) { return count >= 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1; }

// Copies `bytes` of 16 rows.
CAPIBARA_AVX512 void copy_tile(Rows rows, int64_t bytes, std::byte* to) {
  const __mmask64 mask = first_bytes(bytes);
  for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + 64 * i, _mm512_maskz_loadu_epi8(rows[i] ? mask : 0, rows[i]));
}

// The same, transposed as four-byte words.
CAPIBARA_AVX512 void transpose_tile(Rows rows, int64_t bytes, std::byte* to) {
  const __mmask64 mask = first_bytes(bytes);
  __m512i words[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    if (rows[i]) _mm_prefetch(rows[i] + 512, _MM_HINT_T0);
    words[i] = _mm512_maskz_loadu_epi8(rows[i] ? mask : 0, rows[i]);
  }
  transpose_vectors(words);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + 64 * i, words[i]);
}

// Rows of k, with items as elements, are read to their ends: memory prefers long runs. Data `ahead` groups later is
// prefetched, also that of the next tile, whose rows follow those of this one.

// Interleaves pairs of 32 rows: one tile of each panel of 16 items.
CAPIBARA_AVX512 void interleave_pairs(Rows rows, int64_t count, int ahead, std::byte* out, int64_t panel) {
  const __m512i first = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
  const __m512i second = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
  for (int i = 0; i < 16; ++i, out += amx_row_bytes) {
    const std::byte *even = rows[2 * i], *odd = rows[2 * i + 1];
    const std::byte *next_even = rows[2 * (i + ahead)], *next_odd = rows[2 * (i + ahead) + 1];
    std::byte* to = out;
    for (int64_t j = 0; j < count; j += 32, to += 2 * panel) {
      if (next_even) _mm_prefetch(next_even + 2 * j, _MM_HINT_T0);
      if (next_odd) _mm_prefetch(next_odd + 2 * j, _MM_HINT_T0);
      const __mmask64 mask = first_bytes((count - j) * 2);
      __m512i x = _mm512_setzero_si512(), y = x;
      if (even) x = _mm512_maskz_loadu_epi8(mask, even + 2 * j);
      if (odd) y = _mm512_maskz_loadu_epi8(mask, odd + 2 * j);
      const __m512i low = _mm512_unpacklo_epi16(x, y), high = _mm512_unpackhi_epi16(x, y);
      _mm512_storeu_si512(to, _mm512_permutex2var_epi64(low, first, high));
      if (count - j > 16) _mm512_storeu_si512(to + panel, _mm512_permutex2var_epi64(low, second, high));
    }
  }
}

// Interleaves fours of 64 rows of bytes.
CAPIBARA_AVX512 void interleave_fours(Rows rows, int64_t count, int ahead, std::byte* out, int64_t panel) {
  for (int i = 0; i < 16; ++i, out += amx_row_bytes) {
    Rows own = rows + 4 * i, next = rows + 4 * (i + ahead);
    std::byte* to = out;
    for (int64_t j = 0; j < count; j += 64, to += 4 * panel) {
      const __mmask64 mask = first_bytes(count - j);
      const int64_t panels = std::min<int64_t>(4, (count - j + 15) / 16);
      __m512i x[4];
#pragma GCC unroll 4
      for (int t = 0; t < 4; ++t) {
        if (next[t]) _mm_prefetch(next[t] + j, _MM_HINT_T0);
        x[t] = _mm512_setzero_si512();
        if (own[t]) x[t] = _mm512_maskz_loadu_epi8(mask, own[t] + j);
      }
      const __m512i low = _mm512_unpacklo_epi8(x[0], x[1]), high = _mm512_unpackhi_epi8(x[0], x[1]);
      const __m512i next_low = _mm512_unpacklo_epi8(x[2], x[3]), next_high = _mm512_unpackhi_epi8(x[2], x[3]);
      // Each 16-byte lane has 4 of the 16 items of a panel: combine the lanes.
      const __m512i a = _mm512_unpacklo_epi16(low, next_low), b = _mm512_unpackhi_epi16(low, next_low);
      const __m512i c = _mm512_unpacklo_epi16(high, next_high), d = _mm512_unpackhi_epi16(high, next_high);
      const __m512i ab = _mm512_shuffle_i32x4(a, b, 0x44), cd = _mm512_shuffle_i32x4(c, d, 0x44);
      const __m512i ab_high = _mm512_shuffle_i32x4(a, b, 0xee), cd_high = _mm512_shuffle_i32x4(c, d, 0xee);
      _mm512_storeu_si512(to, _mm512_shuffle_i32x4(ab, cd, 0x88));
      if (panels > 1) _mm512_storeu_si512(to + panel, _mm512_shuffle_i32x4(ab, cd, 0xdd));
      if (panels > 2) _mm512_storeu_si512(to + 2 * panel, _mm512_shuffle_i32x4(ab_high, cd_high, 0x88));
      if (panels > 3) _mm512_storeu_si512(to + 3 * panel, _mm512_shuffle_i32x4(ab_high, cd_high, 0xdd));
    }
  }
}

void put_tile(AmxSide side, Rows rows, int64_t bytes, std::byte* to) {
  if (side == AmxSide::left)
    copy_tile(rows, bytes, to);
  else
    transpose_tile(rows, bytes, to);
}

}  // namespace

void pack_amx(const AmxSource& source, AmxSide side, int64_t first, int64_t count, int64_t k0, int64_t k,
              int64_t panel_inner, std::byte* out) {
  const int64_t size = source.size, depth = amx_row_bytes / size, steps = (k + depth - 1) / depth;
  const int64_t panel = panel_inner * amx_rows * size;
  const Axis &items = source.items, &inner = source.inner;
  constexpr int64_t between_tiles = 8;
  alignas(64) std::byte between[between_tiles * amx_tile_bytes];
  const std::byte* rows[128];
  if (k > 1 ? inner.contiguous(k0, k) : !items.contiguous(first, count)) {
    const std::byte* start = source.data + inner.at(k0) * size;
    for (int64_t i = 0; i < count; i += amx_rows, out += panel) {
      const int64_t used = std::min(amx_rows, count - i);
      for (int64_t r = 0; r < amx_rows; ++r) rows[r] = r < used ? start + items.at(first + i + r) * size : nullptr;
      for (int64_t s = 0; s < steps; ++s) {
        put_tile(side, rows, std::min(amx_row_bytes, (k - s * depth) * size), out + s * amx_tile_bytes);
        for (int64_t r = 0; r < used; ++r) rows[r] += amx_row_bytes;
      }
    }
    return;
  }
  if (items.contiguous(first, count)) {
    const std::byte* start = source.data + items.at(first) * size;
    const auto interleave = size == 2 ? interleave_pairs : interleave_fours;
    const int64_t chunk = side == AmxSide::right ? count : between_tiles * amx_rows;
    const int ahead = static_cast<int>(std::clamp<int64_t>(2048 / (std::min(chunk, count) * size), 1, 8));
    for (int64_t s = 0; s < steps; ++s) {
      std::byte* to = out + s * amx_tile_bytes;
      for (int64_t i = 0; i < count; i += chunk) {
        for (int64_t p = 0; p < 2 * depth; ++p) {  // the second half is packed next, and only prefetched here
          const int64_t at = s * depth + p, end = p < depth ? k : inner.extent() - k0;
          rows[p] = at < end ? start + (inner.at(k0 + at) + i) * size : nullptr;
        }
        const int64_t some = std::min(chunk, count - i);
        if (side == AmxSide::right) {
          interleave(rows, some, ahead, to, panel);
          continue;
        }
        interleave(rows, some, ahead, between, amx_tile_bytes);
        for (int64_t t = 0; t * amx_rows < some; ++t) {
          const std::byte* words[16];
          for (int r = 0; r < 16; ++r) words[r] = between + t * amx_tile_bytes + r * amx_row_bytes;
          transpose_tile(words, amx_row_bytes, to + (i / amx_rows + t) * panel);
        }
      }
    }
    return;
  }
  for (int64_t i = 0; i < count; i += amx_rows, out += panel) {
    const int64_t used = std::min(amx_rows, count - i);
    for (int64_t r = 0; r < amx_rows; ++r) rows[r] = r < used ? between + r * amx_row_bytes : nullptr;
    for (int64_t s = 0; s < steps; ++s) {
      const int64_t some = std::min(depth, k - s * depth);
      for (int64_t r = 0; r < used; ++r) {
        const std::byte* row = source.data + items.at(first + i + r) * size;
        for (int64_t p = 0; p < some; ++p) {
          const std::byte* from = row + inner.at(k0 + s * depth + p) * size;
          std::byte* to = between + r * amx_row_bytes + p * size;
          if (size == 2)
            std::memcpy(to, from, 2);
          else
            *to = *from;
        }
      }
      put_tile(side, rows, some * size, out + s * amx_tile_bytes);
    }
  }
}

}  // namespace capibara::cpu

#endif
