// What programs write out and a fused operation does in one: found after tracing, so that programs print as they are.
#pragma once

#include "optimise/passes.h"

namespace capibara::kernels {

// Replaces attention and its reverse derivative by fused attention, where `claims` says that the backend has a kernel
// for that. Results are equal up to rounding. Programs without such a form are returned as they are.
Program fuse_attention(const Program& program, const passes::Keep& claims);

}  // namespace capibara::kernels
