// The counter-based bits of dropout: threefry of a key of each head, of the query and of the key.
#pragma once

#include "backends/cuda/attention_problem.h"
#include "backends/cuda/threefry.h"

namespace capibara::cuda::attention {

__device__ inline uint2 dropout_key(const Problem& p, int batch, int head) {
  constexpr uint32_t stream = 0x61747464;  // kernels::dropout_stream
  if (p.threshold == 0) return {0, 0};
  const uint32_t* own = p.dropout_keys + batch / p.dropout_share * 2;
  return threefry({own[0], own[1]}, static_cast<uint32_t>(batch % p.dropout_share * p.heads + head), stream);
}

}  // namespace capibara::cuda::attention
