// What a comparator of a general sort orders by.
#pragma once

#include <capibara/program.h>

#include <optional>

namespace capibara::reference {

// How many of the operands are the keys of `sort` where a comparator orders by keys; nothing where it orders otherwise.
std::optional<int64_t> lexicographic_keys(const Program& comparator, const Types& operands);

}  // namespace capibara::reference
