// Attention written out in programs, on NVIDIA GPUs: fused if cuDNN computes all of it.
#pragma once

#include <capibara/program.h>

#include <functional>

namespace capibara::pjrt {

// Replaces written-out attention and its reverse derivative by cuDNN calls; returns the program unchanged if there is
// none, or if some of it would be left to the composition. `capability` is as for call_cudnn.
Program call_cudnn_for_plain(const Program& program, const std::function<int64_t()>& capability);

}  // namespace capibara::pjrt
