// Writes the loops of a group: one function in loop form, with the variables that it reads and writes in memory.
#pragma once

#include <map>

#include "backends/cpu/fuse.h"
#include "backends/cpu/loops.h"

namespace capibara::cpu {

struct Region {
  Function function;
  std::vector<Var> parameters;  // one per parameter buffer
};

// Variables that lie in the memory of another one: a result where the operand that it replaces lay.
using Together = std::map<int32_t, int32_t>;

// One region for a group of loops; for pieces one per operand, to be run in this order. `in_place`: the first operand of
// a dynamic_update_slice already lies in the result's memory.
std::vector<Region> write_regions(const Program& program, const Fusion& fusion, const Group& group,
                                  const Together& together = {}, bool in_place = false);

}  // namespace capibara::cpu
