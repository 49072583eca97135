// Parsed libtpu dumps of a compilation: the buffers of a device with their source lines, memory over the schedule,
// collectives and cycles.
#pragma once

#include <capibara/tpu/compiled.h>

#include <string>
#include <vector>

namespace capibara::tpu {

// Memory from the texts of buffer assignment, live ranges and the scheduled program; the last two may be empty.
CompiledMemory read_buffers(const std::string& assignment, const std::string& live_ranges, const std::string& program,
                            std::size_t most = 12);

// Collectives of a scheduled program, largest first.
std::vector<CompiledCollective> read_collectives(const std::string& program);

// Estimated cycles of a program, with loops counted once per iteration and conditionals as the mean of their branches.
// Collectives and kernels have no estimate.
CompiledCycles read_cycles(const std::string& program);

}  // namespace capibara::tpu
