// Detects the processor's vector instructions, and reads from the environment how many of them may be used.
#include "core/runtime/processor.h"

#include <capibara/error.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace capibara {

namespace {

#if defined(__x86_64__)
// AMX-BF16, AMX-TILE and AMX-INT8, and a kernel that saves tiles.
bool detects_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned tiles = 1u << 22 | 1u << 24 | 1u << 25, saved = 1u << 17 | 1u << 18, osxsave = 1u << 27;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & osxsave)) return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & tiles) != tiles) return false;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & saved) == saved;
}
#endif

CpuLevel detected_level() {
#if defined(__x86_64__)
  // The builtin checks CPUID, and with XGETBV that the kernel saves the wide registers.
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return CpuLevel::baseline;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return CpuLevel::avx2;
  }
  if (!__builtin_cpu_supports("avx512vnni")) return CpuLevel::avx512;
  return detects_amx() ? CpuLevel::amx : CpuLevel::vnni;
#else
  return CpuLevel::baseline;
#endif
}

CpuLevel allowed_level() {
  constexpr std::pair<std::string_view, CpuLevel> names[] = {{"baseline", CpuLevel::baseline},
                                                             {"avx2", CpuLevel::avx2},
                                                             {"avx512", CpuLevel::avx512},
                                                             {"vnni", CpuLevel::vnni},
                                                             {"amx", CpuLevel::amx}};
  const char* text = std::getenv("CAPIBARA_CPU_LEVEL");
  if (!text || !*text) return CpuLevel::amx;
  for (const auto& [name, level] : names) {
    if (name == text) return level;
  }
  throw ValueError(concat("CAPIBARA_CPU_LEVEL: expected baseline, avx2, avx512, vnni or amx, got '", text, "'"));
}

}  // namespace

CpuLevel cpu_level() {
  static const CpuLevel level = [] {
    const CpuLevel detected = detected_level(), allowed = allowed_level();
    return detected < allowed ? detected : allowed;
  }();
  return level;
}

bool has_amx() {
#if defined(__x86_64__)
  // The tile state is large, so Linux enables it only on request: arch_prctl(ARCH_REQ_XCOMP_PERM,
  // XFEATURE_XTILEDATA), for all threads of the process.
  static const bool permitted = cpu_level() >= CpuLevel::amx && syscall(SYS_arch_prctl, 0x1023, 18) == 0;
  return permitted;
#else
  return false;
#endif
}

}  // namespace capibara
