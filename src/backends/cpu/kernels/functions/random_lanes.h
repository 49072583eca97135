// Draws from threefry keys, one key in each lane.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "backends/cpu/kernels/functions/pack_operations.h"
#include "lax/math/threefry.h"

namespace capibara::cpu {

// Words of 32 bits, one for each lane of a vector of other numbers.
template <int Count>
struct WordPack {
  typedef std::uint32_t W __attribute__((vector_size(4 * Count)));
  W w;

  friend WordPack operator+(WordPack a, WordPack b) { return {a.w + b.w}; }
  friend WordPack operator^(WordPack a, WordPack b) { return {a.w ^ b.w}; }
};

}  // namespace capibara::cpu

namespace capibara::math {

template <int Count>
struct BitOperations<cpu::WordPack<Count>> {
  using Words = cpu::WordPack<Count>;
  static Words constant(std::uint32_t value, const Words&) { return {typename Words::W{} + value}; }
  static Words rotate_left(Words x, int amount) { return {(x.w << amount) | (x.w >> (32 - amount))}; }
};

}  // namespace capibara::math

namespace capibara::cpu {

template <class T, int Bytes>
struct RandomLanes {
  static constexpr int lanes = Bytes / static_cast<int>(sizeof(T));
  using P = Pack<T, Bytes>;
  using Words = WordPack<lanes>;
  using Keys = std::array<Words, 2>;
  using Uint = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

  static Words words(std::uint32_t value) { return {typename Words::W{} + value}; }
  static P number(double value) { return math::constant(value, P{}); }
  template <class V, class E>
  static V read(const E* from) {
    V value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }

  // The key number `index` of a split.
  static Keys split(const Keys& key, std::uint32_t index) {
    return math::threefry2x32<Words>(key, {words(0), words(index)});
  }

  // In [0, 1).
  static P uniform(const Keys& key) {
    const Keys drawn = split(key, 0);
    constexpr int digits = std::numeric_limits<T>::digits - 1, width = 8 * static_cast<int>(sizeof(T));
    alignas(64) std::uint32_t high[lanes], low[lanes];
    alignas(64) Uint bits[lanes];
    std::memcpy(high, &drawn[0], sizeof high);
    std::memcpy(low, &drawn[1], sizeof low);
    for (int lane = 0; lane < lanes; ++lane) {
      Uint word = high[lane] ^ low[lane];
      if constexpr (sizeof(T) == 8) word = std::uint64_t{high[lane]} << 32 | low[lane];
      bits[lane] = (word >> (width - digits)) | std::bit_cast<Uint>(T(1));
    }
    return read<P>(bits) - number(1);
  }

  static P normal(const Keys& key) {
    const T least = std::nextafter(T(-1), T(0));
    const P low = number(least), u = math::multiply_add(uniform(key), number(T(1) - least), low);
    return number(1.4142135623730951) * math::erf_inv(math::select(math::lt(u, low), low, u));
  }

  static P power(P base, P exponent) {
    if constexpr (sizeof(T) == 8) {
      return math::pow(base, exponent);
    } else {
      // Doubles have digits enough.
      alignas(64) T bases[lanes], exponents[lanes];
      alignas(64) double wide[2][lanes], result[lanes];
      std::memcpy(bases, &base, sizeof bases);
      std::memcpy(exponents, &exponent, sizeof exponents);
      for (int lane = 0; lane < lanes; ++lane) {
        wide[0][lane] = static_cast<double>(bases[lane]);
        wide[1][lane] = static_cast<double>(exponents[lane]);
      }
      using D = Pack<double, Bytes>;
      for (int half = 0; half < lanes; half += lanes / 2) {
        const D part = math::pow(read<D>(wide[0] + half), read<D>(wide[1] + half));
        std::memcpy(result + half, &part, sizeof part);
      }
      for (int lane = 0; lane < lanes; ++lane) bases[lane] = static_cast<T>(result[lane]);
      return read<P>(bases);
    }
  }
};

}  // namespace capibara::cpu
