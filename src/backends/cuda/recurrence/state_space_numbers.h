// Scalar functions shared by the kernels of state space models.
#pragma once

#include <cuda_runtime.h>

namespace capibara::cuda {
namespace {

constexpr float log2_e = 1.4426950408889634f;

inline __device__ float exp2_fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
inline __device__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + exp2_fast(-x * log2_e)); }
// max(x, 0) + log(1 + e) with e = exp(-|x|), computed as 2 artanh(e / (2 + e)): accurate for small e too.
inline __device__ float softplus(float x) {
  const float e = exp2_fast(-fabsf(x) * log2_e), s = __fdividef(e, 2.0f + e), q = s * s;
  float sum = 2.0f / 13;
  sum = sum * q + 2.0f / 11;
  sum = sum * q + 2.0f / 9;
  sum = sum * q + 2.0f / 7;
  sum = sum * q + 2.0f / 5;
  sum = sum * q + 2.0f / 3;
  sum = sum * q + 2.0f;
  return fmaxf(x, 0.0f) + s * sum;
}

}  // namespace
}  // namespace capibara::cuda
