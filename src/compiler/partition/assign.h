// Which axes split which factors of one equation: the choice of least bytes.
#pragma once

#include "compiler/partition/reshard.h"

namespace capibara::sharding {

// One equation on the devices: what its operands have and its results are wanted in.
struct AssignmentProblem {
  const Factors& factors;
  std::span<const ArrayType> operands, results;
  std::span<const Layout> given, wanted;
  std::span<const std::vector<Layout>> copies;  // other layouts that an operand already has been brought to
  double work;  // of one element of the iteration space, in bytes that could be sent in its time
};

struct Assignment {
  std::vector<Axes> axes;                 // of each factor
  std::vector<Layout> operands, results;  // that follow
  Axes pending;                           // axes of combined factors
  Monoid monoid = Monoid::add;
};

Assignment cheapest_assignment(const Mesh& mesh, Resharder& resharder, const AssignmentProblem& problem);

}  // namespace capibara::sharding
