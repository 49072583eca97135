// The AMX tiles as a type, so that tests can replace them by a model.
//
// Inline assembly rather than intrinsics: GCC's are macros that need the tile number as a literal. Compilers never
// allocate tiles themselves, and called functions do not preserve them.
#pragma once

#include "backends/cpu/kernels/gemm/amx/gemm_amx_block.h"

#if defined(__x86_64__)

namespace capibara::cpu {

struct AmxTiles {
#define CAPIBARA_AMX __attribute__((target("amx-tile,amx-bf16,amx-int8")))
  // All eight tiles of 16 rows of 64 bytes; for the calling thread, until release.
  CAPIBARA_AMX static void configure() {
    struct alignas(64) Configuration {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    };
    static_assert(sizeof(Configuration) == 64);
    static constexpr Configuration configuration;
    asm volatile("ldtilecfg %0" ::"m"(configuration));
  }
  CAPIBARA_AMX static void release() { asm volatile("tilerelease"); }

  template <int T>
  static CAPIBARA_AMX_INLINE void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(T));
  }
  template <int T>
  static CAPIBARA_AMX_INLINE void load(const void* from, int64_t row_step) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_step), "i"(T) : "memory");
  }
  // The same for data that is not reused soon: it evicts less from the L1 cache.
  template <int T>
  static CAPIBARA_AMX_INLINE void load_once(const void* from, int64_t row_step) {
    asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_step), "i"(T) : "memory");
  }
  template <int T>
  static CAPIBARA_AMX_INLINE void store(void* to, int64_t row_step) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row_step), "i"(T) : "memory");
  }
  // sum += left * right
  template <class K, int Sum, int Left, int Right>
  static CAPIBARA_AMX_INLINE void multiply() {
    if constexpr (sizeof(typename K::Packed) == 2) {
      asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sum), "i"(Left), "i"(Right));
    } else if constexpr (K::left_signed && K::right_signed) {
      asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sum), "i"(Left), "i"(Right));
    } else if constexpr (K::left_signed) {
      asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sum), "i"(Left), "i"(Right));
    } else if constexpr (K::right_signed) {
      asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sum), "i"(Left), "i"(Right));
    } else {
      asm volatile("tdpbuud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sum), "i"(Left), "i"(Right));
    }
  }
  template <class K, int R, int C>
  CAPIBARA_AMX static void run(const AmxBlock& block) {
    run_amx_block<AmxTiles, K, R, C>(block);
  }
#undef CAPIBARA_AMX
};

}  // namespace capibara::cpu

#endif
