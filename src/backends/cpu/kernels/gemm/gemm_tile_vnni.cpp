// Tiles of bytes by AVX-512 VNNI: an instruction adds four products of an unsigned and a signed byte to a 32-bit sum.
//
// Eight k of a column are two adjacent sums, which are added at the end. Where both operands are signed, or both
// unsigned, the range of b is shifted: 128 is added to b (int8) or subtracted from it (uint8) by flipping its
// highest bit, and the result then differs by 128 times the sum of a row of a, which one more instruction per step
// computes. Sums wrap: exact. Processors with AMX multiply bytes in gemm_amx.cpp instead.
#include "backends/cpu/kernels/gemm/gemm_tile.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "backends/cpu/kernels/targets.h"
#include "core/runtime/processor.h"

namespace capibara::cpu {

namespace {

// Rows is 8 or 4; a vector of b has 8 columns.
template <bool SignedA, bool SignedB, class P, int Rows, int Vectors>
CAPIBARA_VNNI void vnni_tile(int64_t steps, const P* a, const P* b, int64_t b_step, std::uint32_t* c, int64_t c_step,
                             int64_t accumulate) {
  constexpr bool moved = SignedA == SignedB;
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80)), ones = _mm512_set1_epi8(1);
  __m512i sum[Rows][Vectors], total = _mm512_setzero_si512();
  for (auto& row : sum) {
    for (__m512i& entry : row) entry = _mm512_setzero_si512();
  }
  for (; steps > 0; --steps, a += 8 * Rows, b = reinterpret_cast<const P*>(reinterpret_cast<const char*>(b) + b_step)) {
    __m512i columns[Vectors];
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      columns[j] = _mm512_loadu_si512(b + 64 * j);
      if (moved) columns[j] = _mm512_xor_si512(columns[j], sign);
    }
    if (moved) {
      const __m512i rows = _mm512_maskz_loadu_epi64(Rows == 8 ? 0xff : 0x0f, a);
      total = SignedA ? _mm512_dpbusd_epi32(total, ones, rows) : _mm512_dpbusd_epi32(total, rows, ones);
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      long long eight;
      __builtin_memcpy(&eight, a + 8 * i, 8);
      const __m512i factor = _mm512_set1_epi64(eight);
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) {
        sum[i][j] = SignedA ? _mm512_dpbusd_epi32(sum[i][j], columns[j], factor)
                            : _mm512_dpbusd_epi32(sum[i][j], factor, columns[j]);
      }
    }
  }
  std::uint32_t totals[16];
  _mm512_storeu_si512(totals, total);
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    const std::uint32_t whole = (totals[2 * i] + totals[2 * i + 1]) * 128u;
    const __m256i change = _mm256_set1_epi32(static_cast<int>(SignedA ? 0u - whole : whole));
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      const __m512i pairs = _mm512_add_epi32(sum[i][j], _mm512_maskz_srli_epi64(0xff, sum[i][j], 32));
      __m256i value = _mm512_maskz_cvtepi64_epi32(0xff, pairs);
      if (moved) value = _mm256_add_epi32(value, change);
      auto* to = reinterpret_cast<__m256i*>(reinterpret_cast<char*>(c) + i * c_step) + j;
      if (accumulate) value = _mm256_add_epi32(value, _mm256_loadu_si256(to));
      _mm256_storeu_si256(to, value);
    }
  }
}

template <class Kind, bool SignedA, bool SignedB>
Tile<Kind> tile_of_bytes() {
  using P = typename Kind::Packed;
  if (!has_vnni()) return {};
  return {8,
          4,
          8,
          3,
          {{vnni_tile<SignedA, SignedB, P, 8, 1>, vnni_tile<SignedA, SignedB, P, 8, 2>,
            vnni_tile<SignedA, SignedB, P, 8, 3>},
           {vnni_tile<SignedA, SignedB, P, 4, 1>, vnni_tile<SignedA, SignedB, P, 4, 2>,
            vnni_tile<SignedA, SignedB, P, 4, 3>}}};
}

}  // namespace

Tile<SignedBytes> x86_signed_bytes() { return tile_of_bytes<SignedBytes, true, true>(); }
Tile<UnsignedBytes> x86_unsigned_bytes() { return tile_of_bytes<UnsignedBytes, false, false>(); }
Tile<SignedByUnsigned> x86_signed_by_unsigned() { return tile_of_bytes<SignedByUnsigned, true, false>(); }
Tile<UnsignedBySigned> x86_unsigned_by_signed() { return tile_of_bytes<UnsignedBySigned, false, true>(); }

}  // namespace capibara::cpu

#endif
