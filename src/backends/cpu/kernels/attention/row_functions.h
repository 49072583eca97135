// Row loops of attention for the widest vectors of this processor, and those for single queries.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/cpu/kernels/targets.h"

// The softmax of attention on a panel of logits: one row for each key, one column for each query.
//
// Columns fill vectors: maxima and sums over keys need no reductions across lanes. Compiled for each vector width.

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace capibara::cpu::attention {

#define CAPIBARA_INLINE inline __attribute__((always_inline))
#pragma GCC diagnostic ignored "-Wpsabi"  // wide vectors are passed only to functions that are inlined

template <class C, int Bytes>
struct Lane {
  typedef C V __attribute__((vector_size(Bytes)));
  typedef std::int32_t I __attribute__((vector_size(Bytes)));
  static constexpr int count = Bytes / static_cast<int>(sizeof(C));

  static CAPIBARA_INLINE V load(const C* from) {
    V value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  static CAPIBARA_INLINE void store(C* to, V value) { std::memcpy(to, &value, sizeof value); }
  static CAPIBARA_INLINE V all(C value) { return V{} + value; }

  // The greater of two, in one instruction; NaN if b is NaN.
  static CAPIBARA_INLINE V greater(V a, V b) {
#if defined(__aarch64__)
    if constexpr (std::is_same_v<C, float> && Bytes == 16) return vmaxq_f32(a, b);
#endif
    return a > b ? a : b;
  }

  // 2^x for x up to 127; 0 below -126.5; the polynomial's error is at most 2e-9 on [-0.5, 0.5].
  static CAPIBARA_INLINE V exp2(V x) {
    if constexpr (std::is_same_v<C, double>) {
      for (int i = 0; i < count; ++i) x[i] = std::exp2(x[i]);
      return x;
    } else {
      // 1.5 * 2^23 plus the exponent bias: adding it leaves the exponent of 2^x in the low bits, all 0 for -127.
      constexpr float shift = 12582912.0f + 127.0f;
      const V inside = greater(all(-127.0f), x);
      const V shifted = inside + shift;
      const V rest = inside - (shifted - shift);
      // In pairs that are accumulated into: the addend of a fused multiply-add need not be copied first.
      const V square = rest * rest, high = rest * 0.00015345812f + 0.0013399932f;
      V middle = rest * 0.009618489f + 0.055503288f, low = rest * 0.24022647f + 0.6931472f;
      middle += high * square;
      low += middle * square;
      const V power = reinterpret_cast<V>(reinterpret_cast<I>(shifted) << 23);
      return power + power * (low * rest);
    }
  }
};

template <class C>
constexpr C minus_infinity = -std::numeric_limits<C>::infinity();

// Logits become exp2(factor (logit - maximum)); updates each column's `maximum` and `sum`; `decay` scales older sums.
template <class C, int Bytes, int Vectors>
CAPIBARA_INLINE void softmax_rows(C* logits, int64_t rows, C factor, C* maximum, C* sum, C* decay) {
  using L = Lane<C, Bytes>;
  using V = typename L::V;
  constexpr int width = Vectors * L::count;
  V most[Vectors], base[Vectors], total[Vectors] = {};
  for (int v = 0; v < Vectors; ++v) most[v] = L::load(maximum + v * L::count);
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      const V x = L::load(logits + r * width + v * L::count);
      most[v] = L::greater(x, most[v]);
    }
  }
  for (int v = 0; v < Vectors; ++v) {
    base[v] = most[v] == minus_infinity<C> ? V{} : most[v];
    L::store(decay + v * L::count, L::exp2((L::load(maximum + v * L::count) - base[v]) * factor));
    L::store(maximum + v * L::count, most[v]);
  }
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      C* at = logits + r * width + v * L::count;
      const V share = L::exp2((L::load(at) - base[v]) * factor);
      L::store(at, share);
      total[v] += share;
    }
  }
  for (int v = 0; v < Vectors; ++v) {
    C* at = sum + v * L::count;
    L::store(at, L::load(at) * L::load(decay + v * L::count) + total[v]);
  }
}

// Logits become exp2(factor logit - base).
template <class C, int Bytes, int Vectors>
CAPIBARA_INLINE void share_rows(C* logits, int64_t rows, C factor, const C* base) {
  using L = Lane<C, Bytes>;
  constexpr int width = Vectors * L::count;
  typename L::V bases[Vectors];
  for (int v = 0; v < Vectors; ++v) bases[v] = L::load(base + v * L::count);
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      C* at = logits + r * width + v * L::count;
      L::store(at, L::exp2(L::load(at) * factor - bases[v]));
    }
  }
}

