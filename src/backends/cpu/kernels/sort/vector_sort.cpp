// Vectorised quicksort: compares sixteen keys (eight of 64 bits) at a time with a pivot and compresses them to both
// ends of another array; up to sixteen vectors are sorted in registers, each by a bitonic network, then merged.
#include "backends/cpu/kernels/sort/vector_sort.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/targets.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/processor.h"
#include "core/runtime/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace capibara::cpu {

#if defined(__x86_64__)

namespace {

#define CAPIBARA_WIDE __attribute__((target("avx512f,avx512dq,popcnt")))
#define CAPIBARA_WIDE_INLINE inline __attribute__((always_inline, target("avx512f,avx512dq,popcnt")))

// The instructions for keys of one width; the masks name all lanes, since g++ 12 warns about its implementation of the
// unmasked forms.
template <class Key>
struct Instructions;

#define CAPIBARA_INSTRUCTIONS(BITS, LANES)                                                                            \
  template <>                                                                                                         \
  struct Instructions<uint##BITS##_t> {                                                                               \
    using Key = uint##BITS##_t;                                                                                       \
    using Mask = __mmask##LANES;                                                                                      \
    static constexpr int count = LANES;                                                                               \
    static constexpr Mask all = static_cast<Mask>(~Mask{0});                                                          \
    static CAPIBARA_WIDE_INLINE __m512i fill(Key key) {                                                               \
      return _mm512_set1_epi##BITS(static_cast<int##BITS##_t>(key));                                                  \
    }                                                                                                                 \
    static CAPIBARA_WIDE_INLINE __m512i least(__m512i a, __m512i b) { return _mm512_maskz_min_epu##BITS(all, a, b); } \
    static CAPIBARA_WIDE_INLINE __m512i greatest(__m512i a, __m512i b) {                                              \
      return _mm512_maskz_max_epu##BITS(all, a, b);                                                                   \
    }                                                                                                                 \
    static CAPIBARA_WIDE_INLINE Mask above(__m512i a, __m512i b) { return _mm512_cmpgt_epu##BITS##_mask(a, b); }      \
    static CAPIBARA_WIDE_INLINE __m512i compress(Mask mask, __m512i a) {                                              \
      return _mm512_maskz_compress_epi##BITS(mask, a);                                                                \
    }                                                                                                                 \
    /* The lesser of both, in lanes of the mask the greater. */                                                       \
    static CAPIBARA_WIDE_INLINE __m512i ordered(Mask mask, __m512i a, __m512i b) {                                    \
      return _mm512_mask_max_epu##BITS(least(a, b), mask, a, b);                                                      \
    }                                                                                                                 \
    static CAPIBARA_WIDE_INLINE __m512i load(Mask mask, __m512i other, const Key* at) {                               \
      return _mm512_mask_loadu_epi##BITS(other, mask, at);                                                            \
    }                                                                                                                 \
    static CAPIBARA_WIDE_INLINE void store(Mask mask, Key* at, __m512i a) {                                           \
      _mm512_mask_storeu_epi##BITS(at, mask, a);                                                                      \
    }                                                                                                                 \
  };
CAPIBARA_INSTRUCTIONS(32, 16)
CAPIBARA_INSTRUCTIONS(64, 8)
#undef CAPIBARA_INSTRUCTIONS

template <class Key>
struct Wide : Instructions<Key> {
  using Mask = typename Instructions<Key>::Mask;
  using Instructions<Key>::count;

  // Lane i receives lane i ^ bits.
  template <int bits>
  static CAPIBARA_WIDE_INLINE __m512i exchange(__m512i a) {
    return exchanged<bits>(a, std::make_index_sequence<static_cast<std::size_t>(count)>());
  }
  // Mask of the lanes whose index has the bit.
  static constexpr Mask lanes_with(int bit) {
    uint32_t mask = 0;
    for (int lane = 0; lane < count; ++lane) mask |= static_cast<uint32_t>((lane & bit) != 0) << lane;
    return static_cast<Mask>(mask);
  }
  // Loads keys `step` apart.
  static CAPIBARA_WIDE_INLINE __m512i gather(const Key* keys, int64_t step) {
    Key some[count];
#pragma GCC unroll 16
    for (int lane = 0; lane < count; ++lane) some[lane] = keys[lane * step];
    return _mm512_loadu_si512(some);
  }

 private:
  template <int bits, std::size_t... lanes>
  static CAPIBARA_WIDE_INLINE __m512i exchanged(__m512i a, std::index_sequence<lanes...>) {
    typedef Key V __attribute__((vector_size(64)));
    const V v = reinterpret_cast<V>(a);
    return reinterpret_cast<__m512i>(__builtin_shufflevector(v, v, (static_cast<int>(lanes) ^ bits)...));
  }
};

template <class Key>
struct VectorSort {
  using W = Wide<Key>;
  using Mask = typename W::Mask;
  static constexpr int lanes = W::count, max_vectors = 16;
  static constexpr int64_t max_small = lanes * max_vectors;

  // Compares each lane with the one whose index differs in `bits`: the lesser goes to the lane without the highest bit.
  template <int bits, int high>
  static CAPIBARA_WIDE_INLINE __m512i compare(__m512i a) {
    const __m512i other = W::template exchange<bits>(a);
    return W::ordered(W::lanes_with(high), a, other);
  }
  // Sorts bitonic lanes: ascending, then descending.
  static CAPIBARA_WIDE_INLINE __m512i merge_lanes(__m512i a) {
    if constexpr (lanes == 16) a = compare<8, 8>(a);
    a = compare<4, 4>(a);
    a = compare<2, 2>(a);
    return compare<1, 1>(a);
  }
  static CAPIBARA_WIDE_INLINE __m512i sort_lanes(__m512i a) {
    a = compare<1, 1>(a);
    a = compare<3, 2>(a);
    a = compare<1, 1>(a);
    a = compare<7, 4>(a);
    a = compare<2, 2>(a);
    a = compare<1, 1>(a);
    if constexpr (lanes == 16) {
      a = compare<15, 8>(a);
      a = compare<4, 4>(a);
      a = compare<2, 2>(a);
      a = compare<1, 1>(a);
    }
    return a;
  }
  // Merges two sorted halves of `vectors` into one sorted sequence.
  template <int vectors>
  static CAPIBARA_WIDE_INLINE void merge(__m512i* v) {
    __m512i reversed[vectors / 2];
#pragma GCC unroll 16
    for (int i = 0; i < vectors / 2; ++i) reversed[i] = W::template exchange<lanes - 1>(v[vectors - 1 - i]);
#pragma GCC unroll 16
    for (int i = 0; i < vectors / 2; ++i) {
      const __m512i a = v[i];
      v[i] = W::least(a, reversed[i]);
      v[i + vectors / 2] = W::greatest(a, reversed[i]);
    }
    settle<vectors / 2>(v);
    settle<vectors / 2>(v + vectors / 2);
  }
  template <int vectors>
  static CAPIBARA_WIDE_INLINE void settle(__m512i* v) {
    if constexpr (vectors == 1) {
      v[0] = merge_lanes(v[0]);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < vectors / 2; ++i) {
        const __m512i a = v[i], b = v[i + vectors / 2];
        v[i] = W::least(a, b);
        v[i + vectors / 2] = W::greatest(a, b);
      }
      settle<vectors / 2>(v);
      settle<vectors / 2>(v + vectors / 2);
    }
  }
  template <int vectors>
  static CAPIBARA_WIDE_INLINE void sort_vectors(__m512i* v) {
    if constexpr (vectors == 1) {
      v[0] = sort_lanes(v[0]);
    } else {
      sort_vectors<vectors / 2>(v);
      sort_vectors<vectors / 2>(v + vectors / 2);
      merge<vectors>(v);
    }
  }
  template <int vectors>
  static CAPIBARA_WIDE void sort_few(const Key* keys, int64_t count, Key* out) {
    const __m512i last = W::fill(static_cast<Key>(~Key{0}));
    __m512i v[vectors];
    Mask masks[vectors];
#pragma GCC unroll 16
    for (int i = 0; i < vectors; ++i) {
      const int64_t here = std::clamp<int64_t>(count - i * lanes, 0, lanes);
      masks[i] = static_cast<Mask>((uint32_t{1} << here) - 1);
      v[i] = W::load(masks[i], last, keys + i * lanes);
    }
    sort_vectors<vectors>(v);
#pragma GCC unroll 16
    for (int i = 0; i < vectors; ++i) W::store(masks[i], out + i * lanes, v[i]);
  }
  static CAPIBARA_WIDE void sort_small(const Key* keys, int64_t count, Key* out) {
    if (count <= lanes)
      sort_few<1>(keys, count, out);
    else if (count <= 2 * lanes)
      sort_few<2>(keys, count, out);
    else if (count <= 4 * lanes)
      sort_few<4>(keys, count, out);
    else if (count <= 8 * lanes)
      sort_few<8>(keys, count, out);
    else
      sort_few<16>(keys, count, out);
  }

  // The median of some keys from across the range.
  static CAPIBARA_WIDE Key pivot_of(const Key* keys, int64_t count) {
    constexpr int64_t min_many = 1 << 13;
    if (count < min_many) {
      Key sorted[lanes];
      const int64_t step = count / lanes;
      _mm512_storeu_si512(sorted, sort_lanes(W::gather(keys + step / 2, step)));
      return sorted[lanes / 2 - 1];
    }
    Key some[4 * lanes];
    const uint64_t step = static_cast<uint64_t>(count / (4 * lanes));
    uint64_t jitter = static_cast<uint64_t>(count) * 0x9e3779b97f4a7c15u;  // so that no pattern hits all samples
    for (int64_t i = 0; i < 4 * lanes; ++i) {
      jitter = jitter * 6364136223846793005u + 1442695040888963407u;
      some[i] = keys[static_cast<uint64_t>(i) * step + ((jitter >> 33) * step >> 31)];
    }
    sort_few<4>(some, 4 * lanes, some);
    return some[2 * lanes - 1];
  }

  // Moves keys up to the pivot to the front of `out`, greater ones to its end; returns the number of the former.
  static CAPIBARA_WIDE int64_t split(const Key* keys, int64_t count, Key pivot, Key* out) {
    const __m512i middle = W::fill(pivot);
    Key *low = out, *high = out + count;
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      const __m512i v = _mm512_loadu_si512(keys + i);
      const Mask above = W::above(v, middle);
      const int many = std::popcount(static_cast<uint32_t>(above));
      // The gap between both sides has room for everything not stored yet, including this vector.
      _mm512_storeu_si512(low, W::compress(static_cast<Mask>(~above), v));
      high -= many;
      W::store(static_cast<Mask>((uint32_t{1} << many) - 1), high, W::compress(above, v));
      low += lanes - many;
    }
    for (; i < count; ++i) {
      if (keys[i] > pivot)
        *--high = keys[i];
      else
        *low++ = keys[i];
    }
    return low - out;
  }

