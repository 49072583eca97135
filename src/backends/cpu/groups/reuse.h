// Which memory may be written again: when values die, which results may take an operand's memory, what loops carry.
#pragma once

#include <memory>
#include <unordered_map>

#include "backends/cpu/groups/fuse.h"

namespace capibara::cpu {

// The groups of a program in their order, and how long its variables live.
struct Analysis {
  Program program;  // kept alive: the fusion refers to it
  Fusion fusion;
  std::vector<int> last_use;  // group after which a variable is dead, -1: never read; outputs live on
};

// Analyses of programs and of those nested in them, each made once.
class Analyses {
 public:
  const Analysis& of(const Program& program);
  // A nested program with its own broadcasts for each reader; inputs and outputs keep their variables.
  const Program& unshared(const Program& program);

 private:
  std::unordered_map<const void*, std::unique_ptr<Analysis>> analyses_;
  std::unordered_map<const void*, std::pair<Program, Program>> unshared_;  // the first is kept for its identity
};

// The carries of a loop among its operands; none where an equation is not a loop.
struct Carries {
  std::size_t first = 0, count = 0;
};
Carries carries_of(const Equation& equation);

// Whether an operand of a loop is computed in this program and read by no one else from the loop on.
bool dies_as_carry(const Analysis& known, int g, const Equation& loop, std::size_t operand);

// Whether an output of a body may be written over the carry that it replaces: nothing reads the old value later, and
// the loops that write read it at the place they write, if at all.
bool may_replace(const Analysis& known, Var old, std::size_t output);

// The donated input whose memory an output of the program takes: no one reads it once the output is written. -1: none.
int donated_for(const Analysis& known, const std::vector<bool>& donated, std::size_t output);

// A slice of the very elements that an update then replaces, which meets the update element by element: each is read
// before it is written.
bool reads_what_it_writes(const Program& program, const std::vector<int>& members, const Equation& slice,
                          const Equation& update);

// Whether the group of an update reads the updated array, under whatever name, at other places than it writes.
bool reads_elsewhere(const Analysis& known, int g, const Equation& update);

}  // namespace capibara::cpu
