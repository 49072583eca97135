// Staging: a function run on tracers becomes a program.
#pragma once

#include "program/ir/build.h"

namespace capibara {

// Raises RuntimeError while jax_no_tracing forbids tracing a user's function.
void require_tracing_allowed(const std::string& name);
Staged stage(const FlatFunction& function, std::span<const ArrayType> types, const std::string& name);
// The same program with its constants captured as well, in order of first use: it closes over nothing.
Staged opened(const Staged& staged);
// Stages the bodies of loops, branches and custom rules.
Staged stage_open(const FlatFunction& function, std::span<const ArrayType> types, const std::string& name);

}  // namespace capibara
