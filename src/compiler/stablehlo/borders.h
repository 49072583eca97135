// The devices that a program requires for its arguments, results and inner values.
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
  std::vector<const Equation*> equations;  // the program's own equations that state a requirement
  // The devices of all requirements, including those of inner values. Raises ValueError if they differ.
  std::vector<int> devices;
  std::shared_ptr<const NamedSharding> first;  // the first requirement found; null: none
};

Borders find_borders(const Program& program);

}  // namespace capibara::stablehlo
