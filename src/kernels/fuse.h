// Finds fused operations that programs write out; runs after tracing, so that programs print as written.
#pragma once

#include "compiler/optimise/passes.h"

namespace capibara::kernels {

// The treatment of NaN, infinities and overflow: as in the program, which is checked in each call; or as in
// the kernels, which skip keys that no query of a block sees.
enum class Special { as_written, as_fused };

// Replaces attention and its reverse derivative by fused attention where, according to `claims`, the backend has a
// kernel for it. Results are equal up to rounding. Programs without attention are returned unchanged.
Program fuse_attention(const Program& program, const passes::Keep& claims, Special special = Special::as_written);
// True if the program or a nested one contains the parts of attention; true if it contains fused attention.
bool may_attend(const Program& program);
bool holds_fused_attention(const Program& program);

}  // namespace capibara::kernels
