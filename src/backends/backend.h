// The contract between the library and whatever runs programs.
#pragma once

#include <capibara/analysis.h>
#include <capibara/placement.h>
#include <capibara/primitive.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace capibara {

// A program compiled for one backend.
class Executable {
 public:
  virtual ~Executable() = default;
  // Runs on concrete arrays; donated inputs may be reused for outputs and are deleted afterwards.
  virtual Arrays execute(std::span<const Array> inputs, const std::vector<bool>& donated) = 0;
  // True if it takes microseconds and makes no callbacks: not worth releasing the GIL.
  virtual bool is_short() const { return false; }
  // Details of the executable for inputs with these placements (null: none in particular). Compiles now what the first
  // call would otherwise compile.
  virtual ExecutableDetails details(std::span<const std::shared_ptr<const NamedSharding>> inputs) {
    (void)inputs;
    return {};
  }
};

// A device as described by its backend.
struct DeviceFacts {
  Device device;
  std::string kind;  // "NVIDIA H200"
  int process = 0;
  bool addressable = true;                         // by this process
  std::vector<std::string> memories = {"device"};  // the memory kinds that it can address
  std::string default_memory = "device";
};

struct MemoryStats {
  int64_t bytes_in_use = 0;
  std::optional<int64_t> peak_bytes_in_use, bytes_limit, num_allocs, largest_alloc_size;
};

// Runs programs and owns the memory of their arrays: by default, the memory of this process.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;

  // ---- devices and memory ----
  virtual std::string platform() const { return "cpu"; }              // of its arrays: "cpu", "gpu", "tpu", "xla_cpu"
  virtual std::string lowering_platform() const { return "cpu"; }     // jax's name for it: "cpu", "cuda", "rocm", "tpu"
  virtual std::vector<DeviceFacts> devices() const;                   // of all processes
  virtual std::optional<MemoryStats> memory_stats(int device) const;  // nullopt if it keeps no statistics
  // Places the array as specified and commits it. Raises ValueError if the placement does not fit the array.
  virtual Array put(const Array& x, const NamedSharding& placement);
  // Joins the shards on this process's devices, in the order of the placement's devices, to an array of this shape.
  virtual Array join(const Shape& shape, const NamedSharding& placement, const std::vector<Array>& shards);

  // ---- programs ----
  virtual bool supports(const Primitive& primitive) const = 0;
  // How it runs a primitive, as `capibara coverage` prints it; several entries if it depends on types and parameters.
  virtual std::vector<std::string> ways(const Primitive& primitive) const {
    return supports(primitive) ? std::vector<std::string>{name()} : std::vector<std::string>{};
  }
  // Runs one operation on concrete arrays immediately.
  virtual Arrays run(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) = 0;
  virtual std::shared_ptr<Executable> compile(const Program& program) = 0;
  // Compiles with the donated inputs known in advance; `donated` has one entry per input.
  virtual std::shared_ptr<Executable> compile_donating(const Program& program, const std::vector<bool>& donated) {
    (void)donated;
    return compile(program);
  }
  // The compiled form of a program as readable text; nullopt if the backend does not offer one.
  virtual std::optional<std::string> compiled_text(const Program& program, const std::vector<bool>& donated) {
    (void)program, (void)donated;
    return std::nullopt;
  }
};

// Backends of one kind, which serve one or more platforms.
struct BackendFamily {
  const char* name;
  bool (*serves)(const std::string& platform);
  Backend& (*get)(const std::string& platform);
  // For backends with devices of their own; null for those that compute in the memory of this process.
  Backend& (*on)(const Device& device) = nullptr;             // the one that places unplaced inputs on this device
  Backend* (*holder)(const std::string& platform) = nullptr;  // the one whose arrays have this platform; null: none
};
std::span<const BackendFamily> backend_families();  // those that the program was linked with: src/assembly

Backend& backend(const std::string& name);     // raises ValueError listing the available names
Backend& backend(const Device& device);        // the one that places unplaced inputs on this device
Backend& default_backend();                    // of the default device, else of the configured platform
Backend& holder(const std::string& platform);  // the one whose memory holds arrays of this platform
std::string default_platform();                // of the default backend's arrays
std::string lowering_platform();               // the platform that programs are lowered for
// The device that committed inputs require if its platform is not the default one; nullopt: run on the default
// backend. Raises ValueError if they require two platforms.
std::optional<Device> demanded_device(std::span<const Array> inputs);
Arrays as_committed(Arrays outputs);  // results of committed inputs are committed too
std::vector<std::string> backend_names();
std::vector<DeviceFacts> device_facts(const std::string& platform);  // empty: the configured one

}  // namespace capibara
