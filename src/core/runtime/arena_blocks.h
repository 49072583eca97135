// The arena's blocks in use, for profiles.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace capibara::arena {

struct BlockInUse {
  const std::byte* data;
  std::size_t bytes;
  std::string words;
};
// In any order.
std::vector<BlockInUse> blocks_in_use();

}  // namespace capibara::arena
