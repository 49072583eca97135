// The equations of a program with labelled array dimensions, for recognising attention.
//
// An axis is the index of a dimension of the logits. Dimensions of size 1 belong to no axis, so that arrays
// that differ only in them have the same axes.
#pragma once

#include <optional>
#include <utility>

#include "program/ir/match.h"

namespace capibara::kernels {

using Axes = std::vector<int>;  // one per dimension
inline constexpr int no_axis = -1;
inline constexpr int feature_axis = -2;  // of queries, keys and values, absent from the logits

struct Labelled {
  Atom atom;
  Axes axes;
};

bool holds(std::span<const int> list, int value);
// The entries that are axes of the logits, sorted.
Axes logit_axes(const Axes& axes);
std::size_t count_of(const Axes& axes, int axis);

class Equations : public Uses {
 public:
  using Uses::Uses;

  // The value of every element, if it is a known constant.
  std::optional<double> number(Atom atom) const;
  // The atom labelled with the axes of an array with which it is combined elementwise.
  Labelled beside(Atom atom, const Axes& axes) const;

  // The array of which x is a view: before transposes, changes of unit dimensions and, if requested, broadcasts. The
  // equations in between are appended to `passed`.
  Labelled source(Labelled x, bool broadcasts, std::vector<int>* passed = nullptr) const;
  // The axes of the result of such an equation; broadcasts are excluded.
  std::optional<Axes> axes_after(const Equation& equation, const Axes& axes) const;
  // True if both are the same array with the same axes.
  bool same(const Labelled& a, const Labelled& b) const;

  // Labels the operands of a matmul from the axes of its result; the contracted dimension is the feature axis.
  std::pair<Labelled, Labelled> operands(const Equation& dot, const Axes& result) const;
  // Labels the other operand and the result from the axes of one operand; the other's free dimension is the feature.
  std::pair<Labelled, Axes> other_operand(const Equation& dot, std::size_t side, const Axes& axes) const;
  // The axes of the operand that a matmul contracts, sorted.
  Axes contracted(const Equation& dot, std::size_t side, const Axes& axes) const;

 private:
  std::optional<Axes> axes_before(const Equation& equation, const Axes& axes, bool broadcasts) const;
  Axes without_units(Axes axes, const Shape& shape) const;
  std::optional<Axes> across_units(const Shape& from, const Axes& axes, const Shape& to) const;
};

}  // namespace capibara::kernels
