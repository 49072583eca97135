// Mapping blocks, and lending them.
#include "backends/pjrt/staging.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/runtime/thread_pool.h"

namespace capibara::pjrt {

std::shared_ptr<std::byte> Staging::take(std::size_t bytes) {
  if (bytes < min_bytes || bytes > max_bytes) return nullptr;
  const std::size_t size = std::bit_ceil(bytes);
  Block block{nullptr, size};
  {
    std::lock_guard lock(mutex_);
    if (!usable_) return nullptr;
    const auto it = std::find_if(free_.begin(), free_.end(), [&](const Block& one) { return one.size == size; });
    if (it != free_.end()) {
      block = *it;
      free_.erase(it);
    } else if (mapped_ + size > limit) {
      return nullptr;
    } else {
      mapped_ += size;
    }
  }
  if (!block.data) {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    abi::Args<abi::ClientDma> args;
    args.client = client_;
    args.data = memory;
    args.size = size;
    abi::Error* error = nullptr;
    const bool mapped = memory != MAP_FAILED && plugin_.has(abi::Function::client_dma_map) &&
                        (error = plugin_.try_call(abi::Function::client_dma_map, args)) == nullptr;
    if (!mapped) {
      if (error) plugin_.take_message(error);
      if (memory != MAP_FAILED) munmap(memory, size);
      std::lock_guard lock(mutex_);
      mapped_ -= size;
      usable_ = false;  // it will not succeed later either
      return nullptr;
    }
    block.data = static_cast<std::byte*>(memory);
  }
  return {block.data, [this, block](std::byte*) { give(block); }};
}

void Staging::give(Block block) {
  std::lock_guard lock(mutex_);
  free_.push_back(block);
}

std::size_t Staging::mapped_bytes() const {
  std::lock_guard lock(mutex_);
  return mapped_;
}

void copy_in_parallel(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr int64_t piece = int64_t{1} << 18;
  const auto size = static_cast<int64_t>(bytes);
  parallel_for((size + piece - 1) / piece, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * piece, last = std::min(size, end * piece);
    std::memcpy(to + first, from + first, static_cast<std::size_t>(last - first));
    return 0;
  });
}

}  // namespace capibara::pjrt
