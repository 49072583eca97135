// Transposes in AVX-512 registers.
#pragma once

#if defined(__x86_64__)

#include "backends/cpu/kernels/targets.h"

#if !defined(__clang__)
// Spurious: g++ 12 warns about its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

namespace capibara::cpu {

// 16 x 16 four-byte words.
CAPIBARA_AVX512 inline __attribute__((always_inline)) void transpose_vectors(__m512i (&a)[16]) {
  __m512i b[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
  }
  // a[4 q + c]: word 4 * lane + c of rows 4 q to 4 q + 3, in each lane of 16 bytes.
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
    a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
    a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
    a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i low = _mm512_shuffle_i32x4(a[c], a[4 + c], 0x44), high = _mm512_shuffle_i32x4(a[c], a[4 + c], 0xee);
    const __m512i next_low = _mm512_shuffle_i32x4(a[8 + c], a[12 + c], 0x44),
                  next_high = _mm512_shuffle_i32x4(a[8 + c], a[12 + c], 0xee);
    a[c] = _mm512_shuffle_i32x4(low, next_low, 0x88);
    a[4 + c] = _mm512_shuffle_i32x4(low, next_low, 0xdd);
    a[8 + c] = _mm512_shuffle_i32x4(high, next_high, 0x88);
    a[12 + c] = _mm512_shuffle_i32x4(high, next_high, 0xdd);
  }
}

// 8 x 8 eight-byte words.
CAPIBARA_AVX512 inline __attribute__((always_inline)) void transpose_vectors(__m512i (&a)[8]) {
  __m512i b[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    b[i] = _mm512_unpacklo_epi64(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 1]);
  }
  // b[2 q + c]: element 2 * lane + c of rows 2 q and 2 q + 1, in each lane of 16 bytes.
#pragma GCC unroll 2
  for (int c = 0; c < 2; ++c) {
    const __m512i low = _mm512_shuffle_i64x2(b[c], b[2 + c], 0x44), high = _mm512_shuffle_i64x2(b[c], b[2 + c], 0xee);
    const __m512i next_low = _mm512_shuffle_i64x2(b[4 + c], b[6 + c], 0x44),
                  next_high = _mm512_shuffle_i64x2(b[4 + c], b[6 + c], 0xee);
    a[c] = _mm512_shuffle_i64x2(low, next_low, 0x88);
    a[2 + c] = _mm512_shuffle_i64x2(low, next_low, 0xdd);
    a[4 + c] = _mm512_shuffle_i64x2(high, next_high, 0x88);
    a[6 + c] = _mm512_shuffle_i64x2(high, next_high, 0xdd);
  }
}

}  // namespace capibara::cpu

#endif
