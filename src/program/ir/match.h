// The conditions under which equations may be replaced by others, stated once for every recognizer of patterns.
//
// A recognizer proves each of them or leaves the program unchanged: types and sizes, ranges of integers, other readers
// of values that disappear, and operands that are computed from the very equations to be replaced.
#pragma once

#include <capibara/primitive.h>

#include <span>
#include <vector>

namespace capibara {

// The equation of a program that defines each variable, and those that read it.
class Uses {
 public:
  explicit Uses(const Program& program);

  const Program& program() const { return program_; }
  const Equation& operator[](int at) const { return program_.equations()[static_cast<std::size_t>(at)]; }
  const ArrayType& type(Atom atom) const { return program_.type(atom); }
  int maker(Atom atom) const;                     // -1 for inputs, constants and literals
  std::span<const int> readers(Atom atom) const;  // in order, each once
  bool is_result(Atom atom) const;                // of the program
  // The equation that defines it, if it is one of the primitive; else null.
  const Equation* made_by(Atom atom, const Primitive& primitive) const;

 private:
  const Program program_;
  std::vector<int> maker_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> is_result_;
};

// Other readers: true if the results of the `inner` equations are read only by them and the `last` ones. The results of
// the last ones are those of the replacement; the others disappear.
bool is_closed(const Uses& uses, std::span<const int> inner, std::span<const int> last);

// Dependent operands: true if none of them depends on what the `replaced` equations compute. Paths
// through the `given` ones do not count: their results exist before the operands are read.
bool are_independent(const Uses& uses, std::span<const Atom> operands, std::span<const int> replaced,
                     std::span<const int> given = {});

// Sizes of zero: true if any array has no elements.
bool any_empty(std::span<const ArrayType> types);

// Ranges: the integers that an expression can have, both ends included.
struct IntegerRange {
  int64_t low, high;
  IntegerRange shifted(int64_t by) const { return {low + by, high + by}; }
};
// Types: true if a type holds every integer of the range, so that arithmetic within it neither wraps nor rounds.
bool holds_exactly(DType dtype, IntegerRange range);

}  // namespace capibara