  // Keys to be sorted, and a second array of the same size; which of the two receives the result.
  struct Range {
    Key *keys, *other;
    int64_t count;
    bool here;

    Key* target() const { return here ? keys : other; }
    Range part(int64_t begin, int64_t size) const { return {other + begin, keys + begin, size, !here}; }
  };
  // Splits a range and returns what remains to be sorted of both sides.
  static std::pair<Range, Range> halves(const Range& range) {
    const Key pivot = pivot_of(range.keys, range.count);
    const int64_t low = split(range.keys, range.count, pivot, range.other);
    const std::pair parts{range.part(0, low), range.part(low, range.count - low)};
    if (low < range.count) return parts;
    // The pivot is the greatest key: keys equal to it are done.
    const int64_t below = pivot == 0 ? 0 : split(range.other, range.count, static_cast<Key>(pivot - 1), range.keys);
    std::fill(range.target() + below, range.target() + range.count, pivot);
    return {Range{range.keys, range.other, below, range.here}, range.part(0, 0)};
  }

  static void sort(Range range) {
    std::vector<std::pair<Range, int>> left;
    left.emplace_back(range, 2 * std::bit_width(static_cast<uint64_t>(range.count)));
    while (!left.empty()) {
      const auto [own, depth] = left.back();
      left.pop_back();
      if (own.count <= max_small) {
        if (own.count > 0) sort_small(own.keys, own.count, own.target());
        continue;
      }
      if (depth == 0) {
        std::sort(own.keys, own.keys + own.count);
        if (!own.here) std::copy_n(own.keys, own.count, own.other);
        continue;
      }
      if (own.count >= (1 << 16)) poll_stop();
      const auto [low, high] = halves(own);
      left.emplace_back(high, depth - 1);
      left.emplace_back(low, depth - 1);
    }
  }

