// Sizes in jax's notation: 2*b + 1, floordiv(n, 4), max(0, b - 2).
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace capibara::stablehlo {

// The value of an expression for these values of names. Raises ValueError for a name without a value, for a malformed
// expression, and if the result is not a valid size.
std::int64_t size_of(const std::string& expression, const std::map<std::string, std::int64_t>& sizes);

}  // namespace capibara::stablehlo
