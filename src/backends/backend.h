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

// A program made ready to run on one backend.
class Executable {
 public:
  virtual ~Executable() = default;
  // Runs on concrete arrays; donated inputs may be reused for outputs and are deleted afterwards.
  virtual Arrays execute(std::span<const Array> inputs, const std::vector<bool>& donated) = 0;
  // Whether it is over in microseconds and calls no one: not worth letting another thread run meanwhile.
  virtual bool is_short() const { return false; }
  // What is known of it for inputs with these placements (null: none in particular). Compiles now what would otherwise
  // wait for the first call.
  virtual ExecutableDetails details(std::span<const std::shared_ptr<const NamedSharding>> inputs) {
    (void)inputs;
    return {};
  }
};

// A device as its backend knows it.
struct DeviceFacts {
  Device device;
  std::string kind;  // "NVIDIA H200"
  int process = 0;
  bool addressable = true;                         // by this process
  std::vector<std::string> memories = {"device"};  // the kinds that it can address
  std::string default_memory = "device";
};

struct MemoryStats {
  int64_t bytes_in_use = 0;
  std::optional<int64_t> peak_bytes_in_use, bytes_limit, num_allocs, largest_alloc_size;
};

// Runs programs and owns the memory that their arrays are in: unless it says otherwise, that of this process.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;

  // ---- devices and memory ----
  virtual std::string platform() const { return "cpu"; }              // of its arrays: "cpu", "gpu", "tpu", "xla_cpu"
  virtual std::string lowering_platform() const { return "cpu"; }     // as jax calls it: "cpu", "cuda", "rocm", "tpu"
  virtual std::vector<DeviceFacts> devices() const;                   // of all processes
  virtual std::optional<MemoryStats> memory_stats(int device) const;  // nothing where it counts nothing
  // The array as the placement says, committed to it. Raises ValueError where it cannot be placed so.
  virtual Array put(const Array& x, const NamedSharding& placement);
  // An array of this shape from the parts that this process's devices hold, in the order of the placement's devices.
  virtual Array join(const Shape& shape, const NamedSharding& placement, const std::vector<Array>& shards);

  // ---- programs ----
  virtual bool supports(const Primitive& primitive) const = 0;
  // How it runs a primitive, in the words of `capibara coverage`; several where it depends on types and parameters.
  virtual std::vector<std::string> ways(const Primitive& primitive) const {
    return supports(primitive) ? std::vector<std::string>{name()} : std::vector<std::string>{};
  }
  // One operation on concrete arrays, now.
  virtual Arrays run(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) = 0;
  virtual std::shared_ptr<Executable> compile(const Program& program) = 0;
  // The same where it is known which inputs will be donated; `donated` has one entry for each.
  virtual std::shared_ptr<Executable> compile_donating(const Program& program, const std::vector<bool>& donated) {
    (void)donated;
    return compile(program);
  }
  // The form in which it runs a program, for readers; nothing where it does not show one.
  virtual std::optional<std::string> compiled_text(const Program& program, const std::vector<bool>& donated) {
    (void)program, (void)donated;
    return std::nullopt;
  }
};

// Backends of one kind, which serve one platform or several.
struct BackendFamily {
  const char* name;
  bool (*serves)(const std::string& platform);
  Backend& (*get)(const std::string& platform);
  // Those with devices of their own; null for backends that compute in the memory of this process.
  Backend& (*on)(const Device& device) = nullptr;             // whose unplaced inputs go to this device
  Backend* (*holder)(const std::string& platform) = nullptr;  // whose arrays have this platform; null: none
};
std::span<const BackendFamily> backend_families();  // that the program was linked with: src/assembly

Backend& backend(const std::string& name);     // raises ValueError listing the names there are
Backend& backend(const Device& device);        // whose unplaced inputs go to this device
Backend& default_backend();                    // of the default device, else of the configured platform
Backend& holder(const std::string& platform);  // whose memory arrays of this platform are in
std::string default_platform();                // of the default backend's arrays
std::string lowering_platform();               // that programs are lowered for
// The device that committed inputs ask for where its platform is not the default one's; nothing: run on the default
// backend. Raises ValueError where they ask for two platforms.
std::optional<Device> demanded_device(std::span<const Array> inputs);
Arrays as_committed(Arrays outputs);  // results of committed inputs are committed too
std::vector<std::string> backend_names();
std::vector<DeviceFacts> device_facts(const std::string& platform);  // empty: the configured one

}  // namespace capibara
