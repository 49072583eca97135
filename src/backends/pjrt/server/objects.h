// The objects behind the handles of a client of the plugin. capibara::Array holds the values of a buffer.
#pragma once

#include <capibara/array.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/pjrt/api.h"
#include "backends/pjrt/named_values.h"

namespace capibara::pjrt::server {

class Compiled;

// The codes of PJRT's errors.
enum class Code : int32_t {
  invalid_argument = 3,
  not_found = 5,
  resource_exhausted = 8,
  failed_precondition = 9,
  unimplemented = 12,
  internal = 13
};

// An error with the code that the client sees.
class Failure : public Error {
 public:
  Failure(Code code, const std::string& text) : Error(text), code(code) {}
  Code code;
};
// The client's form of an error; the caller owns it.
abi::Error* make_error(const std::exception_ptr& error);

// An event that happens once, with callbacks.
class Gate {
 public:
  bool is_open() const { return open_.load(std::memory_order_acquire); }
  void open();
  void wait();
  void then(std::function<void()> what);  // runs it now if open

 private:
  std::mutex mutex_;
  std::atomic<bool> open_{false};
  std::vector<std::function<void()>> waiting_;
};

}  // namespace capibara::pjrt::server

namespace capibara::pjrt::abi {

struct Error {
  int32_t code;
  std::string text;
};

struct Memory {
  int id, kind_id;
  std::string kind, text;
  Device* device;
};

struct DeviceDescription {
  int id;
  std::string kind, text;
};

struct Device {
  DeviceDescription description;
  Client* client;
  std::vector<Memory*> memories;  // the first is the default
};

struct Topology {
  std::string platform, version;
  std::vector<DeviceDescription*> descriptions;
};

struct Client {
  std::string version;
  std::vector<std::unique_ptr<Device>> owned_devices;
  std::vector<std::unique_ptr<Memory>> owned_memories;
  std::vector<Device*> devices;
  std::vector<Memory*> memories;
  Topology topology;
  void* python_call = nullptr;  // a function of Python that calls others: callbacks.h
};

// Complete when the arrays have their values, or when the gate is open; with neither, from the start.
struct Event {
  std::vector<Array> arrays;
  std::shared_ptr<server::Gate> gate;
};

// A value on one device. Deletion or donation drops its array, unless there are external readers.
struct Buffer {
  Device* device;
  Memory* memory;
  Type type;
  Shape dims;
  std::mutex mutex;
  Array array;
  std::size_t readers = 0;  // external references
  bool deleted = false;
  // The layout reported to clients: row-major.
  std::vector<int64_t> minor_to_major;
};

// Both kinds of executables share the compiled program.
struct Executable {
  std::shared_ptr<server::Compiled> compiled;
};
struct LoadedExecutable {
  std::shared_ptr<server::Compiled> compiled;
  std::vector<Device*> devices;  // by partition
  bool deleted = false;
};

// The state of one execution: the functions that its callbacks call.
struct ExecuteContext {
  std::vector<void*> functions;
};

struct Serialized {
  std::string bytes;
};

}  // namespace capibara::pjrt::abi

namespace capibara::pjrt::server {

// ---- arrays as buffers: buffers.cpp --------------------------------------------------------------------------------

DType dtype_of(abi::Type type);  // raises Failure for a type that arrays do not have
abi::Type type_of(DType dtype);  // the inverse
abi::Buffer* make_buffer(abi::Device& device, abi::Memory& memory, Array array);
Array live_array(abi::Buffer& buffer, const char* what);  // raises Failure if it was deleted
// The value, for an execution that takes ownership: the buffer counts as deleted. If there are other readers, a copy.
Array donated_array(abi::Buffer& buffer, bool& alone);

// ---- the functions of the table, by subject ------------------------------------------------------------------------

// A table of functions, which clients find by offset.
class Table;
void add_client_functions(Table& table);
void add_buffer_functions(Table& table);
void add_executable_functions(Table& table);
void add_event_functions(Table& table);

class Table {
 public:
  // Adds a function that takes one structure and may raise.
  template <auto function>
  void add(abi::Function where) {
    set(where, reinterpret_cast<void*>(&call<function>));
  }
  void set(abi::Function where, void* function);
  void extend(abi::Extension& extension);
  const abi::Api* api() const { return reinterpret_cast<const abi::Api*>(bytes_); }
  abi::Api& head() { return *reinterpret_cast<abi::Api*>(bytes_); }

  static constexpr std::size_t size = 1064;  // of PJRT 0.91

  template <class Args>
  static Args* argument_of(void (*)(Args&));
  // The function as clients call it: an error is a handle.
  template <auto function>
  static abi::Error* call(decltype(argument_of(function)) args) noexcept {
    try {
      function(*args);
      return nullptr;
    } catch (...) {
      return make_error(std::current_exception());
    }
  }

 private:
  alignas(8) std::byte bytes_[size] = {};
};

}  // namespace capibara::pjrt::server
