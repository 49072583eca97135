// Panels of bfloat16 attention in the layout of AMX tiles, and their matmuls.
//
// A left operand is packed as panels of 16 rows: [k / 32][row][k % 32]. A right one is packed as panels of up to 32
// columns: [k / 32][columns / 16][k % 32 / 2][column][k % 2]. Absent rows, columns and k are zeros.
#pragma once

#include "backends/cpu/kernels/attention/panels.h"
#include "backends/cpu/kernels/gemm/amx/amx_kinds.h"

#if defined(__x86_64__)

#include "backends/cpu/kernels/gemm/amx/amx_tiles.h"
#include "backends/cpu/kernels/gemm/round_to_bfloat16.h"
#include "backends/cpu/kernels/gemm/transpose_avx512.h"

namespace capibara::cpu::attention {

// As Tiles, on the tiles of `Unit`: of the processor, or a model of them.
template <class Unit>
struct AmxPanels {
  using P = Bfloat16Bits;
  using K = AmxBfloat16;
  static constexpr int64_t together = K::together;
  // Multiples of 32 rows: attention cuts keys at multiples of a tile's rows, and keys are also the k of a matmul.
  static constexpr struct { int rows = 32; } tile{};

  // Tiles belong to the thread that configures them.
  struct Session {
    Session() { Unit::configure(); }
    ~Session() { Unit::release(); }
    Session(const Session&) = delete;
  };

  static int64_t padded(int64_t k) { return round_up(k, together); }
  static int64_t lanes() { return amx_rows; }
  static int64_t full_width() { return 2 * amx_rows; }
  static ColumnPanels panels(int64_t columns) { return {(columns + amx_rows - 1) / amx_rows, 2}; }
  static int64_t packed_rows(int64_t rows) { return round_up(rows, amx_rows); }

  static void pack_right(const P* from, int64_t stride, int64_t count, int64_t k, int64_t width, P* out) {
    const Axis columns = Axis::regular(count, stride), inner = Axis::regular(k, 1);
    for (int64_t p = 0; p < k; p += together) {
      pack_amx({reinterpret_cast<const std::byte*>(from), sizeof(P), columns, inner}, AmxSide::right, 0, count, p,
               std::min(together, k - p), together, reinterpret_cast<std::byte*>(out + p * width));
    }
  }
  static void pack_left(const P* from, int64_t stride, int64_t rows, int64_t k, P* out) {
    pack_left(from, Axis::regular(rows, stride), Axis::regular(k, 1), out);
  }
  static void pack_left_across(const P* from, int64_t stride, int64_t rows, int64_t k, P* out) {
    pack_left(from, Axis::regular(rows, 1), Axis::regular(k, stride), out);
  }

  static void multiply(const P* left, int64_t, int64_t k, int64_t first, int64_t last, int64_t k0, int64_t k1,
                       const P* right, int64_t, float* c, int64_t c_stride, int64_t vectors, bool accumulate) {
    AmxBlock block{};
    block.steps = (k1 - k0 + together - 1) / together;
    if (block.steps <= 0) return;
    block.right = reinterpret_cast<const std::byte*>(right);
    block.panel = amx_tile_bytes;
    block.right_step = vectors * amx_tile_bytes;
    block.accumulate = accumulate;
    const int64_t row_step = c_stride * static_cast<int64_t>(sizeof(float));
    for (int64_t r = first; r < last; r += 2 * amx_rows) {
      const int64_t down = last - r > amx_rows ? 2 : 1;
      for (int64_t i = 0; i < down; ++i) {
        const int64_t row = r + i * amx_rows;
        block.left[i] = {reinterpret_cast<const std::byte*>(left + row * padded(k) + k0 * amx_rows), amx_row_bytes,
                         amx_tile_bytes};
        for (int64_t j = 0; j < vectors; ++j) {
          block.out[i * vectors + j] = c + row * c_stride + j * amx_rows;
          block.out_step[i * vectors + j] = row_step;
        }
      }
      if (down == 2)
        vectors == 2 ? Unit::template run<K, 2, 2>(block) : Unit::template run<K, 2, 1>(block);
      else
        vectors == 2 ? Unit::template run<K, 1, 2>(block) : Unit::template run<K, 1, 1>(block);
    }
  }

  // `k` rows of `width` values, rounded, as a panel of a right operand.
  static void pack_rounded(const float* rows, int64_t k, int64_t width, P* out) {
    rounds_by_instruction() ? pack_rounded_as<true>(rows, k, width, out) : pack_rounded_as<false>(rows, k, width, out);
  }

  // Sums of `size` rows by `width` columns, each column times its factor, rounded: `count` columns become rows of
  // `out`. Columns whose factor is 0 become zeros.
  static void store_columns(const float* sums, int64_t size, int64_t width, const float* factors, int64_t count,
                            P* out) {
    rounds_by_instruction() ? store_columns_as<true>(sums, size, width, factors, count, out)
                            : store_columns_as<false>(sums, size, width, factors, count, out);
  }

 private:
  static bool rounds_by_instruction() {
    static const bool supported = __builtin_cpu_supports("avx512bf16");
    return supported;
  }

