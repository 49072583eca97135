// The processors that a function is compiled for, as attributes.
//
// FMA and VL belong to AVX-512 here, so that the compiler fuses a product with a sum in scalars and in vectors of every
// width alike. Otherwise loops that it vectorizes by 32 bytes round differently, and which loop runs depends on the
// addresses of the operands.
#pragma once

#define CAPIBARA_AVX512_NAMES "avx512f,avx512bw,avx512dq,avx512vl,fma"

#define CAPIBARA_AVX2 __attribute__((target("avx2,fma")))
#define CAPIBARA_AVX512 __attribute__((target(CAPIBARA_AVX512_NAMES)))
#define CAPIBARA_VNNI __attribute__((target(CAPIBARA_AVX512_NAMES ",avx512vnni")))
#define CAPIBARA_AVX512_BF16 __attribute__((target(CAPIBARA_AVX512_NAMES ",avx512bf16")))
