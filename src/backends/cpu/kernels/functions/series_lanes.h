// Functions that iterate until convergence, over the vectors of a block.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "backends/cpu/kernels/functions/code.h"
#include "backends/cpu/kernels/functions/pack_operations.h"
#include "lax/math/threefry.h"

// Draws from threefry keys, one key in each lane.

namespace capibara::cpu {

// 32-bit words, one for each lane of a vector of wider numbers.
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

  // Key `index` of a split.
  static Keys split(const Keys& key, std::uint32_t index) {
    return math::threefry2x32<Words>(key, {words(0), words(index)});
  }

  // Uniform in [0, 1).
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
      // Doubles have enough digits.
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

// Gamma variates of threefry keys: rejection by Marsaglia and Tsang, one element in each lane.
//
// The elements of a block whose draws were rejected are compacted and drawn again in whole vectors. Each element has
// its own key, so that neither its neighbours nor the number of threads affect it.

template <class T, int Bytes>
struct GammaLanes : RandomLanes<T, Bytes> {
  using Draws = RandomLanes<T, Bytes>;
  using Draws::lanes;
  using Draws::normal;
  using Draws::number;
  using Draws::power;
  using Draws::split;
  using Draws::uniform;
  using Draws::words;
  using typename Draws::Keys;
  using typename Draws::P;
  using typename Draws::Words;
  template <class V, class E>
  static V read(const E* from) {
    return Draws::template read<V>(from);
  }

  // State of the elements without an accepted draw; compacted as others finish.
  struct Pending {
    alignas(64) std::uint32_t key[2][gamma_block + 16];
    alignas(64) T d[gamma_block + 16], c[gamma_block + 16];
    int index[gamma_block + 16];
  };

  static Keys element_keys(const GammaBlock<T>& block, int64_t at) {
    alignas(64) std::uint32_t high[lanes], low[lanes];
    for (int lane = 0; lane < lanes; ++lane) {
      const std::uint64_t counter = block.first + static_cast<std::uint64_t>(at + lane);
      high[lane] = static_cast<std::uint32_t>(counter >> 32);
      low[lane] = static_cast<std::uint32_t>(counter);
    }
    return math::threefry2x32<Words>({words(block.key[0]), words(block.key[1])}, {read<Words>(high), read<Words>(low)});
  }

  // One proposal for each lane: the next key, the cube, and whether it is rejected.
  struct Proposal {
    Keys key;
    P cube;
    math::Condition<P> rejected;
  };
  static Proposal propose(const Keys& key, P d, P c) {
    const P zero = number(0), one = number(1);
    Keys normal_key = split(key, 1);
    P x = zero, v = -one;
    for (auto here = math::le(v, zero); math::Operations<P>::any(here); here = math::le(v, zero)) {
      const P drawn = normal(split(normal_key, 1));
      normal_key = split(normal_key, 0);
      x = math::select(here, drawn, x);
      v = math::select(here, math::multiply_add(x, c, one), v);
    }
    const P square = x * x, cube = v * v * v, u = uniform(split(key, 2));
    const P bound = math::multiply_add(square, number(0.5), d * ((one - cube) + math::log(cube)));
    auto rejected = logical_and(math::ge(u, one - number(0.0331) * (square * square)), math::ge(math::log(u), bound));
    return {split(key, 0), cube, rejected};
  }

