// Attention that programs write out, on NVIDIA GPUs: fused, where cuDNN computes all of it.
#pragma once

#include <capibara/program.h>

#include <functional>

namespace capibara::pjrt {

// The program with calls of cuDNN in place of attention that it writes out, and of its reverse derivative; the program
// itself where there is none, or where some of it would be left to the composition. `capability` is as for call_cudnn.
Program call_cudnn_for_plain(const Program& program, const std::function<int64_t()>& capability);

}  // namespace capibara::pjrt