  // Sixteen floats as bfloat16, in the lower halves of words.
  CAPIBARA_AVX512 static inline __attribute__((always_inline)) __m512i rounded_words(__m512 value) {
    const __m512i bits = _mm512_castps_si512(value), upper = _mm512_srli_epi32(bits, 16);
    const __m512i half = _mm512_add_epi32(_mm512_set1_epi32(0x7fff), _mm512_and_si512(upper, _mm512_set1_epi32(1)));
    const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(_mm512_srli_epi32(_mm512_add_epi32(bits, half), 16), nan, upper,
                                _mm512_set1_epi32(0x40));
  }

  template <bool Instruction>
  CAPIBARA_AVX512_BF16 static void pack_rounded_as(const float* rows, int64_t k, int64_t width, P* out) {
    alignas(64) static constexpr std::uint16_t pairs[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                            21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                            11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i order = _mm512_load_si512(pairs);
    for (int64_t p = 0; p < padded(k); p += 2) {
      P* to = out + p / together * together * width + p % together * amx_rows;
      for (int64_t j = 0; j < width; j += amx_rows, to += together * amx_rows) {
        const __m512 even = p < k ? _mm512_loadu_ps(rows + p * width + j) : _mm512_setzero_ps();
        const __m512 odd = p + 1 < k ? _mm512_loadu_ps(rows + (p + 1) * width + j) : _mm512_setzero_ps();
        __m512i both;
        if constexpr (Instruction)
          both = _mm512_permutexvar_epi16(order, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, even)));
        else
          both = _mm512_or_si512(rounded_words(even), _mm512_slli_epi32(rounded_words(odd), 16));
        _mm512_storeu_si512(to, both);
      }
    }
  }

  template <bool Instruction>
  CAPIBARA_AVX512_BF16 static void store_columns_as(const float* sums, int64_t size, int64_t width,
                                                    const float* factors, int64_t count, P* out) {
    for (int64_t j = 0; j < count; j += amx_rows) {
      const __m512 factor = _mm512_loadu_ps(factors + j);
      const __mmask16 kept = _mm512_cmp_ps_mask(factor, _mm512_setzero_ps(), _CMP_NEQ_UQ);
      for (int64_t d = 0; d < size; d += amx_rows) {
        __m512i block[16];
        const int64_t some = std::min(amx_rows, size - d), own = std::min(amx_rows, count - j);
#pragma GCC unroll 16
        for (int r = 0; r < 16; ++r) {
          block[r] = _mm512_setzero_si512();
          if (r >= some) continue;
          const __m512 row = _mm512_loadu_ps(sums + (d + r) * width + j);
          block[r] = _mm512_castps_si512(_mm512_maskz_mul_ps(kept, row, factor));
        }
        transpose_vectors(block);
        const auto stored = static_cast<__mmask16>((1u << some) - 1);
#pragma GCC unroll 16
        for (int r = 0; r < 16; ++r) {
          if (r >= own) continue;
          const __m512 row = _mm512_castsi512_ps(block[r]);
          __m256i rounded;
          if constexpr (Instruction)
            rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(row));
          else
            rounded = _mm512_cvtepi32_epi16(rounded_words(row));
          _mm256_mask_storeu_epi16(out + (j + r) * size + d, stored, rounded);
        }
      }
    }
  }

  static void pack_left(const P* from, const Axis& rows, const Axis& inner, P* out) {
    pack_amx({reinterpret_cast<const std::byte*>(from), sizeof(P), rows, inner}, AmxSide::left, 0, rows.extent(), 0,
             inner.extent(), padded(inner.extent()), reinterpret_cast<std::byte*>(out));
  }
};

template <>
struct Tiles<AmxBfloat16> : AmxPanels<AmxTiles> {};

template <>
inline const Bfloat16Bits* narrowed<AmxBfloat16>(const float* values, int64_t begin, int64_t end, Bfloat16Bits* hold) {
  round_amx_sums(values + begin, hold + begin, end - begin);
  return hold;
}

template <>
inline const Bfloat16Bits* as_panel<AmxBfloat16>(const Bfloat16Bits* rows, int64_t k, int64_t width,
                                                 Bfloat16Bits* hold) {
  const Axis columns = Axis::regular(width, 1), inner = Axis::regular(k, width);
  for (int64_t p = 0; p < k; p += AmxBfloat16::together) {
    pack_amx({reinterpret_cast<const std::byte*>(rows), sizeof(Bfloat16Bits), columns, inner}, AmxSide::right, 0, width,
             p, std::min<int64_t>(AmxBfloat16::together, k - p), AmxBfloat16::together,
             reinterpret_cast<std::byte*>(hold + p * width));
  }
  return hold;
}

template <>
inline const Bfloat16Bits* rounded_panel<AmxBfloat16>(const float* rows, int64_t k, int64_t width, Bfloat16Bits*,
                                                      Bfloat16Bits* panel) {
  Tiles<AmxBfloat16>::pack_rounded(rows, k, width, panel);
  return panel;
}

}  // namespace capibara::cpu::attention

#endif
