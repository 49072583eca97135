// Partitions a program into groups: loop nests that compute several equations at once, calls, copies and control flow.
#pragma once

#include <capibara/primitive.h>

#include "backends/cpu/groups/work.h"

namespace capibara::cpu {

struct Group {
  Work work = Work::loops;
  std::vector<int> results;  // equations whose outputs are stored, ascending
  Shape space;               // of the loops
  // One per dimension of the space: true for loops over rows; the other dimensions are iterated once per stage within
  // them. Empty: no rows, every result has the shape of the space.
  std::vector<bool> row;
  std::vector<int> row_values;  // equations computed once per row, ascending; some are stored as well
  std::vector<int> kept;        // equations computed once per position for several readers, not stored
  std::vector<int> columns;     // results that sum over rows, accumulated as the rows are computed
  std::vector<bool> summed;     // the dimensions that those sum over, a subset of `row`
  bool transposed = false;      // a transpose is read in registers: the nest runs in tiles
  bool guarded = false;         // pads or concatenations are computed in registers: their ranges split the inner loop
  int depth = 0;                // groups of greater depth run earlier
  int size = 0;                 // equations computed here
};

struct Fusion {
  std::vector<Group> groups;              // in the order of execution
  std::vector<int> definition;            // equation that defines a variable, -1 for inputs and constants
  std::vector<int> home;                  // group in which an equation is computed, -1: nowhere (dead)
  std::vector<std::vector<int>> members;  // equations of each group, once the order of groups is known
  std::vector<bool> stored;               // variables that live in memory
  std::vector<bool> shared;               // variables of several readers, moved or not, some of which may recompute it

  bool inlined(Var var) const { return !stored[static_cast<std::size_t>(var.id)]; }
};

Fusion fuse(const Program& program);

}  // namespace capibara::cpu
