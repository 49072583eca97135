// Vectors of one size, and blocks of them.
#pragma once

#include <cstdint>
#include <utility>

#include "backends/cpu/kernels/planes/code.h"

namespace capibara::cpu {

#define CAPIBARA_PLANE_INLINE static inline __attribute__((always_inline))

template <class T, int Bytes>
struct PlaneVectors {
  using Int = PlaneInt<T>;
  using Index = std::int64_t;
  static constexpr Index lanes = Bytes / static_cast<Index>(sizeof(T));
  typedef T V __attribute__((vector_size(Bytes)));
  typedef T Unaligned __attribute__((vector_size(Bytes), aligned(alignof(T)), may_alias));
  typedef Int M __attribute__((vector_size(Bytes)));
  typedef Int UnalignedInt __attribute__((vector_size(Bytes), aligned(alignof(T)), may_alias));
  using Lanes = std::make_integer_sequence<int, static_cast<int>(lanes)>;

  CAPIBARA_PLANE_INLINE V load(const T* from) { return *reinterpret_cast<const Unaligned*>(from); }
  CAPIBARA_PLANE_INLINE M load_int(const Int* from) { return *reinterpret_cast<const UnalignedInt*>(from); }
  CAPIBARA_PLANE_INLINE void store(T* to, V value) { *reinterpret_cast<Unaligned*>(to) = value; }
  CAPIBARA_PLANE_INLINE V all(T value) { return value - V{}; }

  template <int... I>
  CAPIBARA_PLANE_INLINE M from_on(Index first, std::integer_sequence<int, I...>) {
    return M{static_cast<Int>(I)...} >= M{} + static_cast<Int>(first);
  }

  // Blocks of eight vectors, then four, two and one: f.operator()<N>(i).
  template <class F>
  CAPIBARA_PLANE_INLINE void in_blocks(Index count, F f) {
    Index i = 0;
    for (; i + 7 * lanes < count; i += 8 * lanes) f.template operator()<8>(i);
    if (i + 3 * lanes < count) {
      f.template operator()<4>(i);
      i += 4 * lanes;
    }
    if (i + lanes < count) {
      f.template operator()<2>(i);
      i += 2 * lanes;
    }
    if (i < count) f.template operator()<1>(i);
  }
};

}  // namespace capibara::cpu
