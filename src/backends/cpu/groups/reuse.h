// Reuse of memory: when values die, which results may reuse an operand's memory, what loops carry.
#pragma once

#include <memory>
#include <unordered_map>

#include "backends/cpu/groups/fuse.h"

namespace capibara::cpu {

// The groups of a program in order, and the lifetimes of its variables.
struct Analysis {
  Program program;  // kept alive: the fusion refers to it
  Fusion fusion;
  std::vector<int> last_use;  // group after which a variable is dead, -1: never read; outputs live on
};

// Analyses of programs and of those nested in them, each computed once.
class Analyses {
 public:
  const Analysis& of(const Program& program);
  // A nested program in which each reader has broadcasts of its own; inputs and outputs keep their variables.
  const Program& unshared(const Program& program);

 private:
  std::unordered_map<const void*, std::unique_ptr<Analysis>> analyses_;
  std::unordered_map<const void*, std::pair<Program, Program>> unshared_;  // the first is kept for its identity
};

// The carries among a loop's operands; none if an equation is not a loop.
struct Carries {
  std::size_t first = 0, count = 0;
};
Carries carries_of(const Equation& equation);

// True if an operand of a loop is computed in this program and read by no one else from the loop on.
bool dies_as_carry(const Analysis& known, int g, const Equation& loop, std::size_t operand);

// True if an output of a body may overwrite the carry that it replaces: nothing reads the old value later, and the
// loops that write it read, if at all, the very element that they write.
bool may_replace(const Analysis& known, Var old, std::size_t output);

// The donated input whose memory an output may reuse: no one reads it after the output is written. -1 if none.
int donated_for(const Analysis& known, const std::vector<bool>& donated, std::size_t output);

// A slice of exactly the elements that an update then replaces, with no reordering in between: each element is read
// before it is written.
bool reads_what_it_writes(const Program& program, const std::vector<int>& members, const Equation& slice,
                          const Equation& update);

// True if the group of an update reads the updated array, or an alias, at indices other than those it writes.
bool reads_elsewhere(const Analysis& known, int g, const Equation& update);

}  // namespace capibara::cpu
