// StridedCopy: moves elements between two strided views of the same shape; the loop of every kernel that only moves
// data.
#pragma once

#include <capibara/attributes.h>

#include <cstddef>
#include <span>

namespace capibara::reference {

// Strides are in elements and may be zero or negative. Dimensions that continue one another in both views are merged
// once, so that a copy object can run many times (gather: once per window).
class StridedCopy {
 public:
  StridedCopy(std::span<const int64_t> shape, std::span<const int64_t> target_strides,
              std::span<const int64_t> source_strides, int64_t element_bytes);

  void run(std::byte* target, const std::byte* source) const;

 private:
  Ints shape_, target_strides_, source_strides_;  // strides in bytes
  int64_t element_bytes_;
  bool empty_ = false;
};

}  // namespace capibara::reference
