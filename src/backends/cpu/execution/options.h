// Options of the CPU compiler, named as in XLA if they mean the same.
#pragma once

#include "compiler/optimise/pipeline.h"
#include "core/runtime/compiler_options.h"

namespace capibara::cpu {

// Raises RuntimeError for an unknown option or an invalid value.
OptimiseOptions chosen_options(const CompilerOptions& options);

}  // namespace capibara::cpu
