// Transposes and copies of matmul operands with AVX-512.
#include "backends/cpu/kernels/gemm/gemm_pack_avx512.h"

#include <algorithm>
#include <cstddef>

#include "core/runtime/processor.h"

#if defined(__x86_64__)

#include "backends/cpu/kernels/gemm/transpose_avx512.h"

namespace capibara::cpu {

namespace {

// `count` k of `used` rows, at most 16 by 16 or 8 by 8. Each cache line is read once: rows a power of two apart map to
// one set of the L1 cache.
template <class T>
CAPIBARA_AVX512 void transpose_block(const T* const* rows, int64_t k, int64_t count, int64_t used, int64_t width,
                                     T* out) {
  constexpr int lanes = 64 / sizeof(T);
  constexpr bool words = sizeof(T) == 4;
  const unsigned loaded = (1u << count) - 1, stored = (1u << used) - 1;
  __m512i v[lanes];
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) {
    v[i] = _mm512_setzero_si512();
    if (i >= used) continue;
    if constexpr (words)
      v[i] = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(loaded), rows[i] + k);
    else
      v[i] = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(loaded), rows[i] + k);
  }
  transpose_vectors(v);
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i, out += width) {
    if (i >= count) continue;
    if constexpr (words)
      _mm512_mask_storeu_epi32(out, static_cast<__mmask16>(stored), v[i]);
    else
      _mm512_mask_storeu_epi64(out, static_cast<__mmask8>(stored), v[i]);
  }
}

template <class T>
bool transpose(const T* const* rows, int64_t k, int64_t width, T* out) {
  constexpr int64_t lanes = 64 / sizeof(T);
  if (!has_avx512()) return false;
  for (int64_t i = 0; i < width; i += lanes) {
    for (int64_t p = 0; p < k; p += lanes)
      transpose_block(rows + i, p, std::min(lanes, k - p), std::min(lanes, width - i), width, out + p * width + i);
  }
  return true;
}

CAPIBARA_AVX512 void copy_all(const std::byte* from, int64_t step, int64_t count, std::byte* to) {
  for (int64_t i = 0; i < count; ++i, from += step, to += 128) {
    const __m512i first = _mm512_loadu_si512(from), second = _mm512_loadu_si512(from + 64);
    _mm512_storeu_si512(to, first);
    _mm512_storeu_si512(to + 64, second);
  }
}

}  // namespace

bool transpose_avx512(const std::uint32_t* const* rows, int64_t k, int64_t width, std::uint32_t* out) {
  return transpose(rows, k, width, out);
}
bool transpose_avx512(const std::uint64_t* const* rows, int64_t k, int64_t width, std::uint64_t* out) {
  return transpose(rows, k, width, out);
}

bool copy_avx512(const void* from, int64_t step, int64_t count, void* to) {
  if (!has_avx512()) return false;
  copy_all(static_cast<const std::byte*>(from), step, count, static_cast<std::byte*>(to));
  return true;
}

}  // namespace capibara::cpu

#endif
