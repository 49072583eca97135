// Staging: blocks of the host's memory that a device reads and writes directly, for copies of large arrays.
//
// A driver copies pageable memory in small pieces through a block of its own (8 GB/s on an H200); memory that is
// mapped for the device it reads directly (50 GB/s), and the host's threads fill a mapped block at memory
// bandwidth.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/pjrt/plugin.h"

namespace capibara::pjrt {

class Staging {
 public:
  static constexpr std::size_t min_bytes = std::size_t{1} << 20, max_bytes = std::size_t{1} << 28,
                               limit = std::size_t{1} << 30;  // bytes

  Staging(const Plugin& plugin, abi::Client* client) : plugin_(plugin), client_(client) {}

  // A block of at least this many bytes, returned by its last holder. Null for sizes too small to be worth it or too
  // large, if the limit is reached, and if the plugin cannot map memory.
  std::shared_ptr<std::byte> take(std::size_t bytes);
  std::size_t mapped_bytes() const;

 private:
  struct Block {
    std::byte* data;
    std::size_t size;
  };
  void give(Block block);

  const Plugin& plugin_;
  abi::Client* client_;
  mutable std::mutex mutex_;
  std::vector<Block> free_;  // mapped forever: programs that copy once copy again
  std::size_t mapped_ = 0;
  bool usable_ = true;
};

// Copies with all threads.
void copy_in_parallel(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace capibara::pjrt
