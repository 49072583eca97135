// Memory of small objects that come and go by the hundred: each thread keeps what it freed, without locks.
//
// The C library keeps seven blocks of a size at hand; a call that returns a hundred arrays needs more.
#pragma once

#include <cstddef>

namespace capibara {

// Blocks aligned as by malloc. Raises std::bad_alloc. A block may be returned by a thread other than its taker.
void* take_small_block(std::size_t bytes);
void give_small_block(void* block, std::size_t bytes) noexcept;  // with the bytes it was taken for

// Reports to the arena the memory that this thread has taken from or returned to the C library since the last report;
// called automatically every 16 KiB.
void count_small_blocks() noexcept;
std::size_t kept_small_bytes() noexcept;  // of the blocks that this thread keeps for later

// For std::allocate_shared. `extra` bytes are allocated after the object.
template <class T>
struct SmallBlocks {
  using value_type = T;
  std::size_t extra = 0;

  SmallBlocks() = default;
  explicit SmallBlocks(std::size_t behind) : extra(behind) {}
  template <class U>
  SmallBlocks(const SmallBlocks<U>& other) : extra(other.extra) {}
  T* allocate(std::size_t count) { return static_cast<T*>(take_small_block(count * sizeof(T) + extra)); }
  void deallocate(T* block, std::size_t count) noexcept { give_small_block(block, count * sizeof(T) + extra); }
  template <class U>
  friend bool operator==(const SmallBlocks& a, const SmallBlocks<U>& b) {
    return a.extra == b.extra;
  }
};

}  // namespace capibara
