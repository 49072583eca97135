// Block-sparse attention on the CPU: the dense kernels, which skip the blocks that the pattern leaves out.
#include "backends/cpu/kernels/attention/kernel.h"

namespace capibara::cpu {

KernelMakers sparse_attention_makers() {
  return {{"sparse_attention", attention::make_forward}, {"sparse_attention_grad", attention::make_backward}};
}

}  // namespace capibara::cpu
