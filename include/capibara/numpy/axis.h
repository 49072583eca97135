// The axis argument of jax.numpy: all axes, one, or several.
#pragma once

#include <capibara/attributes.h>

#include <concepts>
#include <initializer_list>
#include <optional>

namespace capibara::jax::numpy {

// {} or std::nullopt: all axes; 1: one axis; {0, -1}: several. Negative axes count from the end.
class Axis {
 public:
  Axis() = default;
  Axis(std::nullopt_t) {}
  template <std::integral T>
  Axis(T axis) : list_(Ints{static_cast<int64_t>(axis)}), single_(true) {}
  Axis(std::initializer_list<int64_t> axes) : list_(Ints(axes)) {}
  Axis(Ints axes) : list_(std::move(axes)) {}

  bool all() const { return !list_.has_value(); }
  bool single() const { return single_; }      // given as a single number
  const Ints& list() const { return *list_; }  // as given; only if not all()
  // Non-negative, in the order given; all() gives 0..rank-1. Raises ValueError if an axis is out of range or
  // repeated.
  Ints resolve(const char* operation, int64_t rank) const;

 private:
  std::optional<Ints> list_;
  bool single_ = false;
};

}  // namespace capibara::jax::numpy
