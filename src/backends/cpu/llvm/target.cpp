// Features of the host, as reported by the kernel and the processor; the processor's name is not used.
//
// A name may imply features that a machine lacks: if the kernel or a virtual machine hides SVE, code for "neoverse-v1"
// traps. So the name is that of the bare architecture, and every extension that code may use is listed.
#include "backends/cpu/llvm/target.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace capibara::cpu {

#if defined(__aarch64__) && defined(__linux__)

Target host_target() {
  struct Feature {
    unsigned long bit;
    const char* name;
  };
  // arch/arm64/include/uapi/asm/hwcap.h of Linux
  constexpr Feature first_word[] = {
      {HWCAP_ASIMD, "+neon"},       {HWCAP_CRC32, "+crc"},    {HWCAP_ATOMICS, "+lse"},
      {HWCAP_ASIMDHP, "+fullfp16"}, {HWCAP_ASIMDRDM, "+rdm"}, {HWCAP_JSCVT, "+jsconv"},
      {HWCAP_FCMA, "+complxnum"},   {HWCAP_LRCPC, "+rcpc"},   {HWCAP_ASIMDDP, "+dotprod"},
      {HWCAP_ASIMDFHM, "+fp16fml"},
  };
  constexpr Feature second_word[] = {{HWCAP2_I8MM, "+i8mm"}, {HWCAP2_BF16, "+bf16"}, {HWCAP2_FRINT, "+fptoint"}};
  Target target;
  target.triple = "aarch64-unknown-linux-gnu";
  target.cpu = "generic";
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  for (const Feature& feature : first_word) {
    if (first & feature.bit) target.features.push_back(feature.name);
  }
  for (const Feature& feature : second_word) {
    if (second & feature.bit) target.features.push_back(feature.name);
  }
  target.features.push_back("-sve");
  target.features.push_back("-sve2");
  target.vector_bytes = 16;
  return target;
}

#elif defined(__x86_64__)

Target host_target() {
  Target target;
  target.triple = "x86_64-unknown-linux-gnu";
  target.cpu = "x86-64";
  // The builtin queries CPUID, and XGETBV for whether the kernel saves the wide registers.
#define CAPIBARA_FEATURE(name) \
  if (__builtin_cpu_supports(name)) target.features.push_back("+" name)
  __builtin_cpu_init();
  CAPIBARA_FEATURE("sse3");
  CAPIBARA_FEATURE("ssse3");
  CAPIBARA_FEATURE("sse4.1");
  CAPIBARA_FEATURE("sse4.2");
  CAPIBARA_FEATURE("popcnt");
  CAPIBARA_FEATURE("avx");
  CAPIBARA_FEATURE("avx2");
  CAPIBARA_FEATURE("fma");
#if !defined(__clang__) || __clang_major__ >= 19
  CAPIBARA_FEATURE("f16c");
#endif
  CAPIBARA_FEATURE("bmi");
  CAPIBARA_FEATURE("bmi2");
#if !defined(__clang__) || __clang_major__ >= 19
  CAPIBARA_FEATURE("lzcnt");
#endif
  CAPIBARA_FEATURE("avx512f");
  CAPIBARA_FEATURE("avx512cd");
  CAPIBARA_FEATURE("avx512bw");
  CAPIBARA_FEATURE("avx512dq");
  CAPIBARA_FEATURE("avx512vl");
  CAPIBARA_FEATURE("avx512vnni");
  CAPIBARA_FEATURE("avx512bf16");
#undef CAPIBARA_FEATURE
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  target.vector_bytes = wide ? 64 : __builtin_cpu_supports("avx2") ? 32 : 16;
  return target;
}

#else
#error "capibara: the native compiler supports aarch64 (Linux) and x86_64; build with CAPIBARA_CPU=OFF"
#endif

}  // namespace capibara::cpu
