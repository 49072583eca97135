// Jitted programs over arrays that span processes: each process computes the parts of its devices.
#pragma once

#include <span>

#include "backends/backend.h"

namespace capibara::detail {

// The program divided among the devices that its inputs are placed on. Null where all of them are of this process, or
// where it cannot be divided: every process holds arrays whole and can compute all of it.
std::shared_ptr<Executable> divided_executable(const Program& program, std::span<const Array> inputs);

}  // namespace capibara::detail
