// Lists of free blocks by size, one set for each thread.
#include "core/runtime/small_blocks.h"

#include <array>
#include <cstdlib>
#include <new>

#include "core/runtime/arena.h"

#if defined(__SANITIZE_ADDRESS__)
#define CAPIBARA_KEEPS_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CAPIBARA_KEEPS_BLOCKS 0
#endif
#endif
#ifndef CAPIBARA_KEEPS_BLOCKS
#define CAPIBARA_KEEPS_BLOCKS 1  // AddressSanitizer finds uses of freed memory only where it is freed
#endif

namespace capibara {

namespace {

constexpr std::size_t step = 64, classes = 16;  // up to 1 KiB
constexpr int max_kept = 256;                   // blocks of each size that a thread keeps

struct Free {
  Free* next;
};
struct List {
  Free* first = nullptr;
  int count = 0;
};
// Trivial, so that it can be read while and after the thread's other objects are destroyed.
enum class State { unused, used, ended };
thread_local struct {
  std::array<List, classes> lists;
  State state = State::unused;
  std::ptrdiff_t uncounted = 0;  // bytes not yet reported to the arena
} kept;
constexpr std::ptrdiff_t max_uncounted = 16 * 1024;

// Frees the lists when the thread ends.
struct AtEnd {
  AtEnd() { kept.state = State::used; }
  ~AtEnd() {
    kept.state = State::ended;
    count_small_blocks();
    arena::count_small(-static_cast<std::ptrdiff_t>(kept_small_bytes()));
    for (List& list : kept.lists) {
      while (Free* block = list.first) {
        list.first = block->next;
        std::free(block);
      }
      list.count = 0;
    }
  }
};

// True until the thread ends; the first call registers for its end.
bool is_live() {
  if (kept.state == State::used) return true;
  if (kept.state == State::ended) return false;
  thread_local AtEnd at_end;
  return true;
}

void count(std::ptrdiff_t bytes) noexcept {
  kept.uncounted += bytes;
  if (!is_live() || kept.uncounted >= max_uncounted || kept.uncounted <= -max_uncounted) count_small_blocks();
}

std::size_t class_of(std::size_t bytes) { return (bytes + step - 1) / step; }  // 1 for the smallest

}  // namespace

void count_small_blocks() noexcept {
  arena::count_small(kept.uncounted);
  kept.uncounted = 0;
}

std::size_t kept_small_bytes() noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < classes; ++i) bytes += static_cast<std::size_t>(kept.lists[i].count) * (i + 1) * step;
  return bytes;
}

void* take_small_block(std::size_t bytes) {
  const std::size_t size = bytes == 0 ? 1 : class_of(bytes);
  if (size <= classes) {
    List& list = kept.lists[size - 1];
    if (Free* block = list.first) {
      list.first = block->next;
      --list.count;
      return block;
    }
  }
  const std::size_t fresh = size <= classes ? size * step : bytes;
  void* block = std::malloc(fresh);
  if (!block) throw std::bad_alloc();
  count(static_cast<std::ptrdiff_t>(fresh));
  return block;
}

void give_small_block(void* block, std::size_t bytes) noexcept {
  const std::size_t size = bytes == 0 ? 1 : class_of(bytes);
  if (CAPIBARA_KEEPS_BLOCKS && size <= classes && is_live()) {
    List& list = kept.lists[size - 1];
    if (list.count < max_kept) {
      list.first = new (block) Free{list.first};
      ++list.count;
      return;
    }
  }
  std::free(block);
  count(-static_cast<std::ptrdiff_t>(size <= classes ? size * step : bytes));
}

}  // namespace capibara