// Gradients of weights become gradients of logits: weight (gradient - delta).
template <class C, int Bytes, int Vectors>
CAPIBARA_INLINE void gradient_rows(const C* shares, C* gradients, int64_t rows, const C* delta) {
  using L = Lane<C, Bytes>;
  constexpr int width = Vectors * L::count;
  typename L::V deltas[Vectors];
  for (int v = 0; v < Vectors; ++v) deltas[v] = L::load(delta + v * L::count);
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      const int64_t at = r * width + v * L::count;
      L::store(gradients + at, L::load(shares + at) * (L::load(gradients + at) - deltas[v]));
    }
  }
}

// Scales rows of sums by one factor per column.
template <class C, int Bytes, int Vectors>
CAPIBARA_INLINE void scale_rows(C* sums, int64_t rows, const C* factor) {
  using L = Lane<C, Bytes>;
  constexpr int width = Vectors * L::count;
  typename L::V factors[Vectors];
  for (int v = 0; v < Vectors; ++v) factors[v] = L::load(factor + v * L::count);
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      C* at = sums + r * width + v * L::count;
      L::store(at, L::load(at) * factors[v]);
    }
  }
}

// Dropout of attention: sixteen bits for each element, determined by its head, query and key; same on every backend.

// Elements whose bits are at least `threshold` are kept. The words of Philox for counters (key / 16, 0,
// 8 (query / 16) + query % 8, 0) are the binary digits of 32 numbers, of two queries by 16 keys:
// src/kernels/attention/blockwise.cpp.
struct Dropout {
  std::uint32_t key[2] = {};  // of the head
  std::uint32_t threshold = 0;
};

// Philox for `Width` neighbouring queries at once.
template <int Width>
CAPIBARA_INLINE void philox_rows(const std::uint32_t* key, std::uint32_t first_query, std::uint32_t column,
                                 std::uint32_t (*words)[Width]) {
  std::uint32_t keys[2] = {key[0], key[1]};
  for (int i = 0; i < Width; ++i) {
    const std::uint32_t query = first_query + static_cast<std::uint32_t>(i);
    words[0][i] = column, words[1][i] = words[3][i] = 0;
    words[2][i] = query / 16 * 8 + query % 8;
  }
  for (int round = 0; round < 7; ++round) {
    for (int i = 0; i < Width; ++i) {
      const std::uint64_t first = std::uint64_t{0xd2511f53u} * words[0][i];
      const std::uint64_t second = std::uint64_t{0xcd9e8d57u} * words[2][i];
      words[0][i] = static_cast<std::uint32_t>(second >> 32) ^ words[1][i] ^ keys[0];
      words[1][i] = static_cast<std::uint32_t>(second);
      words[2][i] = static_cast<std::uint32_t>(first >> 32) ^ words[3][i] ^ keys[1];
      words[3][i] = static_cast<std::uint32_t>(first);
    }
    keys[0] += 0x9e3779b9u;
    keys[1] += 0xbb67ae85u;
  }
}

// One step of comparing numbers with `threshold`, from the lowest digit: `words` are the next four binary digits, and
// `kept` is the result so far, which decides where these digits are equal.
template <int Width>
CAPIBARA_INLINE void compare_digits(const std::uint32_t (*words)[Width], std::uint32_t threshold, std::uint32_t* kept) {
  for (int digit = 0; digit < 4; ++digit) {
    const std::uint32_t any = threshold >> digit & 1 ? 0 : ~std::uint32_t{0};
    for (int i = 0; i < Width; ++i) kept[i] = (words[digit][i] & kept[i]) | (any & (words[digit][i] | kept[i]));
  }
}

