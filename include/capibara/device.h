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

std::string to_string(const Device& device);  // "cpu:0"

// Bytes on one device. Copies share the same memory, its ready event and its deleted state.
class Buffer {
 public:
  Buffer() = default;

  static Buffer allocate(std::size_t bytes, const Device& device = {});
  // Memory owned by somebody else; `release` runs when the last copy is gone.
  static Buffer borrow(void* data, std::size_t bytes, std::function<void()> release, const Device& device = {});

  bool defined() const { return state_ != nullptr; }
  std::size_t size() const;
  const Device& device() const;

  // Both wait for the ready event and raise the error it carries; a deleted buffer raises RuntimeError.
  const std::byte* data() const;
  std::byte* mutable_data();

  void wait() const;
  void set_ready();
  void set_error(std::string message);

  bool deleted() const;
  void mark_deleted();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

namespace jax {
// The devices of a platform; the default platform where none is named.
std::vector<Device> devices(const std::string& platform = "");
std::vector<Device> local_devices(const std::string& platform = "");
int device_count(const std::string& platform = "");
}  // namespace jax

}  // namespace capibara
