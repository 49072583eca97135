// Propagation: the layout of every value of a program, from what is said of some of them.
#pragma once

#include <capibara/primitive.h>

#include <map>

#include "compiler/partition/layout.h"

namespace capibara::sharding {

// What is said of one value: its axes, and which dimensions may be split further.
struct Demand {
  Layout layout;
  std::vector<bool> open;  // one for each dimension; empty: none
};
using Demands = std::vector<std::optional<Demand>>;

// The layouts of a program's values.
struct Shardings {
  std::vector<Layout> vars;                              // by variable
  std::vector<Layout> outputs;                           // as demanded, else those of the values
  std::map<std::size_t, std::vector<Shardings>> nested;  // by equation: those of the programs it holds
};

// The program must be flattened. Constraints on the mesh given are fixed points; those on other meshes say nothing.
Shardings propagate(const Program& program, const Mesh& mesh, const Demands& inputs, const Demands& outputs);

}  // namespace capibara::sharding
