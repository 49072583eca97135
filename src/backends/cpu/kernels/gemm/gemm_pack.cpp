// Packing for every kind of matmul, compiled once here for all users.
#include "backends/cpu/kernels/gemm/gemm_pack.h"

#include "backends/cpu/kernels/gemm/gemm_pack_avx512.h"
#include "backends/cpu/kernels/gemm/mixed_bytes.h"

namespace capibara::cpu {

namespace {

// Vectors of 16 bytes and the shuffles that packing needs: transposes of a few rows in registers.
// `transpose` zips a list of vectors until row-major [rows][lanes] has become [lanes][rows].
template <class P>
struct Shuffle {
  using Bits = std::conditional_t<sizeof(P) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(P) == 2, std::uint16_t,
                                                     std::conditional_t<sizeof(P) == 4, std::uint32_t, std::uint64_t>>>;
  typedef Bits V __attribute__((vector_size(16)));
  static constexpr int lanes = 16 / static_cast<int>(sizeof(P));

  static inline __attribute__((always_inline)) V low(V x, V y) {
    if constexpr (lanes == 2)
      return __builtin_shufflevector(x, y, 0, 2);
    else if constexpr (lanes == 4)
      return __builtin_shufflevector(x, y, 0, 4, 1, 5);
    else if constexpr (lanes == 8)
      return __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11);
    else
      return __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  }
  static inline __attribute__((always_inline)) V high(V x, V y) {
    if constexpr (lanes == 2)
      return __builtin_shufflevector(x, y, 1, 3);
    else if constexpr (lanes == 4)
      return __builtin_shufflevector(x, y, 2, 6, 3, 7);
    else if constexpr (lanes == 8)
      return __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15);
    else
      return __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
  // A recursion rather than a loop: compilers keep the vectors in registers.
  template <int Rows, int Stage = 1>
  static inline __attribute__((always_inline)) void transpose(V (&v)[Rows]) {
    if constexpr (Stage < Rows) {
      V next[Rows];
#pragma GCC unroll 8
      for (int i = 0; i < Rows / 2; ++i) {
        next[2 * i] = low(v[i], v[i + Rows / 2]);
        next[2 * i + 1] = high(v[i], v[i + Rows / 2]);
      }
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) v[i] = next[i];
      transpose<Rows, Stage * 2>(v);
    }
  }
  // The first `count` lanes from memory, the others zero.
  static inline __attribute__((always_inline)) V load(const P* from, int64_t count) {
    V v = {};
    if (count >= lanes) {
      std::memcpy(&v, from, 16);
    } else {
      const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(P);
      if (bytes == 8)
        std::memcpy(&v, from, 8);
      else if (bytes == 12)
        std::memcpy(&v, from, 12);
      else if (bytes == 4)
        std::memcpy(&v, from, 4);
      else
        std::memcpy(&v, from, bytes);
    }
    return v;
  }
};

