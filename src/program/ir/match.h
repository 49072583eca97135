// The conditions under which equations may be replaced by others, stated once for every recognizer of patterns.
//
// A recognizer proves each of them or leaves the program alone: types and sizes, ranges of integers, other readers of
// what disappears, and operands that are computed from what they are operands of.
#pragma once

#include <capibara/primitive.h>

#include <span>
#include <vector>

namespace capibara {

// Which equation of a program makes each variable, and which read it.
class Uses {
 public:
  explicit Uses(const Program& program);

  const Program& program() const { return program_; }
  const Equation& operator[](int at) const { return program_.equations()[static_cast<std::size_t>(at)]; }
  const ArrayType& type(Atom atom) const { return program_.type(atom); }
  int maker(Atom atom) const;                     // -1 for inputs, constants and literals
  std::span<const int> readers(Atom atom) const;  // in order, each once
  bool is_result(Atom atom) const;                // of the program
  // The equation that makes it, where that is one of the primitive.
  const Equation* made_by(Atom atom, const Primitive& primitive) const;

 private:
  const Program program_;
  std::vector<int> maker_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> is_result_;
};

// Other readers: whether what `inner` equations compute is read by them and by the `last` ones alone. The results of
// the last ones are what the replacement gives; those of the others disappear.
bool is_closed(const Uses& uses, std::span<const int> inner, std::span<const int> last);

// Operands that contain each other: whether none of them is computed from what the `replaced` equations compute. Paths
// through the `given` ones do not count: their results are there before the operands are read.
bool are_independent(const Uses& uses, std::span<const Atom> operands, std::span<const int> replaced,
                     std::span<const int> given = {});

// Sizes of zero: whether any array has no elements.
bool any_empty(std::span<const ArrayType> types);

// Ranges: the integers that an expression takes, both ends included.
struct IntegerRange {
  int64_t low, high;
  IntegerRange shifted(int64_t by) const { return {low + by, high + by}; }
};
// Types: whether a type has every integer of the range, so that arithmetic within it neither wraps nor rounds.
bool holds_exactly(DType dtype, IntegerRange range);

}  // namespace capibara
