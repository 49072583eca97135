// The tiles written in C++ vectors (x86, 64-bit integers), and the choice of one for each kind at run time.
//
// x86 needs few enough accumulators per tile that compilers keep them in registers: llvm-mca shows 31.6 of 32 flops per
// cycle for AVX2 6x16 and 59.5 of 64 for AVX-512 14x32.
#include "backends/cpu/kernels/gemm/gemm_tile.h"
#include "backends/cpu/kernels/targets.h"
#include "core/runtime/processor.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace capibara::cpu {

namespace {

#define CAPIBARA_INLINE inline __attribute__((always_inline))

// Ahead: how many k in advance vectors of b are prefetched to the L1 cache; 0: none. The tile of the result is
// prefetched first.
template <class R, int Bytes, int Rows, int Vectors, int Ahead>
CAPIBARA_INLINE void real_tile(int64_t steps, const R* a, const R* b, int64_t b_step, R* c, int64_t c_step,
                               int64_t accumulate) {
  typedef R V __attribute__((vector_size(Bytes)));
  typedef R U __attribute__((vector_size(Bytes), aligned(alignof(R)), may_alias));
  constexpr int lanes = Bytes / static_cast<int>(sizeof(R));
  V sum[Rows][Vectors] = {};
  if (Ahead > 0 && steps >= 4 * Ahead) {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) __builtin_prefetch(reinterpret_cast<char*>(c) + i * c_step + j * Bytes, 1, 3);
    }
  }
  for (; steps > 0; --steps, a += Rows, b = reinterpret_cast<const R*>(reinterpret_cast<const char*>(b) + b_step)) {
    V row[Vectors];
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) {
      if constexpr (Ahead > 0) __builtin_prefetch(reinterpret_cast<const char*>(b) + Ahead * b_step + j * Bytes, 0, 3);
      row[j] = *reinterpret_cast<const U*>(b + j * lanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) sum[i][j] += row[j] * a[i];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) {
      U* place = reinterpret_cast<U*>(reinterpret_cast<char*>(c) + i * c_step) + j;
      *place = accumulate ? *place + sum[i][j] : sum[i][j];
    }
  }
}

#define CAPIBARA_TILE(NAME, TARGET, BYTES, AHEAD)                                                                     \
  template <class R, int Rows, int Vectors>                                                                           \
  TARGET void NAME(int64_t steps, const R* a, const R* b, int64_t b_step, R* c, int64_t c_step, int64_t accumulate) { \
    real_tile<R, BYTES, Rows, Vectors, AHEAD>(steps, a, b, b_step, c, c_step, accumulate);                            \
  }
CAPIBARA_TILE(plain, , 16, 0)

template <class K>
Tile<K> plain_tile() {
  using R = typename K::Packed;
  constexpr int lanes = 16 / static_cast<int>(sizeof(R));
#if defined(__aarch64__)
  return {4,
          2,
          lanes,
          3,
          {{plain<R, 4, 1>, plain<R, 4, 2>, plain<R, 4, 3>}, {plain<R, 2, 1>, plain<R, 2, 2>, plain<R, 2, 3>}}};
#else
  return {4, 2, lanes, 2, {{plain<R, 4, 1>, plain<R, 4, 2>}, {plain<R, 2, 1>, plain<R, 2, 2>}}};
#endif
}

#if defined(__x86_64__)
CAPIBARA_TILE(avx2, CAPIBARA_AVX2, 32, 8)
CAPIBARA_TILE(avx512, CAPIBARA_AVX512, 64, 8)

template <class K>
Tile<K> x86_tile() {
  using R = typename K::Packed;
  constexpr int size = static_cast<int>(sizeof(R));
  if (has_avx512()) {
    // 64 rows are four tiles of 14 and one of 8.
    return {14,
            4,
            64 / size,
            2,
            {{avx512<R, 14, 1>, avx512<R, 14, 2>}, {avx512<R, 4, 1>, avx512<R, 4, 2>}},
            8,
            {avx512<R, 8, 1>, avx512<R, 8, 2>}};
  }
  if (has_avx2()) {
    return {6, 2, 32 / size, 2, {{avx2<R, 6, 1>, avx2<R, 6, 2>}, {avx2<R, 2, 1>, avx2<R, 2, 2>}}};
  }
  return plain_tile<K>();
}

