// Jitted programs over arrays that span processes: each process computes the shards of its devices.
#pragma once

#include <span>

#include "backends/backend.h"

namespace capibara::detail {

// The program partitioned over the devices of its inputs. Null if all of them belong to this process, or if it cannot
// be partitioned: every process holds whole arrays and can compute all of it.
std::shared_ptr<Executable> divided_executable(const Program& program, std::span<const Array> inputs);

}  // namespace capibara::detail
