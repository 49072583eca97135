// Block-sparse attention on the CPU: the kernels of dense attention, which skip the blocks that a pattern leaves out.
#include "backends/cpu/kernels/attention/kernel.h"

namespace capibara::cpu {

KernelMakers sparse_attention_makers() {
  return {{"sparse_attention", attention::make_forward}, {"sparse_attention_grad", attention::make_backward}};
}

}  // namespace capibara::cpu