// True if bfloat16 multiplication is worth using. Intel's is slower than that of float32 (86 G/s against 190 where both
// were measured): there elements are widened, except for matmuls on AMX tiles.
bool has_fast_bfloat16() { return has_avx512() && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_is("amd"); }

// Pairs of bfloat16: a pair of a by sixteen pairs of b.
template <int Rows, int Vectors>
CAPIBARA_AVX512_BF16 void bfloat16(int64_t steps, const Bfloat16Bits* a, const Bfloat16Bits* b, int64_t b_step,
                                   float* c, int64_t c_step, int64_t accumulate) {
  __m512 sum[Rows][Vectors];
  for (auto& row : sum) {
    for (__m512& entry : row) entry = _mm512_setzero_ps();
  }
  for (; steps > 0;
       --steps, a += 2 * Rows, b = reinterpret_cast<const Bfloat16Bits*>(reinterpret_cast<const char*>(b) + b_step)) {
    __m512i row[Vectors];
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) row[j] = _mm512_loadu_si512(b + 32 * j);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      int pair;
      __builtin_memcpy(&pair, a + 2 * i, 4);
      const __m512i factor = _mm512_set1_epi32(pair);
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j)
        sum[i][j] = _mm512_dpbf16_ps(sum[i][j], reinterpret_cast<__m512bh>(factor), reinterpret_cast<__m512bh>(row[j]));
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) {
      float* place = reinterpret_cast<float*>(reinterpret_cast<char*>(c) + i * c_step) + 16 * j;
      _mm512_storeu_ps(place, accumulate ? _mm512_add_ps(_mm512_loadu_ps(place), sum[i][j]) : sum[i][j]);
    }
  }
}
#endif

}  // namespace

// The tile of each architecture, one row per kind.
#if defined(__aarch64__)
#define CAPIBARA_HERE(NEON, X86) NEON
#elif defined(__x86_64__)
#define CAPIBARA_HERE(NEON, X86) X86
#endif
#define CAPIBARA_CHOOSE(KIND, NEON, X86)                       \
  template <>                                                  \
  const Tile<KIND>& best_tile() {                              \
    static const Tile<KIND> tile = CAPIBARA_HERE(NEON, (X86)); \
    return tile;                                               \
  }
// clang-format off
CAPIBARA_CHOOSE(Singles, neon_singles, x86_tile<Singles>())
CAPIBARA_CHOOSE(Doubles, neon_doubles, x86_tile<Doubles>())
CAPIBARA_CHOOSE(Words, neon_words, x86_tile<Words>())
CAPIBARA_CHOOSE(Longs, plain_tile<Longs>(), x86_tile<Longs>())
CAPIBARA_CHOOSE(Bfloat16, (getauxval(AT_HWCAP2) & HWCAP2_BF16) ? neon_bfloat16 : Tile<Bfloat16>(),
                has_fast_bfloat16() ? (Tile<Bfloat16>{14, 4, 16, 2, {{bfloat16<14, 1>, bfloat16<14, 2>}, {bfloat16<4, 1>, bfloat16<4, 2>}}}) : Tile<Bfloat16>())
CAPIBARA_CHOOSE(SignedBytes, (getauxval(AT_HWCAP2) & HWCAP2_I8MM) ? neon_signed_bytes : Tile<SignedBytes>(), x86_signed_bytes())
CAPIBARA_CHOOSE(UnsignedBytes, (getauxval(AT_HWCAP2) & HWCAP2_I8MM) ? neon_unsigned_bytes : Tile<UnsignedBytes>(), x86_unsigned_bytes())
CAPIBARA_CHOOSE(SignedByUnsigned, Tile<SignedByUnsigned>(), x86_signed_by_unsigned())
CAPIBARA_CHOOSE(UnsignedBySigned, Tile<UnsignedBySigned>(), x86_unsigned_by_signed())
// clang-format on

template <class Kind>
bool has_tile() {
  return best_tile<Kind>().rows != 0;
}
template bool has_tile<Bfloat16>();
template bool has_tile<SignedBytes>();
template bool has_tile<UnsignedBytes>();
template bool has_tile<SignedByUnsigned>();
template bool has_tile<UnsignedBySigned>();

}  // namespace capibara::cpu
