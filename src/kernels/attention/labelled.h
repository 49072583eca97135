// The equations of a program with names for the dimensions of their arrays: what recognising attention reads.
//
// An axis is a dimension of the logits, by its number there. Dimensions of size 1 belong to no axis, so that arrays
// which differ by them alone have the same axes.
#pragma once

#include <optional>
#include <utility>

#include "program/ir/match.h"

namespace capibara::kernels {

using Axes = std::vector<int>;  // of each dimension
inline constexpr int no_axis = -1;
inline constexpr int feature_axis = -2;  // of queries, keys and values, which the logits do not have

struct Labelled {
  Atom atom;
  Axes axes;
};

bool holds(std::span<const int> list, int value);
// Those that are axes of the logits, sorted.
Axes logit_axes(const Axes& axes);
std::size_t count_of(const Axes& axes, int axis);

class Equations : public Uses {
 public:
  using Uses::Uses;

  // The number that every element is, where the program says it.
  std::optional<double> number(Atom atom) const;
  // With the axes of an array that it meets element by element.
  Labelled beside(Atom atom, const Axes& axes) const;

  // What the array is a view of: before transposes, changes of unit dimensions and, where asked, broadcasts. The
  // equations on the way are added to `passed`.
  Labelled source(Labelled x, bool broadcasts, std::vector<int>* passed = nullptr) const;
  // The axes of the result of such an equation, but for broadcasts.
  std::optional<Axes> axes_after(const Equation& equation, const Axes& axes) const;
  // Whether both are the same array with the same axes.
  bool same(const Labelled& a, const Labelled& b) const;

  // The operands of a matmul by the axes of its result; what it contracts is the feature axis.
  std::pair<Labelled, Labelled> operands(const Equation& dot, const Axes& result) const;
  // The other operand by the axes of one, and the axes of the result; what is free in the other is the feature axis.
  std::pair<Labelled, Axes> other_operand(const Equation& dot, std::size_t side, const Axes& axes) const;
  // Which axes of the operand a matmul contracts, sorted.
  Axes contracted(const Equation& dot, std::size_t side, const Axes& axes) const;

 private:
  std::optional<Axes> axes_before(const Equation& equation, const Axes& axes, bool broadcasts) const;
  Axes without_units(Axes axes, const Shape& shape) const;
  std::optional<Axes> across_units(const Shape& from, const Axes& axes, const Shape& to) const;
};

}  // namespace capibara::kernels
