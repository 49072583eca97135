// Hasher: mixes all structural hashes.
#pragma once

#include <capibara/array.h>
#include <capibara/attributes.h>

#include <cstddef>

namespace capibara {

class Hasher {
 public:
  void mix(std::size_t value) {
    state_ ^= value + 0x9e3779b97f4a7c15ULL + (state_ << 6) + (state_ >> 2);
    state_ *= 0xff51afd7ed558ccdULL;
  }
  void bytes(const void* data, std::size_t size);
  void ints(const Ints& values) {
    mix(values.size());
    for (int64_t value : values) mix(static_cast<std::size_t>(value));
  }
  void type(const ArrayType& type) {
    ints(type.shape);
    mix(static_cast<std::size_t>(type.dtype) * 4 + (type.weak_type ? 2 : 0) + (type.ref ? 1 : 0));
  }
  void array(const Array& array);  // by content for concrete arrays, by identity for tracers
  std::size_t value() const { return state_; }

 private:
  std::size_t state_ = 0x2545f4914f6cdd1dULL;
};

}  // namespace capibara
