// Assigns mesh axes to the factors of one equation: the assignment that moves the fewest bytes.
#pragma once

#include "compiler/partition/reshard.h"

namespace capibara::sharding {

// One equation on the devices: the layouts its operands have, and the layouts required of its results.
struct AssignmentProblem {
  const Factors& factors;
  std::span<const ArrayType> operands, results;
  std::span<const Layout> given, wanted;
  std::span<const std::vector<Layout>> copies;  // other layouts in which an operand is already available
  double work;  // per element of the iteration space: the bytes that could be sent in the same time
};

struct Assignment {
  std::vector<Axes> axes;                 // per factor
  std::vector<Layout> operands, results;  // that follow from `axes`
  Axes pending;                           // axes of combined factors
  Monoid monoid = Monoid::add;
};

Assignment cheapest_assignment(const Mesh& mesh, Resharder& resharder, const AssignmentProblem& problem);

}  // namespace capibara::sharding