// Contiguous rows: row(k) points to all `count` elements of that k.
template <class K, class S, class RowOf>
inline void pack_neighbours(RowOf row, int64_t count, int64_t k, int64_t width, typename K::Packed* out) {
  using P = typename K::Packed;
  constexpr int64_t together = K::together;
  if constexpr (together == 1) {
    if (count == width) {
      auto copy = [&]<int Width>() {
        for (int64_t p = 0; p < k; ++p) {
          const S* from = row(p);
          P* to = out + p * Width;
          if constexpr (std::is_same_v<P, S>)
            std::memcpy(to, from, sizeof(P) * Width);
          else
            for (int i = 0; i < Width; ++i) to[i] = packed_element<P>(from[i]);
        }
      };
      switch (width) {
        case 2:
          return copy.template operator()<2>();
        case 4:
          return copy.template operator()<4>();
        case 6:
          return copy.template operator()<6>();
        case 8:
          return copy.template operator()<8>();
        case 12:
          return copy.template operator()<12>();
        case 14:
          return copy.template operator()<14>();
        case 16:
          return copy.template operator()<16>();
        case 32:
          return copy.template operator()<32>();
        default:
          break;
      }
    }
    for (int64_t p = 0; p < k; ++p) {
      const S* from = row(p);
      for (int64_t i = 0; i < count; ++i) out[p * width + i] = packed_element<P>(from[i]);
      for (int64_t i = count; i < width; ++i) out[p * width + i] = P();
    }
  } else {
    using Z = Shuffle<P>;
    constexpr int64_t lanes = Z::lanes;
    static const P nothing[static_cast<std::size_t>(lanes)] = {};
    // Whole panels: all lengths are constants, so that only loads, zips and stores remain.
    auto zip = [&]<int Width>(int64_t p) {
#pragma GCC unroll 4
      for (int i = 0; i < Width; i += lanes) {
        constexpr int rest = Width % lanes == 0 ? static_cast<int>(lanes) : Width % lanes;
        const bool whole = i + lanes <= Width;
        typename Z::V v[together];
#pragma GCC unroll 8
        for (int t = 0; t < together; ++t) {
          if (whole) {
            std::memcpy(&v[t], row(p + t) + i, 16);
          } else {
            v[t] = typename Z::V{};
            std::memcpy(&v[t], row(p + t) + i, rest * sizeof(P));
          }
        }
        Z::transpose(v);
        P* to = out + p * Width + i * together;
        const int vectors =
            (whole ? static_cast<int>(lanes) : rest) * static_cast<int>(together) / static_cast<int>(lanes);
#pragma GCC unroll 8
        for (int t = 0; t < together; ++t) {
          if (t < vectors) std::memcpy(static_cast<void*>(to + t * lanes), &v[t], 16);
        }
      }
    };
    auto zip_any = [&]<int... Width>(int64_t p, std::integer_sequence<int, Width...>) {
      return ((width == Width && (zip.template operator()<Width>(p), true)) || ...);
    };
    int64_t done = 0;
    while (count == width && done + together <= k && zip_any(done, std::integer_sequence<int, 24, 12, 8, 32, 4>())) {
      done += together;
    }
    for (int64_t p = done; p < k; p += together) {
      for (int64_t i = 0; i < width; i += lanes) {
        const int64_t some = std::min(lanes, count - i);
        typename Z::V v[together];
        for (int64_t t = 0; t < together; ++t)
          v[t] = p + t < k && some > 0 ? Z::load(row(p + t) + i, some) : Z::load(nothing, lanes);
        Z::transpose(v);
        P* to = out + p * width + i * together;
        const int64_t elements = std::min(lanes, width - i) * together;  // the last vector may be partly used
        for (int64_t t = 0; t * lanes < elements; ++t) {
          std::memcpy(static_cast<void*>(to + t * lanes), &v[t],
                      static_cast<std::size_t>(std::min(lanes, elements - t * lanes)) * sizeof(P));
        }
      }
    }
  }
}

// Rows at any address: from[row] + k * step; null rows are absent.
template <class K, class S>
inline void pack_gathered(const S* const* from, int64_t step, int64_t k, int64_t width, typename K::Packed* out) {
  using P = typename K::Packed;
  constexpr int64_t together = K::together;
  if constexpr (together == 1) {
    for (int64_t i = 0; i < width;) {
      const S* row = from[i];
      P* to = out + i;
      if (!row) {
        for (int64_t p = 0; p < k; ++p) to[p * width] = P();
        ++i;
      } else if (i + 4 <= width && from[i + 1] == row + 1 && from[i + 2] == row + 2 && from[i + 3] == row + 3) {
        for (int64_t p = 0; p < k; ++p, to += width, row += step) {
          if constexpr (std::is_same_v<P, S>)
            std::memcpy(to, row, 4 * sizeof(P));
          else
            for (int l = 0; l < 4; ++l) to[l] = packed_element<P>(row[l]);
        }
        i += 4;
      } else {
        for (int64_t p = 0; p < k; ++p, to += width, row += step) *to = packed_element<P>(*row);
        ++i;
      }
    }
  } else {
    const int64_t steps = (k + together - 1) / together * together;
    for (int64_t p = 0; p < steps; ++p) {
      P* to = out + p / together * together * width + p % together;
      for (int64_t i = 0; i < width; ++i)
        to[i * together] = p < k && from[i] ? packed_element<P>(from[i][p * step]) : P();
    }
  }
}

}  // namespace

template <class K, class S>
void pack_across(const S* from, int64_t stride, int64_t count, int64_t k, int64_t width, typename K::Packed* out) {
  pack_neighbours<K, S>([from, stride](int64_t p) { return from + p * stride; }, count, k, width, out);
}

