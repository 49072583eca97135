// Devices of a backend, and the buffers that live on them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace capibara {

// One device of one backend; cheap to copy and to compare.
struct Device {
  std::string platform = "cpu";
  int id = 0;

  friend bool operator==(const Device&, const Device&) = default;
};

// The device as "cpu:0".
std::string to_string(const Device& device);

// Memory that only its device can read; its representation is up to the backend.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual bool is_ready() = 0;
  virtual void wait() = 0;                       // until the value is available; raises the error of the computation
  virtual void copy_to_host(std::byte* to) = 0;  // waits as well
  virtual void release() = 0;                    // it will not be read again
};

class Completion;  // of a program that runs in the background

// Bytes on one device. Copies share the same memory, its completion and its deleted state.
class Buffer {
 public:
  Buffer() = default;

  static Buffer allocate(std::size_t bytes, const Device& device = {});
  // Memory that a background program will fill.
  static Buffer pending(std::size_t bytes, std::shared_ptr<Completion> completion, const Device& device = {});
  // Memory owned by another party; `release` runs when the last copy is destroyed.
  static Buffer borrow(void* data, std::size_t bytes, std::function<void()> release, const Device& device = {});

  // The host copy is made on first use.
  static Buffer on_device(std::shared_ptr<DeviceMemory> memory, std::size_t bytes, const Device& device);

  bool defined() const { return state_ != nullptr; }
  bool same_as(const Buffer& other) const { return state_ == other.state_; }
  std::size_t size() const;
  const Device& device() const;

  // Both wait for the memory to be filled and raise the error of the program that should have filled it; a deleted
  // buffer raises RuntimeError.
  const std::byte* data() const;
  std::byte* mutable_data();

  // The same bytes on a device: those passed to on_device, or a copy that a backend has made and kept. Null if there
  // are none.
  std::shared_ptr<DeviceMemory> device_memory() const;
  void keep_on_device(std::shared_ptr<DeviceMemory> copy) const;

  bool is_ready() const;
  void wait() const;
  // The host memory, without waiting: for code that fills it or reads it later; null if only a device has it.
  std::byte* address() const;

  bool deleted() const;
  void mark_deleted();
  // The memory under a new state, for a program that overwrites it with its result; this buffer counts as deleted.
  // Undefined if the memory is owned by another party or may still be read by one: then nothing changes.
  Buffer take(std::shared_ptr<Completion> completion = nullptr) const;

 private:
  const std::byte* fetched() const;

  struct State;
  std::shared_ptr<State> state_;
};

namespace jax {
// The devices of a platform, by default of the default platform.
std::vector<Device> devices(const std::string& platform = "");
// The devices of a platform that this process can address.
std::vector<Device> local_devices(const std::string& platform = "");
// The number of devices of a platform.
int device_count(const std::string& platform = "");
}  // namespace jax

}  // namespace capibara
