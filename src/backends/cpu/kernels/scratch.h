// Scratch memory of a running kernel: uninitialised, aligned to a cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string_view>

#include "core/runtime/arena.h"

namespace capibara::cpu {

template <class T>
class Scratch {
 public:
  Scratch() = default;
  Scratch(int64_t count, std::string_view words) {
    std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    large_ = bytes >= arena::min_block;
    void* memory =
        large_ ? arena::take(bytes, words) : static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64));
    if (!memory) throw std::bad_alloc();
    data_ = static_cast<T*>(memory);
  }
  ~Scratch() { release(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  Scratch& operator=(Scratch&& other) noexcept {
    release();
    data_ = other.data_;
    large_ = other.large_;
    other.data_ = nullptr;
    return *this;
  }

  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  void release() {
    if (!data_) return;
    if (large_)
      arena::give(reinterpret_cast<std::byte*>(data_));
    else
      std::free(data_);
    data_ = nullptr;
  }

  T* data_ = nullptr;
  bool large_ = false;
};

}  // namespace capibara::cpu