template <class K, class S>
void pack_transposed(const S* const* from, int64_t k, int64_t width, typename K::Packed* out) {
  using P = typename K::Packed;
  constexpr int64_t together = K::together;
  if constexpr (!std::is_same_v<P, S>) {
    // Converts in strips, then packs.
    constexpr int64_t strip = 64;
    alignas(64) P rows[max_panel_width * strip];
    const P* start[max_panel_width];
    for (int64_t i = 0; i < width; ++i) start[i] = rows + i * strip;
    for (int64_t p = 0; p < k; p += strip) {
      const int64_t some = std::min(strip, k - p);
      for (int64_t i = 0; i < width; ++i) {
        for (int64_t q = 0; q < some; ++q) rows[i * strip + q] = packed_element<P>(from[i][p + q]);
      }
      pack_transposed<K, P>(start, some, width, out + p * width);
    }
  } else if constexpr (together == 1) {
    using Z = Shuffle<P>;
    constexpr int64_t lanes = Z::lanes;
    if (transpose_avx512(from, k, width, out)) return;
    const int64_t whole = width / lanes * lanes, last = k / lanes * lanes;
    for (int64_t i = 0; i < whole; i += lanes) {
      const P* row[lanes];
#pragma GCC unroll 4
      for (int64_t t = 0; t < lanes; ++t) row[t] = from[i + t];
      P* to = out + i;
      for (int64_t p = 0; p < last; p += lanes) {
        typename Z::V v[lanes];
#pragma GCC unroll 4
        for (int64_t t = 0; t < lanes; ++t) std::memcpy(&v[t], row[t] + p, 16);
        Z::transpose(v);
#pragma GCC unroll 4
        for (int64_t t = 0; t < lanes; ++t, to += width) std::memcpy(to, &v[t], 16);
      }
    }
    int64_t packed = whole;  // number of rows done, for k up to `last`
    if constexpr (lanes == 4) {
      if (width - whole >= 2) {  // two more, for the 14 rows of AVX-512 tiles
        const P *one = from[whole], *other = from[whole + 1];
        P* to = out + whole;
        for (int64_t p = 0; p < last; p += lanes) {
          typename Z::V x, y;
          std::memcpy(&x, one + p, 16);
          std::memcpy(&y, other + p, 16);
          const typename Z::V pairs[2] = {Z::low(x, y), Z::high(x, y)};
#pragma GCC unroll 4
          for (int64_t t = 0; t < lanes; ++t, to += width)
            std::memcpy(to, reinterpret_cast<const char*>(pairs) + t * 2 * sizeof(P), 2 * sizeof(P));
        }
        packed += 2;
      }
    }
    for (int64_t p = packed == width ? last : 0; p < k; ++p) {
      for (int64_t i = p < last ? packed : 0; i < width; ++i) out[p * width + i] = from[i][p];
    }
  } else {
    const int64_t last = k / together * together;
    constexpr std::size_t bytes = static_cast<std::size_t>(together) * sizeof(P);
    for (int64_t i = 0; i < width; ++i) {
      const P* row = from[i];
      P* to = out + i * together;
      for (int64_t p = 0; p < last; p += together) std::memcpy(to + p * width, row + p, bytes);
      if (last < k) {
        std::memset(static_cast<void*>(to + last * width), 0, bytes);
        std::memcpy(to + last * width, row + last, static_cast<std::size_t>(k - last) * sizeof(P));
      }
    }
  }
}

template <class K, class S>
void pack_rows(const S** from, int64_t count, int64_t step, int64_t k, int64_t width, typename K::Packed* out) {
  bool all = true, neighbours = true;
  for (int64_t i = 0; i < count; ++i) {
    all = all && from[i];
    neighbours = neighbours && all && from[i] == from[0] + i;
  }
  if (neighbours && count > 1) {
    const S* start = from[0];
    return pack_neighbours<K, S>([start, step](int64_t p) { return start + p * step; }, count, k, width, out);
  }
  if (step == 1 || k == 1) {
    for (int64_t i = 0; i < width; ++i) {
      if (i >= count || !from[i]) from[i] = absent_row<S>();
    }
    return pack_transposed<K, S>(from, k, width, out);
  }
  for (int64_t i = count; i < width; ++i) from[i] = nullptr;
  pack_gathered<K, S>(from, step, k, width, out);
}

