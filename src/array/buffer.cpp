// Buffers: shared memory with a ready event and a deleted state.
#include <capibara/device.h>
#include <capibara/error.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>

#include "runtime/arena.h"

namespace capibara {

struct Buffer::State {
  std::byte* data = nullptr;
  std::size_t size = 0;
  Device device;
  std::function<void()> release;
  std::atomic<bool> ready{true};
  std::atomic<bool> deleted{false};
  std::mutex mutex;
  std::condition_variable became_ready;
  std::string error;

  ~State() {
    if (release) release();
  }
};

namespace {
constexpr std::size_t alignment = 64;  // one cache line; also what DLPack consumers expect at most
}

Buffer Buffer::allocate(std::size_t bytes, const Device& device) {
  if (bytes >= arena::smallest_block) {
    std::byte* block = arena::take(bytes, arena::Purpose::current());
    return borrow(block, bytes, [block] { arena::give(block); }, device);
  }
  std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (!memory) throw RuntimeError(concat("allocate: out of memory for a buffer of ", bytes, " bytes on ", to_string(device)));
  return borrow(memory, bytes, [memory] { std::free(memory); }, device);
}

Buffer Buffer::borrow(void* data, std::size_t bytes, std::function<void()> release, const Device& device) {
  Buffer buffer;
  buffer.state_ = std::make_shared<State>();
  buffer.state_->data = static_cast<std::byte*>(data);
  buffer.state_->size = bytes;
  buffer.state_->device = device;
  buffer.state_->release = std::move(release);
  return buffer;
}

std::size_t Buffer::size() const { return state_->size; }
const Device& Buffer::device() const { return state_->device; }

const std::byte* Buffer::data() const {
  if (state_->deleted) throw RuntimeError("Array has been deleted: its buffer was donated or freed");
  wait();
  return state_->data;
}

std::byte* Buffer::mutable_data() { return const_cast<std::byte*>(data()); }

void Buffer::wait() const {
  if (!state_->ready.load(std::memory_order_acquire)) {
    std::unique_lock lock(state_->mutex);
    state_->became_ready.wait(lock, [this] { return state_->ready.load(); });
  }
  if (!state_->error.empty()) throw RuntimeError(state_->error);
}

void Buffer::set_ready() {
  {
    std::lock_guard lock(state_->mutex);
    state_->ready.store(true, std::memory_order_release);
  }
  state_->became_ready.notify_all();
}

void Buffer::set_error(std::string message) {
  {
    std::lock_guard lock(state_->mutex);
    state_->error = std::move(message);
    state_->ready.store(true, std::memory_order_release);
  }
  state_->became_ready.notify_all();
}

bool Buffer::deleted() const { return state_->deleted; }
void Buffer::mark_deleted() { state_->deleted = true; }

std::string to_string(const Device& device) { return concat(device.platform, ":", device.id); }

}  // namespace capibara
