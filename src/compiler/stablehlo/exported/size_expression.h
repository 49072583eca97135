// Sizes as jax writes them: 2*b + 1, floordiv(n, 4), max(0, b - 2).
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace capibara::stablehlo {

// The value of an expression where names have these values. Raises ValueError for a name that has none, for what is no
// expression, and where the value is no size.
std::int64_t size_of(const std::string& expression, const std::map<std::string, std::int64_t>& sizes);

}  // namespace capibara::stablehlo
