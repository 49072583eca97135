// The configuration of a cuDNN attention call for XLA's compiler: one of XLA's messages, as JSON.
#pragma once

#include <capibara/dtype.h>

#include <string>

namespace capibara::pjrt {

// Operands and results are [batch, heads, length, head_dim].
struct CudnnAttention {
  int64_t batch, heads, queries, keys;
  DType dtype;
  double scale;
  bool causal;
  int64_t window;  // keys that a query attends to, itself included; 0: all
};

std::string cudnn_config(const CudnnAttention& call, bool backward);

}  // namespace capibara::pjrt
