// Block-sparse attention on NVIDIA GPUs: calls the kernels of dense attention, which skip the tiles that a pattern
// leaves out.
#ifndef __CUDACC__

#include "backends/cuda/attention/attention_claims.h"

namespace capibara::cuda {

Claims sparse_attention_claims() {
  return {{"sparse_attention", attention_claims::forward}, {"sparse_attention_grad", attention_claims::backward}};
}

}  // namespace capibara::cuda

#else

#include "backends/cuda/kernels.h"

namespace capibara::cuda {

Handlers sparse_attention_handlers() { return {nullptr, 0}; }  // those of flash_attention.cu

}  // namespace capibara::cuda

#endif
