// Emits the loops of a group: functions in loop form, with the variables that they read and write in memory.
#pragma once

#include <map>

#include "backends/cpu/groups/fuse.h"
#include "backends/cpu/loops/loops.h"

namespace capibara::cpu {

struct Region {
  Function function;
  // One per parameter buffer; a dropped one is memory that only the regions of the group use.
  std::vector<Var> parameters;
  int64_t temporary_bytes = 0;  // of that memory
};

// Variables that alias another one: a result reuses the memory of the operand that it replaces.
using Aliases = std::map<int32_t, int32_t>;

// The regions of a group of loops, to be run in this order; for pieces one per operand. `in_place`: the first operand
// of a dynamic_update_slice is already in the result's memory.
std::vector<Region> write_regions(const Program& program, const Fusion& fusion, const Group& group,
                                  const Aliases& aliases = {}, bool in_place = false);

}  // namespace capibara::cpu
