// What programs write out and a fused operation does in one: found after tracing, so that programs print as they are.
#pragma once

#include "optimise/passes.h"

namespace capibara::kernels {

// Replaces attention and its reverse derivative by fused attention, where `claims` says that the backend has a kernel
// for that. Results are equal up to rounding. Programs without such a form are returned as they are.
Program fuse_attention(const Program& program, const passes::Keep& claims);
// Whether the program or one inside of it has what attention consists of; whether it has fused attention.
bool may_attend(const Program& program);
bool holds_fused_attention(const Program& program);

}  // namespace capibara::kernels
