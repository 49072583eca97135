// How an equation is run, and which elements its output is made from.
#pragma once

#include "backends/cpu/groups/access.h"

namespace capibara::cpu {

struct Fusion;

enum class Work {
  loops,    // one loop nest; the equations between its results and memory are computed in registers
  pieces,   // concatenate, pad, dynamic_update_slice: one nest per operand, each writing its part of one result
  alias,    // the result is the operand's memory under another name
  host,     // a kernel outside of generated code
  control,  // scan, while, cond, jit
};

// A pad or concatenation that can be computed in registers: the index decides which part an element comes from.
bool is_guarded(const Program& program, const Equation& equation);
// The parts of such an equation along the dimensions that decide: where each begins in the output.
struct GuardedPart {
  std::size_t operand;
  Ints begin;  // per dimension; entries are never negative
};
std::vector<GuardedPart> guarded_parts(const Program& program, const Equation& equation);

// Has nested programs that become control flow of the driver.
inline bool is_control(const Primitive& primitive) {
  const Control control = primitive->traits.control;
  return control != Control::none && control != Control::solve && control != Control::device_map;
}
// How an equation is run; `loops` also for those that only generated code can place.
Work work_of(const Program& program, const Equation& equation);
// True if an equation runs as one; others are composed of simpler ones if their primitive has a lower rule.
bool runs_whole(const Program& program, const Equation& equation);
// reduce_sum and similar reductions, by a monoid over axes.
inline bool is_reduction(const Primitive& primitive) {
  return primitive->traits.combines == Combines::axes && primitive->traits.monoid;
}
// random_bits of one threefry key: each element comes from the block of its own counter, so loops can compute it.
bool is_counted_bits(const Program& program, const Equation& equation);

// The dimensions of its operand that a reduction keeps.
std::vector<bool> kept_dimensions(const Program& program, const Equation& equation);

// An element that the expression of a group's results reads: a stored variable, or a result or row value of the group.
struct Access {
  Var var;
  Index index;
};
// All elements read to compute the output of `equation` at `index`, down to stored variables and to the equations in
// `stops`. The index that an iota yields is an access of no variable; so is the one that decides between parts of a pad
// or concatenation, with the size of the part as a second entry. Symbols of dynamic starts are numbered from
// `first_free` on; reductions add symbols for their own loops.
std::vector<Access> accesses(const Program& program, const Fusion& fusion, const Equation& equation, const Index& index,
                             const std::vector<int>& stops, Symbol first_free);
// The index of operand `number` that an element of the output needs; reduced dimensions get symbols from `free_symbol`.
std::optional<Index> operand_index(const Program& program, const Equation& equation, std::size_t number,
                                   const Index& index, const std::function<Symbol()>& free_symbol);

}  // namespace capibara::cpu
