// A value of a random program, with bounds on its magnitude and on the difference of two correct results.
#pragma once

#include <capibara/array.h>

#include <array>

namespace capibara::random_programs {

inline constexpr int max_nesting = 2;

// The maximum difference of two correct results: a number, and a multiple of the carries' error in each enclosing loop.
struct Error {
  double own = 0;
  std::array<double, max_nesting> gain{};

  bool none() const { return own == 0 && gain[0] == 0 && gain[1] == 0; }
  friend Error operator*(double factor, const Error& e) {
    return {factor * e.own, {factor * e.gain[0], factor * e.gain[1]}};
  }
  friend Error operator+(const Error& a, const Error& b) {
    return {a.own + b.own, {a.gain[0] + b.gain[0], a.gain[1] + b.gain[1]}};
  }
};
Error greatest(const Error& a, const Error& b);

struct Value {
  Array array;
  double bound = 0;  // on the magnitude of every element
  Error error;
  bool product = false;  // a sum may fuse it unrounded

  bool exact() const { return error.none(); }
  DType dtype() const { return array.dtype(); }
  const Shape& shape() const { return array.shape(); }
  int64_t rank() const { return array.ndim(); }
  int64_t size() const { return array.size(); }
};

// Thrown if a drawn operation does not fit its operands.
struct Unfit {};

}  // namespace capibara::random_programs
