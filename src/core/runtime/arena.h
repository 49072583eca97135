// Memory of large arrays: blocks in huge pages that are kept and used again, since fresh memory costs ten times more.
//
// Freed blocks wait in a cache by size class, the oldest returned to the system first. All blocks together, live and
// cached, stay below the peak of live bytes plus a quarter GiB, and a request that the machine cannot hold is refused
// before any of it is touched, so that the process survives.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace capibara::arena {

// Below this, the C library's allocator is as good.
inline constexpr std::size_t min_block = 64 * 1024;

// At least `bytes` of memory, aligned to 64 bytes or, from 2 MiB on, to a huge page; its contents are arbitrary.
// `words` names its purpose ("dot_general float32[8,8]") for errors and their lists of blocks. Raises a RuntimeError
// that names the purpose, the size, and the largest blocks in use.
std::byte* take(std::size_t bytes, std::string_view words);
void give(std::byte* block);

// Returns cached blocks to the system until at most `keep` bytes of them are left.
void trim(std::size_t keep = 0);

struct Usage {
  std::size_t live = 0, live_blocks = 0, cached = 0, cached_blocks = 0, peak_live = 0;
  // Bytes of these blocks and of small ones (small_blocks.h), including those that threads keep for reuse, to within
  // 16 KiB that each thread may not have reported yet; and their peak since the last trim(0).
  std::size_t in_use = 0, peak_in_use = 0;
};
Usage usage();

// Memory of small blocks: bytes that are allocated or, if negative, freed.
void count_small(std::ptrdiff_t bytes) noexcept;

// The purpose of this thread's array allocations while the object lives, for allocating code that cannot tell.
class Purpose {
 public:
  explicit Purpose(std::string_view words);
  ~Purpose();
  Purpose(const Purpose&) = delete;
  Purpose& operator=(const Purpose&) = delete;
  static std::string_view current();  // "allocate" outside of all

 private:
  std::string_view before_;
};

// Raises RuntimeError for an impossible size, with purpose, size, the machine's limit and the largest blocks in use.
[[noreturn]] void throw_out_of_memory(std::string_view words, double bytes);

std::string readable_bytes(double bytes);  // 1.5 GiB

}  // namespace capibara::arena
