// Launches the kernels of attention, selected by type and head size.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "backends/cuda/attention/attention_boxes.h"

namespace capibara::cuda::attention {

enum class Element { bfloat16, half, single };

cudaError_t start_forward(const Problem& problem, Element element, cudaStream_t stream);
cudaError_t start_backward(const Problem& problem, Element element, cudaStream_t stream);

// Parts of the gradient.
cudaError_t start_key_gradients(const Problem& problem, Element element, cudaStream_t stream);
cudaError_t start_single_key_gradients(const Problem& problem, cudaStream_t stream);  // for float32
cudaError_t start_bias_gradients(const Problem& problem, Element element, cudaStream_t stream);

// Warpgroup kernels, if `takes_groups`. The backward pass includes the bias's gradients if it stores those of logits.
cudaError_t start_group_forward(const Problem& problem, Element element, cudaStream_t stream);
cudaError_t start_wide_forward(const Problem& problem, Element element, cudaStream_t stream);
cudaError_t start_group_backward(const Problem& problem, Element element, cudaStream_t stream);
cudaError_t start_group_sums(const Problem& problem, Element element, cudaStream_t stream);  // from stored gradients
cudaError_t start_group_bias(const Problem& problem, Element element, cudaStream_t stream);
cudaError_t start_mask_bits(const Problem& problem, cudaStream_t stream);  // before all others, if there is a mask

// True if warpgroups compute it: on Hopper, with 16-bit floats and heads of up to 128 elements; a block lists `tiles`
// of 64 rows.
inline bool takes_groups(const Problem& p, Element element, int64_t tiles) {
  static const int major = [] {
    int value = 0;
    return cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess ? value : 0;
  }();
  return major == 9 && element != Element::single && p.size <= 128 && p.value_size <= 128 && tiles <= 2048 &&
         (!p.mask || p.mask_bits);
}

// Launches a kernel with this much shared memory.
template <class Kernel>
cudaError_t start(Kernel kernel, dim3 grid, int threads, int bytes, const Problem& problem, cudaStream_t stream) {
  const cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  kernel<<<grid, threads, bytes, stream>>>(problem);
  return cudaGetLastError();
}

// The same for a warpgroup kernel, whose tiles of elements T are loaded in boxes.
template <class T, class Kernel>
cudaError_t start_group(Kernel kernel, dim3 grid, int threads, int bytes, const Problem& problem, cudaStream_t stream) {
  BoxSources sources{};
  if (!set_sources(sources, problem, std::is_same_v<T, __nv_bfloat16>)) return cudaErrorInvalidValue;
  const cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  kernel<<<grid, threads, bytes, stream>>>(problem, sources);
  return cudaGetLastError();
}

// Calls start(element type, head size in registers).
template <class F>
cudaError_t by_size(const Problem& p, Element element, F&& start) {
  const int size = p.size > p.value_size ? p.size : p.value_size;
  auto with = [&](auto type) {
    if (size <= 64) return start(type, std::integral_constant<int, 64>());
    if (size <= 128) return start(type, std::integral_constant<int, 128>());
    return start(type, std::integral_constant<int, 256>());
  };
  if (element == Element::bfloat16) return with(__nv_bfloat16());
  return element == Element::half ? with(__half()) : with(float());
}

template <class F>
cudaError_t by_group_size(const Problem& p, Element element, F&& start) {
  auto with = [&](auto type) {
    if (p.size <= 64 && p.value_size <= 64) return start(type, std::integral_constant<int, 64>());
    return start(type, std::integral_constant<int, 128>());
  };
  return element == Element::bfloat16 ? with(__nv_bfloat16()) : with(__half());
}

}  // namespace capibara::cuda::attention
