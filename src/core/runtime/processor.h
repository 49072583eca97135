// The vector instructions of x86_64 that kernels and generated code use: those of the processor, or fewer on request.
#pragma once

namespace capibara {

// Each includes those before it; CAPIBARA_CPU_LEVEL names the highest that may be used.
enum class CpuLevel { baseline, avx2, avx512, vnni, amx };

// What the processor has, lowered to CAPIBARA_CPU_LEVEL (baseline, avx2, avx512, vnni, amx). Raises ValueError for
// other names.
CpuLevel cpu_level();

inline bool has_avx2() { return cpu_level() >= CpuLevel::avx2; }      // with FMA
inline bool has_avx512() { return cpu_level() >= CpuLevel::avx512; }  // F, BW, DQ and VL
inline bool has_vnni() { return cpu_level() >= CpuLevel::vnni; }
// Tiles of bfloat16 and of bytes, and the kernel's permission to use them, which the first call requests.
bool has_amx();

}  // namespace capibara
