// What programs write out and a fused operation does in one: found after tracing, so that programs print as they are.
#pragma once

#include "compiler/optimise/passes.h"

namespace capibara::kernels {

// What becomes of NaN, infinities and overflow: they are where the program has them, which is looked at in each call;
// or where the kernels have them, which leave out keys that no query of a block sees.
enum class Special { as_written, as_fused };

// Replaces attention and its reverse derivative by fused attention, where `claims` says that the backend has a kernel
// for that. Results are equal up to rounding. Programs without such a form are returned as they are.
Program fuse_attention(const Program& program, const passes::Keep& claims, Special special = Special::as_written);
// Whether the program or one inside of it has what attention consists of; whether it has fused attention.
bool may_attend(const Program& program);
bool holds_fused_attention(const Program& program);

}  // namespace capibara::kernels
