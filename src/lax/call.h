// Calls of programs.
#pragma once

#include "program/ir/build.h"

namespace capibara {

// Binds the jit primitive: runs the compiled program, or adds one equation while tracing.
Arrays call_program(const Program& program, std::span<const Array> inputs, const std::string& name);

}  // namespace capibara
