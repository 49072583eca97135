// Demands of a program on the devices of its arguments, results and inner values.
#pragma once

#include <memory>
#include <vector>

#include <capibara/program.h>

#include "core/sharding/placed_memory.h"

namespace capibara::stablehlo {

struct BorderDemand {
  std::size_t index;  // of the argument or result
  std::shared_ptr<const NamedSharding> placement;
};

struct Borders {
  std::vector<BorderDemand> arguments, results;
  std::vector<const Equation*> equations;  // those that say so, of the program itself
  // The devices of all demands, also of inner values. Raises ValueError where they differ.
  std::vector<int> devices;
  std::shared_ptr<const NamedSharding> first;  // the first demand at all; null: none
};

Borders find_borders(const Program& program);

}  // namespace capibara::stablehlo
