// Options of the CPU compiler, by the names that scripts give XLA where they mean the same.
#pragma once

#include "compiler/optimise/pipeline.h"
#include "core/runtime/compiler_options.h"

namespace capibara::cpu {

// Raises RuntimeError for an option that the compiler does not know, or a value that it cannot have.
OptimiseOptions chosen_options(const CompilerOptions& options);

}  // namespace capibara::cpu
