// Ref: a mutable array. Reads and writes keep their order under every transform.
#pragma once

#include <capibara/array.h>

namespace capibara::jax {

class Ref {
 public:
  explicit Ref(Array handle) : handle_(std::move(handle)) {}

  Array get() const;
  void set(const Array& value) const;
  Array swap(const Array& value) const;  // the old value
  void add(const Array& value) const;
  const Array& handle() const { return handle_; }

 private:
  Array handle_;
};

// A mutable reference with an initial value.
Ref new_ref(const Array& initial);
// The last value of a ref, which must not be used afterwards.
Array freeze(const Ref& ref);

}  // namespace capibara::jax
