// Byte matmuls for the first comparison with codes: 24 vectors of sums stay in registers.
#include <algorithm>
#include <cmath>

#if defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

#include "backends/cpu/kernels/quantization/vq_bytes.h"
#include "backends/cpu/kernels/quantization/vq_sums.h"

namespace capibara::cpu::vq {

// Before version 16, clang's header declares these instructions only if the whole file may use them.
#if defined(__aarch64__) && (!defined(__clang__) || __clang_major__ >= 16 || defined(__ARM_FEATURE_DOTPROD))

#if defined(__clang__)
#define CAPIBARA_WITH_DOT __attribute__((target("dotprod")))
#else
#define CAPIBARA_WITH_DOT __attribute__((target("arch=armv8.2-a+dotprod")))
#endif

bool has_byte_tile() { return getauxval(AT_HWCAP) & HWCAP_ASIMDDP; }

CAPIBARA_WITH_DOT void run_byte_tile(int64_t groups, const int8_t* rows, const int8_t* columns, const float* scales,
                                     float* c, int64_t c_step) {
  int32x4_t sums[byte_rows][3] = {};
  for (int64_t g = 0; g < groups; ++g, rows += byte_rows * byte_group, columns += byte_columns * byte_group) {
    const int8x16_t low = vld1q_s8(rows), high = vld1q_s8(rows + 16);
#pragma GCC unroll 3
    for (int v = 0; v < 3; ++v) {
      const int8x16_t codes = vld1q_s8(columns + 16 * v);
      sums[0][v] = vdotq_laneq_s32(sums[0][v], codes, low, 0);
      sums[1][v] = vdotq_laneq_s32(sums[1][v], codes, low, 1);
      sums[2][v] = vdotq_laneq_s32(sums[2][v], codes, low, 2);
      sums[3][v] = vdotq_laneq_s32(sums[3][v], codes, low, 3);
      sums[4][v] = vdotq_laneq_s32(sums[4][v], codes, high, 0);
      sums[5][v] = vdotq_laneq_s32(sums[5][v], codes, high, 1);
      sums[6][v] = vdotq_laneq_s32(sums[6][v], codes, high, 2);
      sums[7][v] = vdotq_laneq_s32(sums[7][v], codes, high, 3);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < byte_rows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < 3; ++v) vst1q_f32(c + r * c_step + 4 * v, vcvtq_f32_s32(sums[r][v]) * scales[r]);
  }
}

#else

bool has_byte_tile() { return false; }
void run_byte_tile(int64_t, const int8_t*, const int8_t*, const float*, float*, int64_t) {}

#endif

float largest_size(const float* from, int64_t count) {
  float most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, std::abs(from[i]));
  return most;
}

float round_to_bytes(const float* from, int64_t dim, float largest, int8_t* to) {
  const float scale = std::max(largest, 1e-30f) / 127, inverse = 1 / scale;
  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits.
  for (int64_t i = 0; i < dim; ++i) to[i] = static_cast<int8_t>(from[i] * inverse + 12582912.0f - 12582912.0f);
  return scale;
}

double byte_rounding_length(const float* exact, const int8_t* rounded, float scale, int64_t dim) {
  return std::sqrt(static_cast<double>(sum_of<float>(dim, [=](int64_t i) {
    const float lost = exact[i] - static_cast<float>(rounded[i]) * scale;
    return lost * lost;
  })));
}

}  // namespace capibara::cpu::vq