// Which of the 16 keys from 16 `group` on are kept; kept_bit gives a key's position.
template <int Width>
CAPIBARA_INLINE void kept_words(const Dropout& dropout, std::uint32_t first_query, std::uint32_t group,
                                std::uint32_t* kept) {
  std::uint32_t words[4][Width], mixed[4][Width];
  philox_rows<Width>(dropout.key, first_query, group, words);
  auto further = [](std::uint32_t word, int bits) { return word >> bits | word << (32 - bits); };
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < Width; ++i) mixed[j][i] = words[j][i] ^ further(words[(j + 1) % 4][i], 24);
  }
  for (int i = 0; i < Width; ++i) kept[i] = ~std::uint32_t{0};
  for (int place = 0; place < 16; place += 8) {
    if (place > 0) {
      for (int i = 0; i < Width; ++i) kept[i] = further(kept[i], 11);
    }
    compare_digits<Width>(mixed, dropout.threshold >> place, kept);
    for (int i = 0; i < Width; ++i) kept[i] = further(kept[i], 13);
    compare_digits<Width>(words, dropout.threshold >> (place + 4), kept);
  }
  for (int i = 0; i < Width; ++i) kept[i] >>= (first_query + static_cast<std::uint32_t>(i)) >> 3 & 1;
}
constexpr int kept_bit(int key) {
  return (key >> 2 & 1) * 16 + (key & 1) * 8 + (key >> 1 & 1) * 4 + (key >> 3 & 1) * 2;
}

// Zeroes dropped values and multiplies kept ones by `scale`: rows [first, last), which are the keys from first_key on.
// `second`, if not null, is treated the same.
template <class C, int Bytes, int Vectors>
CAPIBARA_INLINE void drop_rows(const Dropout& dropout, C* values, C* second, int64_t first, int64_t last,
                               int64_t first_key, int64_t first_query, C scale) {
  constexpr int width = Vectors * Bytes / static_cast<int>(sizeof(C));
  std::uint32_t kept[width];
  for (int64_t group = (first_key + first) / 16; group * 16 < first_key + last; ++group) {
    kept_words<width>(dropout, static_cast<std::uint32_t>(first_query), static_cast<std::uint32_t>(group), kept);
    for (int key = 0; key < 16; ++key) {
      const int64_t row = group * 16 + key - first_key;
      if (row < first || row >= last) continue;
      const std::uint32_t bit = std::uint32_t{1} << kept_bit(key);
      C* at = values + row * width;
      for (int i = 0; i < width; ++i) at[i] = kept[i] & bit ? at[i] * scale : C(0);
      if (!second) continue;
      C* other = second + row * width;
      for (int i = 0; i < width; ++i) other[i] = kept[i] & bit ? other[i] * scale : C(0);
    }
  }
}

// Dots of `count` rows with one vector, each `size` long.
template <class C, int Bytes>
CAPIBARA_INLINE void dot_rows(const C* rows, int64_t count, int64_t size, const C* by, C* out, int64_t out_step) {
  using L = Lane<C, Bytes>;
  using V = typename L::V;
  const int64_t paired = size - size % (2 * L::count), whole = size - size % L::count;
  for (int64_t r = 0; r < count; ++r, rows += size) {
    V first = {}, second = {};
    for (int64_t i = 0; i < paired; i += 2 * L::count) {
      first += L::load(rows + i) * L::load(by + i);
      second += L::load(rows + i + L::count) * L::load(by + i + L::count);
    }
    if (paired < whole) first += L::load(rows + paired) * L::load(by + paired);
    first += second;
    C sum = 0;
    for (int i = 0; i < L::count; ++i) sum += first[i];
    for (int64_t i = whole; i < size; ++i) sum += rows[i] * by[i];
    out[r * out_step] = sum;
  }
}

// sums += weight row, for `count` rows; four at a time, so that sums are loaded and stored once per four rows.
template <class C, int Bytes>
CAPIBARA_INLINE void add_rows(C* sums, const C* rows, int64_t count, int64_t size, const C* weights, int64_t step) {
  using L = Lane<C, Bytes>;
  const int64_t whole = size - size % L::count;
  int64_t r = 0;
  for (; r + 4 <= count; r += 4, rows += 4 * size, weights += 4 * step) {
    const C a = weights[0], b = weights[step], c = weights[2 * step], d = weights[3 * step];
    for (int64_t i = 0; i < whole; i += L::count) {
      const auto near = L::load(rows + i) * a + L::load(rows + size + i) * b;
      const auto far = L::load(rows + 2 * size + i) * c + L::load(rows + 3 * size + i) * d;
      L::store(sums + i, L::load(sums + i) + (near + far));
    }
    for (int64_t i = whole; i < size; ++i) {
      sums[i] += (rows[i] * a + rows[size + i] * b) + (rows[2 * size + i] * c + rows[3 * size + i] * d);
    }
  }
  for (; r < count; ++r, rows += size, weights += step) {
    for (int64_t i = 0; i < size; ++i) sums[i] += rows[i] * weights[0];
  }
}

// ---- the widest vectors of this processor ------------------------------------------------------------------------

