// Recognises the sort keys of a comparator of a general sort.
#pragma once

#include <capibara/program.h>

#include <optional>

namespace capibara::reference {

// The number of leading operands that are the keys of an equivalent `sort`; nullopt if the comparator orders otherwise.
std::optional<int64_t> lexicographic_keys(const Program& comparator, const Types& operands);

}  // namespace capibara::reference
