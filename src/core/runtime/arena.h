// Memory of large arrays: blocks in huge pages that are kept and used again, since fresh memory costs ten times more.
//
// Freed blocks wait in a cache by size class, oldest given back first. All blocks together, live and cached, stay below
// what was live at the worst moment plus a quarter GiB, and a request that the machine cannot hold is refused before
// any of it is touched: the process lives on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace capibara::arena {

// Below this, the C library's allocator is as good.
inline constexpr std::size_t min_block = 64 * 1024;

// At least `bytes` of memory, aligned to 64 bytes or, from 2 MiB on, to a huge page; its contents are arbitrary.
// `words` says what it is for ("dot_general float32[8,8]"), in errors and in the lists of them. Raises RuntimeError
// that names the purpose, the size, and the largest blocks in use.
std::byte* take(std::size_t bytes, std::string_view words);
void give(std::byte* block);

// Gives cached blocks back to the system until at most `keep` bytes of them are left.
void trim(std::size_t keep = 0);

struct Usage {
  std::size_t live = 0, live_blocks = 0, cached = 0, cached_blocks = 0, peak_live = 0;
  // Bytes of these blocks and of small ones (small_blocks.h), with those that other threads keep for later and but for
  // 16 KiB that each of them may not have told of; the most since trim() to nothing.
  std::size_t in_use = 0, peak_in_use = 0;
};
Usage usage();

// Memory of small blocks: bytes that come into use or, negative, that are freed.
void count_small(std::ptrdiff_t bytes) noexcept;

// What this thread allocates arrays for while the object lives, where the allocating code does not know it.
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

// RuntimeError for a size that cannot be had: purpose, size, the machine's limit, the largest blocks in use.
[[noreturn]] void throw_out_of_memory(std::string_view words, double bytes);

std::string readable_bytes(double bytes);  // 1.5 GiB

}  // namespace capibara::arena