template <class K, class S>
void pack_matrix(const S* data, const Axis& rows, const Axis& inner, int64_t first, int64_t count, int64_t k0,
                 int64_t k, int64_t width, typename K::Packed* out) {
  const int64_t padded = (k + K::together - 1) / K::together * K::together;
  if (count > 1 && rows.contiguous(first, count)) {
    // A few k of all panels, then the next: memory is read along its rows. At most twice as many k as the L1 cache
    // has ways: rows a power of two apart map to one set.
    constexpr int64_t strip = 8;
    for (int64_t p0 = 0; p0 < k; p0 += strip) {
      const int64_t some = std::min(strip, k - p0);
      for (int64_t i = 0; i < count; i += width) {
        const S* start = data + rows.at(first) + i;
        typename K::Packed* to = out + i * padded + p0 * width;
        const int64_t own = std::min(width, count - i);
        if (inner.is_regular()) {
          const int64_t step = inner.stride();
          start += (k0 + p0) * step;
          if constexpr (std::is_same_v<typename K::Packed, S> && K::together == 1) {
            if (own == width && width * sizeof(S) == 128 && copy_avx512(start, step * sizeof(S), some, to)) continue;
          }
          pack_neighbours<K, S>([start, step](int64_t p) { return start + p * step; }, own, some, width, to);
        } else {
          pack_neighbours<K, S>([&](int64_t p) { return start + inner.at(k0 + p0 + p); }, own, some, width, to);
        }
      }
    }
    return;
  }
  if (count > width) {
    for (int64_t i = 0; i < count; i += width)
      pack_matrix<K, S>(data, rows, inner, first + i, std::min(width, count - i), k0, k, width, out + i * padded);
    return;
  }
  if (inner.is_regular()) {
    const S* from[max_panel_width] = {};
    for (int64_t i = 0; i < count; ++i) from[i] = data + rows.at(first + i) + k0 * inner.stride();
    return pack_rows<K, S>(from, count, inner.stride(), k, width, out);
  }
  using P = typename K::Packed;
  constexpr int64_t together = K::together;
  // Contiguous runs, where they fill whole groups of k.
  for (int64_t p = 0; p < k;) {
    const int64_t run = std::min(inner.run(k0 + p), k - p), some = p + run == k ? run : run / together * together;
    if (some < 4) break;
    const S* from[max_panel_width] = {};
    for (int64_t i = 0; i < count; ++i) from[i] = data + rows.at(first + i) + inner.at(k0 + p);
    pack_rows<K, S>(from, count, 1, some, width, out + p * width);
    p += some;
    if (p == k) return;
  }
  const int64_t steps = (k + together - 1) / together * together;
  for (int64_t p = 0; p < steps; ++p) {
    const S* from = data + (p < k ? inner.at(k0 + p) : 0);
    P* to = out + p / together * together * width + p % together;
    for (int64_t i = 0; i < width; ++i)
      to[i * together] = p < k && i < count ? packed_element<P>(from[rows.at(first + i)]) : P();
  }
}

#define CAPIBARA_PACK(K, S)                                                                                        \
  template void pack_across<K, S>(const S*, int64_t, int64_t, int64_t, int64_t, K::Packed*);                       \
  template void pack_transposed<K, S>(const S* const*, int64_t, int64_t, K::Packed*);                              \
  template void pack_rows<K, S>(const S**, int64_t, int64_t, int64_t, int64_t, K::Packed*);                        \
  template void pack_matrix<K, S>(const S*, const Axis&, const Axis&, int64_t, int64_t, int64_t, int64_t, int64_t, \
                                  K::Packed*);
CAPIBARA_PACK(Singles, float)
CAPIBARA_PACK(Singles, Bfloat16Bits)
CAPIBARA_PACK(Singles, HalfBits)
CAPIBARA_PACK(Doubles, double)
CAPIBARA_PACK(Words, std::uint32_t)
CAPIBARA_PACK(Longs, std::uint64_t)
CAPIBARA_PACK(Bfloat16, Bfloat16Bits)
CAPIBARA_PACK(SignedBytes, std::int8_t)
CAPIBARA_PACK(UnsignedBytes, std::uint8_t)
CAPIBARA_PACK(SignedByUnsigned, std::int8_t)
CAPIBARA_PACK(UnsignedBySigned, std::uint8_t)
#undef CAPIBARA_PACK

}  // namespace capibara::cpu
