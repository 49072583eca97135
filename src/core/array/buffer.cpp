// Buffers: shared memory with a completion and a deleted state.
#include <capibara/device.h>
#include <capibara/error.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

#include "core/profile/recorder.h"
#include "core/runtime/arena.h"
#include "core/runtime/background.h"
#include "core/runtime/small_blocks.h"

namespace capibara {

struct Buffer::State {
  std::atomic<std::byte*> data{nullptr};  // null: only the device has it so far
  std::size_t size = 0;
  Device device;
  std::byte* block = nullptr;              // of the arena
  std::function<void()> release;           // of borrowed memory
  std::shared_ptr<Completion> completion;  // null: filled by its creator
  std::shared_ptr<DeviceMemory> memory;    // the device's copy, under the mutex
  std::mutex mutex;
  std::atomic<bool> deleted{false};

  State(std::size_t bytes, const Device& where) : size(bytes), device(where) {}
  ~State() {
    memory.reset();  // it may still read what is released
    if (block) arena::give(block);
    if (release) release();
  }
};

namespace {

constexpr std::size_t alignment = 64;  // one cache line; also what DLPack consumers expect at most

}  // namespace

Buffer Buffer::allocate(std::size_t bytes, const Device& device) {
  Buffer buffer;
  if (bytes >= arena::min_block) {
    buffer.state_ = std::make_shared<State>(bytes, device);
    std::byte* block = arena::take(bytes, arena::Purpose::current());
    buffer.state_->block = block;
    buffer.state_->data.store(block, std::memory_order_relaxed);
    return buffer;
  }
  try {
    // The bytes follow the state: one block for both.
    buffer.state_ = std::allocate_shared<State>(SmallBlocks<State>(bytes + alignment), bytes, device);
  } catch (const std::bad_alloc&) {
    throw RuntimeError(concat("allocate: out of memory for a buffer of ", bytes, " bytes on ", to_string(device)));
  }
  const auto behind = reinterpret_cast<std::uintptr_t>(buffer.state_.get() + 1);
  buffer.state_->data.store(reinterpret_cast<std::byte*>((behind + alignment - 1) / alignment * alignment),
                            std::memory_order_relaxed);
  return buffer;
}

Buffer Buffer::pending(std::size_t bytes, std::shared_ptr<Completion> completion, const Device& device) {
  Buffer buffer = allocate(bytes, device);
  buffer.state_->completion = std::move(completion);
  return buffer;
}

Buffer Buffer::borrow(void* data, std::size_t bytes, std::function<void()> release, const Device& device) {
  Buffer buffer;
  buffer.state_ = std::make_shared<State>(bytes, device);
  buffer.state_->data = static_cast<std::byte*>(data);
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
  if (deleted()) throw RuntimeError("Array has been deleted: its buffer was donated or freed");
  if (std::byte* data = state_->data.load(std::memory_order_acquire)) {
    if (state_->completion) state_->completion->wait();
    return data;
  }
  return fetched();
}

// The host's copy, made once. Only buffers of size 0 have neither host nor device memory.
const std::byte* Buffer::fetched() const {
  std::lock_guard lock(state_->mutex);
  if (std::byte* data = state_->data.load(std::memory_order_acquire)) return data;
  if (!state_->memory) return nullptr;
  profile::Timed timed(profile::EventKind::transfer, "device to host");
  if (timed.on()) timed.argument("bytes", std::to_string(state_->size));
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
  state_->memory.reset();  // the device's copy would not see the writes
  return data;
}

std::byte* Buffer::address() const { return state_->data.load(std::memory_order_acquire); }

bool Buffer::is_ready() const {
  if (state_->completion) return state_->completion->done();
  if (address()) return true;
  const std::shared_ptr<DeviceMemory> memory = device_memory();
  return !memory || memory->is_ready();
}

void Buffer::wait() const {
  if (state_->completion) return state_->completion->wait();
  if (address()) return;
  if (const std::shared_ptr<DeviceMemory> memory = device_memory()) memory->wait();
}

bool Buffer::deleted() const { return state_->deleted.load(std::memory_order_relaxed); }
void Buffer::mark_deleted() {
  state_->deleted.store(true, std::memory_order_relaxed);
  std::lock_guard lock(state_->mutex);
  if (state_->memory) state_->memory->release();
  state_->memory.reset();
}

Buffer Buffer::take(std::shared_ptr<Completion> completion) const {
  if (!state_->block || state_.use_count() != 1 || deleted()) return {};
  Buffer(*this).mark_deleted();
  Buffer taken;
  taken.state_ = std::make_shared<State>(state_->size, state_->device);
  taken.state_->block = std::exchange(state_->block, nullptr);
  taken.state_->data.store(state_->data.exchange(nullptr));
  taken.state_->completion = std::move(completion);
  return taken;
}

std::string to_string(const Device& device) { return concat(device.platform, ":", device.id); }

}  // namespace capibara