  // Many keys are first split into some ranges per thread: equal keys are identical, so it does not matter where ranges
  // end.
  static void sort_all(Range range) {
    constexpr int64_t min_shared = 1 << 15;
    if (range.count < 2 * min_shared || in_parallel_region() || thread_count() == 1) return sort(range);
    std::vector<Range> ranges{range};
    const std::size_t wanted = 4 * static_cast<std::size_t>(thread_count());
    for (int level = 0; ranges.size() < wanted && level < 8; ++level) {
      std::vector<std::pair<Range, Range>> parts(ranges.size());
      parallel_for(static_cast<int64_t>(ranges.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const Range& own = ranges[static_cast<std::size_t>(i)];
          parts[static_cast<std::size_t>(i)] = own.count < min_shared ? std::pair{own, own.part(0, 0)} : halves(own);
        }
        return 0;
      });
      ranges.clear();
      for (const auto& [low, high] : parts) {
        if (low.count > 0) ranges.push_back(low);
        if (high.count > 0) ranges.push_back(high);
      }
    }
    parallel_for(static_cast<int64_t>(ranges.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sort(ranges[static_cast<std::size_t>(i)]);
      return 0;
    });
  }
};

}  // namespace

bool has_vector_sort() {
  static const bool found = has_avx512();
  return found;
}
void vector_sort(uint32_t* keys, uint32_t* scratch, int64_t count) {
  VectorSort<uint32_t>::sort_all({keys, scratch, count, true});
}
void vector_sort(uint64_t* keys, uint64_t* scratch, int64_t count) {
  VectorSort<uint64_t>::sort_all({keys, scratch, count, true});
}

#else

bool has_vector_sort() { return false; }
void vector_sort(uint32_t* keys, uint32_t*, int64_t count) { std::sort(keys, keys + count); }
void vector_sort(uint64_t* keys, uint64_t*, int64_t count) { std::sort(keys, keys + count); }

#endif

}  // namespace capibara::cpu
