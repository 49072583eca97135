// What a program costs: memory, as its backend planned it, and operations counted from its equations.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace capibara {

class Program;
struct NamedSharding;

// In bytes, for one device.
struct MemoryUse {
  int64_t generated_code = 0, argument = 0, output = 0, alias = 0, temp = 0, peak = 0;
  int64_t host_generated_code = 0, host_argument = 0, host_output = 0, host_alias = 0, host_temp = 0;
};

// The body of a scan counts as often as it runs; that of a while loop once, since its trip count is unknown.
struct ProgramCost {
  double flops = 0;            // additions, products, comparisons
  double transcendentals = 0;  // exp, log, tanh and the like
  double bytes_accessed = 0;   // operands and results of every operation, as if each were run alone
};
// Counts the operations and the bytes accessed by a program.
ProgramCost count_cost(const Program& program);

// Details of one compiled variant of a program, for fixed placements of its inputs.
struct ExecutableDetails {
  std::optional<MemoryUse> memory;                            // nothing where the backend does not know
  std::vector<std::shared_ptr<const NamedSharding>> outputs;  // empty: on the one device
};

}  // namespace capibara
