// Attention on NVIDIA GPUs: equations that cuDNN computes become the custom calls that XLA's own compiler uses for it.
#pragma once

#include <capibara/program.h>

#include <functional>

#include "backends/pjrt/client.h"

namespace capibara::pjrt {

// The compute capability of the GPU (90: Hopper) if programs of the plugin may call cuDNN 9; 0 if the plugin is not
// CUDA's, the library cannot be opened, or CAPIBARA_CUDNN is `off`.
int64_t cudnn_capability(const Client& client);

// Replaces flash_attention and its gradient where cuDNN covers them: 16-bit floats; head dimensions that are multiples
// of 8, up to 128, or 256 for the forward pass on Hopper; causal or not, with a window before the query, or with a bias
// whose gradient is unused; grouped heads. `capability` is called only if there is such an equation.
Program call_cudnn(const Program& program, const std::function<int64_t()>& capability);

}  // namespace capibara::pjrt
