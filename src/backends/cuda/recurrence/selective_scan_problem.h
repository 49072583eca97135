// What the kernels of the selective scan read and write.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "backends/cuda/recurrence/selective_scan_split.h"

namespace capibara::cuda {

struct ScanSizes {
  int64_t batch;
  int length, dim, states, chunk, chunks, segments, segment_chunks;
  bool has_softplus;
};

template <class T>
struct ScanInputs {
  const T *u, *delta, *B, *C, *z;
  const float *A, *D, *bias, *initial;
  const uint8_t* reset;
};

// What the backward kernels read besides, and what they write.
template <class T>
struct ScanGradients {
  const T* dy;
  const float *dlast, *starts;
  T *du, *ddelta, *dB, *dC, *dz;
  float *dA, *dD, *dbias, *dinitial;
  float* ends;     // what segments add to slopes
  float* partial;  // [batch][segments][dA, dD, dbias]; where there is one segment, its sums are the results
  float* sums;     // [batch][blocks][length][2][width]
};

cudaError_t start_scan_backward(const ScanInputs<float>& in, const ScanSizes& s, const ScanGradients<float>& out,
                                cudaStream_t stream);
cudaError_t start_scan_backward(const ScanInputs<__nv_bfloat16>& in, const ScanSizes& s,
                                const ScanGradients<__nv_bfloat16>& out, cudaStream_t stream);

inline dim3 scan_grid(const ScanSplit& split, const ScanSizes& s, int segments) {
  return {static_cast<unsigned>(split.blocks_of(s.dim)), static_cast<unsigned>(s.batch),
          static_cast<unsigned>(segments)};
}

// Starts a kernel whose shared memory is a `Memory`.
template <class Memory, class Kernel, class... Args>
cudaError_t start_scan_kernel(Kernel* kernel, dim3 blocks, int threads, cudaStream_t stream, Args... args) {
  constexpr int bytes = static_cast<int>(sizeof(Memory));
  const cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  kernel<<<blocks, threads, bytes, stream>>>(args...);
  return cudaGetLastError();
}

}  // namespace capibara::cuda
