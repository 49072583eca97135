// Rounds float32 to bfloat16, in vectors.
#include "backends/cpu/kernels/gemm/round_to_bfloat16.h"

#include <algorithm>
#include <bit>

#include "backends/cpu/kernels/targets.h"
#include "core/runtime/processor.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace capibara::cpu {

namespace {

void round_plain(const float* from, Bfloat16Bits* __restrict to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(from[i]), up = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    to[i].bits = static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : up);
  }
}

#if defined(__x86_64__)
CAPIBARA_AVX512 void round_avx512(const float* from, Bfloat16Bits* to, int64_t count) {
  const __m512i half = _mm512_set1_epi32(0x7fff), one = _mm512_set1_epi32(1), quiet = _mm512_set1_epi32(0x40);
  for (int64_t i = 0; i < count; i += 16) {
    const auto mask = static_cast<__mmask16>(count - i >= 16 ? 0xffff : (1 << (count - i)) - 1);
    const __m512 value = _mm512_maskz_loadu_ps(mask, from + i);
    const __m512i bits = _mm512_castps_si512(value), upper = _mm512_maskz_srli_epi32(0xffff, bits, 16);
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, half), _mm512_and_si512(upper, one));
    const __m512i up = _mm512_maskz_srli_epi32(0xffff, sum, 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    _mm512_mask_cvtepi32_storeu_epi16(to + i, mask, _mm512_mask_or_epi32(up, nan, upper, quiet));
  }
}
CAPIBARA_AVX512_BF16 void round_by_instruction(const float* from, Bfloat16Bits* to, int64_t count) {
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m512 low = _mm512_loadu_ps(from + i), high = _mm512_loadu_ps(from + i + 16);
    _mm512_storeu_si512(to + i, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
  if (i < count) round_avx512(from + i, to + i, count - i);
}
#endif

}  // namespace

void round_amx_sums(const float* from, Bfloat16Bits* to, int64_t count) {
#if defined(__x86_64__)
  static const bool by_instruction = __builtin_cpu_supports("avx512bf16") && has_avx512();
  if (by_instruction) return round_by_instruction(from, to, count);
#endif
  round_to_bfloat16(from, to, count);
}

void round_to_bfloat16(const float* from, Bfloat16Bits* to, int64_t count) {
#if defined(__x86_64__)
  if (has_avx512()) return round_avx512(from, to, count);
#endif
  round_plain(from, to, count);
}

}  // namespace capibara::cpu
