// A model of AMX tiles in plain C++, after Intel's description of the instructions, for processors without AMX.
#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

#include "backends/cpu/kernels/gemm/amx/gemm_amx_block.h"

#if defined(__x86_64__)

namespace capibara::cpu {

struct AmxModel {
  struct State {
    bool configured = false;
    alignas(64) std::uint8_t tiles[8][16][64] = {};
  };
  static State& state() {
    static thread_local State state;
    return state;
  }
  // Instructions on tiles that are not configured fault.
  static inline std::atomic<int> faults = 0;
  static State& configured_state() {
    if (!state().configured) ++faults;
    return state();
  }

  static void configure() {
    if (state().configured) ++faults;  // the processor allows it, but it clears the caller's tiles
    state() = State{true};
  }
  static void release() { state() = State{}; }

  template <int T>
  static void zero() {
    std::memset(configured_state().tiles[T], 0, 1024);
  }
  template <int T>
  static void load(const void* from, int64_t row_step) {
    for (int r = 0; r < 16; ++r)
      std::memcpy(configured_state().tiles[T][r], static_cast<const char*>(from) + r * row_step, 64);
  }
  template <int T>
  static void load_once(const void* from, int64_t row_step) {
    load<T>(from, row_step);
  }
  template <int T>
  static void store(void* to, int64_t row_step) {
    for (int r = 0; r < 16; ++r) std::memcpy(static_cast<char*>(to) + r * row_step, configured_state().tiles[T][r], 64);
  }

  static float flushed(float value) {
    return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
  }
  static float bfloat16(const std::uint8_t* from) {
    std::uint16_t bits;
    std::memcpy(&bits, from, 2);
    return flushed(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
  }

  template <class K, int Sum, int Left, int Right>
  static void multiply() {
    State& own = configured_state();
    for (int m = 0; m < 16; ++m) {
      for (int n = 0; n < 16; ++n) {
        std::uint8_t* place = own.tiles[Sum][m] + 4 * n;
        if constexpr (sizeof(typename K::Packed) == 2) {
          // Even and odd k accumulate separately, with fused multiply-adds, and are added to the sum at the end.
          float even = 0, odd = 0, sum;
          for (int k = 0; k < 16; ++k) {
            const std::uint8_t *a = own.tiles[Left][m] + 4 * k, *b = own.tiles[Right][k] + 4 * n;
            even = flushed(std::fma(bfloat16(a), bfloat16(b), even));
            odd = flushed(std::fma(bfloat16(a + 2), bfloat16(b + 2), odd));
          }
          std::memcpy(&sum, place, 4);
          sum = flushed(flushed(sum) + flushed(even + odd));
          std::memcpy(place, &sum, 4);
        } else {
          auto value = [](std::uint8_t byte, bool is_signed) {
            return is_signed ? static_cast<int>(static_cast<std::int8_t>(byte)) : static_cast<int>(byte);
          };
          std::uint32_t sum;
          std::memcpy(&sum, place, 4);
          for (int k = 0; k < 64; ++k) {
            sum += static_cast<std::uint32_t>(value(own.tiles[Left][m][k], K::left_signed) *
                                              value(own.tiles[Right][k / 4][4 * n + k % 4], K::right_signed));
          }
          std::memcpy(place, &sum, 4);
        }
      }
    }
  }
  template <class K, int R, int C>
  static void run(const AmxBlock& block) {
    run_amx_block<AmxModel, K, R, C>(block);
  }
};

}  // namespace capibara::cpu

#endif
