// Formulas of the loop form: long computations that a function calls instead of writing them out each time.
#pragma once

#include <cstdint>
#include <memory>

namespace capibara::cpu {

using Value = int32_t;  // an index into Function::types
inline constexpr Value no_value = -1;

struct Function;

// A long computation on numbers of one float type that a function needs in many places: compiled once, and called there
// with vectors in registers. `body` holds one For in lanes: what it carries are the operands, at most three, and what
// the first one becomes is the result.
struct Formula {
  std::shared_ptr<const Function> body;
  // The factors of the result where that is a product; else none. A sum that alone reads the result takes them in, as
  // it does with the product of a formula that is written out.
  Value factor_a = no_value, factor_b = no_value;
};

}  // namespace capibara::cpu
