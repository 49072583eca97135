// Staging: blocks of the host's memory that a device reads and writes directly, for copies of large arrays.
//
// A driver copies ordinary memory in small pieces through a block of its own (8 GB/s on an H200); from memory that is
// mapped for it the device itself fetches (50 GB/s), and the host's threads fill such a block at the speed of its
// memory.
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

  // A block of at least so many bytes, given back by the last holder. Null for sizes that are not worth it or too
  // large, where the limit is reached, and where the plugin maps no memory.
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
  std::vector<Block> free_;  // mapped for ever: programs that copy once copy again
  std::size_t mapped_ = 0;
  bool usable_ = true;
};

// Copies by all threads.
void copy_in_parallel(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace capibara::pjrt
