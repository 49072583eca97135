// Asks the processor for its vector instructions, and the environment how many of them may be used.
#include "runtime/processor.h"

#include <capibara/error.h>

#include <cstdlib>
#include <string_view>
#include <utility>

namespace capibara {

namespace {

CpuLevel detected_level() {
#if defined(__x86_64__)
  // The builtin asks CPUID, and XGETBV whether the kernel saves the wide registers.
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return CpuLevel::baseline;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return CpuLevel::avx2;
  }
  return __builtin_cpu_supports("avx512vnni") ? CpuLevel::vnni : CpuLevel::avx512;
#else
  return CpuLevel::baseline;
#endif
}

CpuLevel allowed_level() {
  constexpr std::pair<std::string_view, CpuLevel> names[] = {{"baseline", CpuLevel::baseline},
                                                             {"avx2", CpuLevel::avx2},
                                                             {"avx512", CpuLevel::avx512},
                                                             {"vnni", CpuLevel::vnni}};
  const char* text = std::getenv("CAPIBARA_CPU_LEVEL");
  if (!text || !*text) return CpuLevel::vnni;
  for (const auto& [name, level] : names) {
    if (name == text) return level;
  }
  throw ValueError(concat("CAPIBARA_CPU_LEVEL: expected baseline, avx2, avx512 or vnni, got '", text, "'"));
}

}  // namespace

CpuLevel cpu_level() {
  static const CpuLevel level = [] {
    const CpuLevel detected = detected_level(), allowed = allowed_level();
    return detected < allowed ? detected : allowed;
  }();
  return level;
}

}  // namespace capibara
