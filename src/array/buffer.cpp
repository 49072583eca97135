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
  std::atomic<std::byte*> data{nullptr};  // null: only the device has it so far
  std::shared_ptr<DeviceMemory> memory;   // the device's copy, under the mutex
  std::size_t size = 0;
  Device device;
  std::function<void()> release;
  std::atomic<bool> ready{true};
  std::atomic<bool> deleted{false};
  std::mutex mutex;
  std::condition_variable became_ready;
  std::string error;

  ~State() {
    memory.reset();  // it may still read what is released
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

Buffer Buffer::on_device(std::shared_ptr<DeviceMemory> memory, std::size_t bytes, const Device& device) {
  Buffer buffer = borrow(nullptr, bytes, {}, device);
  buffer.state_->memory = std::move(memory);
  return buffer;
}

std::shared_ptr<DeviceMemory> Buffer::device_memory() const {
  std::lock_guard lock(state_->mutex);
  return state_->memory;
}

void Buffer::keep_on_device(std::shared_ptr<DeviceMemory> copy) const {
  std::lock_guard lock(state_->mutex);
  state_->memory = std::move(copy);
}

std::size_t Buffer::size() const { return state_->size; }
const Device& Buffer::device() const { return state_->device; }

const std::byte* Buffer::data() const {
  if (state_->deleted) throw RuntimeError("Array has been deleted: its buffer was donated or freed");
  if (std::byte* data = state_->data.load(std::memory_order_acquire)) {
    wait();
    return data;
  }
  return fetched();
}

// The host's copy, made once. Buffers without memory of either kind are those of size 0.
const std::byte* Buffer::fetched() const {
  std::lock_guard lock(state_->mutex);
  if (std::byte* data = state_->data.load(std::memory_order_acquire)) return data;
  if (!state_->memory) return nullptr;
  auto copy = std::make_shared<Buffer>(allocate(state_->size));
  state_->memory->copy_to_host(copy->mutable_data());
  std::byte* data = copy->mutable_data();
  state_->release = [copy] {};
  state_->data.store(data, std::memory_order_release);
  return data;
}

std::byte* Buffer::mutable_data() {
  std::byte* data = const_cast<std::byte*>(this->data());
  std::lock_guard lock(state_->mutex);
  state_->memory.reset();  // the device's copy would not see what is written
  return data;
}

bool Buffer::is_ready() const {
  if (!state_->ready.load(std::memory_order_acquire)) return false;
  const std::shared_ptr<DeviceMemory> memory = device_memory();
  return state_->data.load(std::memory_order_acquire) || !memory || memory->is_ready();
}

void Buffer::wait() const {
  if (!state_->data.load(std::memory_order_acquire)) {
    if (const std::shared_ptr<DeviceMemory> memory = device_memory()) memory->wait();
  }
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
void Buffer::mark_deleted() {
  state_->deleted = true;
  std::lock_guard lock(state_->mutex);
  if (state_->memory) state_->memory->release();
  state_->memory.reset();
}

std::string to_string(const Device& device) { return concat(device.platform, ":", device.id); }

}  // namespace capibara