  static inline void run(const GammaBlock<T>& block) {
    const P one = number(1), third = number(1.0 / 3.0);
    const int64_t padded = (block.count + lanes - 1) / lanes * lanes;
    alignas(64) T a[gamma_block + 16], cubes[gamma_block + 16], ds[gamma_block + 16];
    std::copy_n(block.a, block.count, a);
    std::fill(a + block.count, a + padded, T(1));
    Pending pending;
    for (int64_t i = 0; i < padded; i += lanes) {
      const P alpha = read<P>(a + i);
      const P d = math::select(math::ge(alpha, one), alpha, alpha + one) - third, c = third / math::sqrt(d);
      const Keys key = split(element_keys(block, i), 0);
      std::memcpy(pending.key[0] + i, &key[0], sizeof key[0]);
      std::memcpy(pending.key[1] + i, &key[1], sizeof key[1]);
      std::memcpy(pending.d + i, &d, sizeof d);
      std::memcpy(pending.c + i, &c, sizeof c);
      std::memcpy(ds + i, &d, sizeof d);
      for (int lane = 0; lane < lanes; ++lane) pending.index[i + lane] = static_cast<int>(i + lane);
    }
    for (int64_t left = block.count; left > 0;) {
      int64_t kept = 0;
      for (int64_t i = 0; i < left; i += lanes) {
        const Keys key = {read<Words>(pending.key[0] + i), read<Words>(pending.key[1] + i)};
        const Proposal next = propose(key, read<P>(pending.d + i), read<P>(pending.c + i));
        alignas(64) T cube[lanes];
        alignas(64) std::uint32_t keys[2][lanes];
        std::memcpy(cube, &next.cube, sizeof cube);
        std::memcpy(keys, &next.key, sizeof keys);
        for (int lane = 0; lane < std::min<int64_t>(lanes, left - i); ++lane) {
          const int64_t from = i + lane;
          if (!next.rejected.bits[lane]) {
            cubes[pending.index[from]] = cube[lane];
            continue;
          }
          pending.key[0][kept] = keys[0][lane];
          pending.key[1][kept] = keys[1][lane];
          pending.d[kept] = pending.d[from];
          pending.c[kept] = pending.c[from];
          pending.index[kept++] = pending.index[from];
        }
      }
      // Lanes past the last element repeat it: their draws are dropped.
      for (int64_t i = kept; kept > 0 && i < (kept + lanes - 1) / lanes * lanes; ++i) {
        for (auto& half : pending.key) half[i] = half[kept - 1];
        pending.d[i] = pending.d[kept - 1];
        pending.c[i] = pending.c[kept - 1];
      }
      left = kept;
    }
    std::fill(cubes + block.count, cubes + padded, T(1));
    for (int64_t i = 0; i < padded; i += lanes) {
      // Infinite parameters have no proposals.
      const P alpha = read<P>(a + i), d = read<P>(ds + i),
              cube = math::select(math::is_finite(d), read<P>(cubes + i), one);
      P result = block.log_space ? math::log(d) + math::log(cube) : d * cube;
      const auto boosted = logical_not(math::ge(alpha, one));
      result = math::rarely(boosted, result, [&] {
        const P draw = uniform(split(element_keys(block, i), 1));
        if (!block.log_space) return result * power(one - draw, one / alpha);
        const P logarithm = math::log1p(-draw);
        return result + math::select(math::eq(logarithm, number(0)), number(0), logarithm * (one / alpha));
      });
      alignas(64) T values[lanes];
      std::memcpy(values, &result, sizeof values);
      std::copy_n(values, std::min<int64_t>(lanes, block.count - i), block.out + i);
    }
  }
};

template <class Formula, class T, int Bytes>
__attribute__((flatten)) void compute_series(const T* const* in, T* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += Bytes / static_cast<std::int64_t>(sizeof(T))) {
    Pack<T, Bytes> x[Formula::operands], result;
    for (int k = 0; k < Formula::operands; ++k) std::memcpy(&x[k], in[k] + i, Bytes);
    if constexpr (Formula::operands == 2)
      result = typename Formula::Function{}(x[0], x[1]);
    else
      result = typename Formula::Function{}(x[0], x[1], x[2]);
    std::memcpy(out + i, &result, Bytes);
  }
}

template <class T, int Bytes>
__attribute__((flatten)) void draw_gamma(const GammaBlock<T>& block) {
  GammaLanes<T, Bytes>::run(block);
}

template <class T, int Bytes>
FunctionCode<T> code_of() {
  return std::apply(
      [](const auto&... formula) {
        static_assert(sizeof...(formula) == series_count);
        return FunctionCode<T>{{compute_series<std::remove_cvref_t<decltype(formula)>, T, Bytes>...},
                               draw_gamma<T, Bytes>};
      },
      math::iterative_formulas);
}

}  // namespace capibara::cpu
