// Propagation: derives the layout of every value of a program from the given layouts of some of them.
#pragma once

#include <capibara/primitive.h>

#include <map>

#include "compiler/partition/layout.h"

namespace capibara::sharding {

// The given layout of one value: its axes, and which dimensions may be split by more axes.
struct Demand {
  Layout layout;
  std::vector<bool> open;  // one per dimension; empty: none
};
using Demands = std::vector<std::optional<Demand>>;

// The layouts of a program's values.
struct Shardings {
  std::vector<Layout> vars;                              // by variable
  std::vector<Layout> outputs;                           // as demanded, otherwise those of the values
  std::map<std::size_t, std::vector<Shardings>> nested;  // by equation: those of its nested programs
};

// The program must be flattened. Constraints on `mesh` are fixed points; those on other meshes are ignored.
Shardings propagate(const Program& program, const Mesh& mesh, const Demands& inputs, const Demands& outputs);

}  // namespace capibara::sharding