// By the number of vectors of a panel, minus one; then those for rows.
template <class C>
struct RowFunctions {
  void (*softmax[3])(C* logits, int64_t rows, C factor, C* maximum, C* sum, C* decay);
  void (*shares[3])(C* logits, int64_t rows, C factor, const C* base);
  void (*gradients[3])(const C* shares, C* gradients, int64_t rows, const C* delta);
  void (*scale[3])(C* sums, int64_t rows, const C* factor);
  void (*drop[3])(const Dropout&, C* values, C* second, int64_t first, int64_t last, int64_t first_key,
                  int64_t first_query, C scale);
  void (*dot)(const C* rows, int64_t count, int64_t size, const C* by, C* out, int64_t out_step);
  void (*add)(C* sums, const C* rows, int64_t count, int64_t size, const C* weights, int64_t weight_step);
};

#define CAPIBARA_ATTENTION_ROWS(NAME, TARGET, BYTES)                                                            \
  template <class C>                                                                                            \
  TARGET void NAME##_dot(const C* rows, int64_t count, int64_t size, const C* by, C* out, int64_t step) {       \
    dot_rows<C, BYTES>(rows, count, size, by, out, step);                                                       \
  }                                                                                                             \
  template <class C>                                                                                            \
  TARGET void NAME##_add(C* sums, const C* rows, int64_t count, int64_t size, const C* weights, int64_t step) { \
    add_rows<C, BYTES>(sums, rows, count, size, weights, step);                                                 \
  }                                                                                                             \
  template <class C, int Vectors>                                                                               \
  struct NAME##Rows {                                                                                           \
    TARGET static void softmax(C* logits, int64_t rows, C factor, C* maximum, C* sum, C* decay) {               \
      softmax_rows<C, BYTES, Vectors>(logits, rows, factor, maximum, sum, decay);                               \
    }                                                                                                           \
    TARGET static void shares(C* logits, int64_t rows, C factor, const C* base) {                               \
      share_rows<C, BYTES, Vectors>(logits, rows, factor, base);                                                \
    }                                                                                                           \
    TARGET static void gradients(const C* shares, C* gradients, int64_t rows, const C* delta) {                 \
      gradient_rows<C, BYTES, Vectors>(shares, gradients, rows, delta);                                         \
    }                                                                                                           \
    TARGET static void scale(C* sums, int64_t rows, const C* factor) {                                          \
      scale_rows<C, BYTES, Vectors>(sums, rows, factor);                                                        \
    }                                                                                                           \
    TARGET static void drop(const Dropout& dropout, C* values, C* second, int64_t first, int64_t last,          \
                            int64_t first_key, int64_t first_query, C scale) {                                  \
      drop_rows<C, BYTES, Vectors>(dropout, values, second, first, last, first_key, first_query, scale);        \
    }                                                                                                           \
  };
CAPIBARA_ATTENTION_ROWS(Plain, , 16)
#if defined(__x86_64__)
CAPIBARA_ATTENTION_ROWS(Avx2, CAPIBARA_AVX2, 32)
CAPIBARA_ATTENTION_ROWS(Avx512, CAPIBARA_AVX512, 64)
#endif

template <class C, template <class, int> class R>
RowFunctions<C> all_widths(decltype(RowFunctions<C>::dot) dot, decltype(RowFunctions<C>::add) add) {
  return {{R<C, 1>::softmax, R<C, 2>::softmax, R<C, 3>::softmax},
          {R<C, 1>::shares, R<C, 2>::shares, R<C, 3>::shares},
          {R<C, 1>::gradients, R<C, 2>::gradients, R<C, 3>::gradients},
          {R<C, 1>::scale, R<C, 2>::scale, R<C, 3>::scale},
          {R<C, 1>::drop, R<C, 2>::drop, R<C, 3>::drop},
          dot,
          add};
}

// For a GEMM tile of this many lanes.
template <class C>
RowFunctions<C> row_functions(int64_t lanes) {
#if defined(__x86_64__)
  if (lanes * static_cast<int64_t>(sizeof(C)) == 64) return all_widths<C, Avx512Rows>(Avx512_dot<C>, Avx512_add<C>);
  if (lanes * static_cast<int64_t>(sizeof(C)) == 32) return all_widths<C, Avx2Rows>(Avx2_dot<C>, Avx2_add<C>);
#endif
  return all_widths<C, PlainRows>(Plain_dot<C>, Plain_add<C>);
}

}  // namespace capibara::cpu::attention
