// The inputs and outputs of the state space dual's kernels.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "backends/cuda/recurrence/ssd_split.h"

namespace capibara::cuda {

inline constexpr int ssd_threads = 256;

struct SsdSizes {
  int64_t batch;
  int length, heads, groups, states, chunks;
  bool has_softplus;
};

struct SsdInputs {
  const __nv_bfloat16 *x, *dt, *B, *C, *z;
  const float *A, *D, *bias, *initial;
  const uint8_t* reset;
};

struct SsdOutputs {
  __nv_bfloat16* y;
  float *last, *starts;
};

// Additional inputs of the backward kernels, and their outputs.
struct SsdGradients {
  const __nv_bfloat16* dy;
  const float *dlast, *starts;
  __nv_bfloat16 *dx, *ddt, *dB, *dC, *dz;
  float *dA, *dD, *dbias, *dinitial;
  __nv_bfloat16 *head_dB, *head_dC;  // [batch][length][heads][states]
};

cudaError_t start_ssd_forward(const SsdInputs& in, const SsdSizes& s, const SsdOutputs& out, cudaStream_t stream);
cudaError_t start_ssd_backward(const SsdInputs& in, const SsdSizes& s, const SsdGradients& out, cudaStream_t stream);

// Launches a kernel whose shared memory is a `Memory`: one block per head.
template <class Memory, class Kernel, class Outputs>
cudaError_t start_ssd_kernel(Kernel* kernel, const SsdInputs& in, const SsdSizes& s, const Outputs& out,
                             cudaStream_t stream) {
  constexpr int bytes = static_cast<int>(sizeof(Memory));
  const cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  kernel<<<dim3(static_cast<unsigned>(s.heads), static_cast<unsigned>(s.batch)), ssd_threads, bytes, stream>>>(in, s,
                                                                                                               out);
  return cudaGetLastError();
}

}  // namespace capibara::cuda
