// Numbers of the host language that no weakly typed array can hold: integers too large for the default width.
#pragma once

#include "library/table/function.h"

namespace capibara::library {

// An integer that does not fit int64.
class BigInteger final : public Foreign {
 public:
  BigInteger(std::string text, uint64_t low_bits, double real, bool fits_unsigned)
      : text_(std::move(text)), low_bits_(low_bits), real_(real), fits_unsigned_(fits_unsigned) {}
  std::string type_name() const override { return "int"; }
  const std::string& text() const { return text_; }
  uint64_t low_bits() const { return low_bits_; }        // modulo 2^64
  double real() const { return real_; }                  // rounded
  bool fits_unsigned() const { return fits_unsigned_; }  // in uint64

 private:
  std::string text_;
  uint64_t low_bits_;
  double real_;
  bool fits_unsigned_;
};

const BigInteger* big_integer(const Value& value);  // null if it is not one

// An argument that is a number or an array, as a strongly typed array of a dtype. Integers of any width wrap around.
Array converted(const Arguments& arguments, std::string_view name, DType dtype);

}  // namespace capibara::library
