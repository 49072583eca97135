// A plugin's client: creating it, compiling, and moving arrays to its devices.
#include "backends/pjrt/client.h"

#include <cstdlib>

#include <capibara/error.h>

namespace capibara::pjrt {

using abi::Args;
using abi::Function;

namespace {

// Names and values that a plugin's client is created with.
class NamedValues {
 public:
  void integer(const char* name, int64_t value) { add(name, abi::named_integer).integer = value; }
  void real(const char* name, float value) { add(name, abi::named_float).real = value; }
  void boolean(const char* name, bool value) { add(name, abi::named_bool).boolean = value; }
  const std::vector<abi::NamedValue>& list() const { return values_; }

 private:
  abi::NamedValue& add(const char* name, abi::NamedType type) {
    abi::NamedValue value{};
    value.struct_size = sizeof value;
    value.name = name;
    value.name_size = std::string_view(name).size();
    value.type = type;
    value.value_size = 1;
    values_.push_back(value);
    return values_.back();
  }
  std::vector<abi::NamedValue> values_;
};

NamedValues client_options(const std::string& platform, int cpu_devices) {
  NamedValues options;
  if (platform == "xla_cpu") options.integer("cpu_device_count", cpu_devices);
  if (platform == "cuda" || platform == "rocm") {
    // The variables by which jax's users choose how much memory is taken at once.
    // Taking three quarters of the card at the start costs 1.6 s on an H200: memory is taken as it is needed, and kept.
    const char* preallocate = std::getenv("XLA_PYTHON_CLIENT_PREALLOCATE");
    options.boolean("preallocate", preallocate && (std::string_view(preallocate) == "true" || std::string_view(preallocate) == "1"));
    if (const char* text = std::getenv("XLA_PYTHON_CLIENT_MEM_FRACTION")) options.real("memory_fraction", std::strtof(text, nullptr));
  }
  return options;
}

std::string public_platform(const std::string& platform) { return platform == "cuda" || platform == "rocm" ? "gpu" : platform; }

}  // namespace

HostType host_type(const ArrayType& type) {
  HostType result{abi::Type::invalid, type.shape};
  switch (type.dtype) {
    case DType::bool_:
    case DType::float0: result.type = abi::Type::pred; break;
    case DType::int2: result.type = abi::Type::s2; break;
    case DType::int4: result.type = abi::Type::s4; break;
    case DType::int8: result.type = abi::Type::s8; break;
    case DType::int16: result.type = abi::Type::s16; break;
    case DType::int32: result.type = abi::Type::s32; break;
    case DType::int64: result.type = abi::Type::s64; break;
    case DType::uint2: result.type = abi::Type::u2; break;
    case DType::uint4: result.type = abi::Type::u4; break;
    case DType::uint8: result.type = abi::Type::u8; break;
    case DType::uint16: result.type = abi::Type::u16; break;
    case DType::uint32: result.type = abi::Type::u32; break;
    case DType::uint64: result.type = abi::Type::u64; break;
    case DType::float4_e2m1fn: result.type = abi::Type::f4e2m1fn; break;
    case DType::float8_e3m4: result.type = abi::Type::f8e3m4; break;
    case DType::float8_e4m3: result.type = abi::Type::f8e4m3; break;
    case DType::float8_e4m3b11fnuz: result.type = abi::Type::f8e4m3b11fnuz; break;
    case DType::float8_e4m3fn: result.type = abi::Type::f8e4m3fn; break;
    case DType::float8_e4m3fnuz: result.type = abi::Type::f8e4m3fnuz; break;
    case DType::float8_e5m2: result.type = abi::Type::f8e5m2; break;
    case DType::float8_e5m2fnuz: result.type = abi::Type::f8e5m2fnuz; break;
    case DType::float8_e8m0fnu: result.type = abi::Type::f8e8m0fnu; break;
    case DType::bfloat16: result.type = abi::Type::bf16; break;
    case DType::float16: result.type = abi::Type::f16; break;
    case DType::float32: result.type = abi::Type::f32; break;
    case DType::float64: result.type = abi::Type::f64; break;
    case DType::complex64: result.type = abi::Type::c64; break;
    case DType::complex128: result.type = abi::Type::c128; break;
    case DType::key_fry:
    case DType::key_rbg:
    case DType::key_unsafe_rbg:
      result.type = abi::Type::u32;
      result.shape.push_back(key_words(type.dtype));
      break;
    default: throw TypeError(concat("pjrt: plugins hold no arrays of type ", to_string(type)));
  }
  return result;
}

Client::Client(std::shared_ptr<const Plugin> plugin, int cpu_devices)
    : plugin_(std::move(plugin)), platform_(public_platform(plugin_->platform())) {
  const NamedValues options = client_options(plugin_->platform(), cpu_devices);
  Args<abi::ClientCreate> create;
  create.options = options.list().data();
  create.option_count = options.list().size();
  plugin_->call(Function::client_create, create, concat("Unable to initialize backend '", plugin_->platform(), "' of ", plugin_->path()));
  client_ = create.client;
  Args<abi::ClientDevices> devices;
  devices.client = client_;
  plugin_->call(Function::client_addressable_devices, devices, "devices");
  devices_.assign(devices.devices, devices.devices + devices.count);
  if (devices_.empty()) throw RuntimeError(concat("Unable to initialize backend '", plugin_->platform(), "': it has no device"));
}

std::string Client::text(Function function) const {
  Args<abi::ClientName> args;
  args.client = client_;
  plugin_->call(function, args, "client");
  return std::string(args.text, args.size);
}

std::string Client::platform_version() const { return text(Function::client_platform_version); }

std::string Client::description(int device, Function function) const {
  Args<abi::DeviceDescriptionOf> description;
  description.device = handle(device);
  plugin_->call(Function::device_description, description, "device");
  Args<abi::DescriptionText> args;
  args.description = description.description;
  plugin_->call(function, args, "device");
  return std::string(args.text, args.size);
}

std::string Client::device_kind(int device) const { return description(device, Function::description_kind); }
std::string Client::device_text(int device) const { return description(device, Function::description_debug_string); }

MemoryStats Client::memory_stats(int device) const {
  Args<abi::DeviceMemoryStats> args;
  args.device = handle(device);
  plugin_->call(Function::device_memory_stats, args, "memory_stats");
  MemoryStats stats;
  stats.bytes_in_use = args.bytes_in_use;
  if (args.peak_bytes_in_use.is_set) stats.peak_bytes_in_use = args.peak_bytes_in_use.value;
  if (args.bytes_limit.is_set) stats.bytes_limit = args.bytes_limit.value;
  return stats;
}

std::unique_ptr<Loaded> Client::compile(const std::string& text, const CompileOptions& options, const std::string& what) {
  Args<abi::ProgramText> program;
  std::string code = text;  // the interface does not promise to leave it alone
  program.code = code.data();
  program.code_size = code.size();
  program.format = "mlir";
  program.format_size = 4;
  const std::string settings = options.serialize();
  Args<abi::ClientCompile> args;
  args.client = client_;
  args.program = &program;
  args.options = settings.data();
  args.options_size = settings.size();
  plugin_->call(Function::client_compile, args, what);
  return std::make_unique<Loaded>(*this, args.executable);
}

std::unique_ptr<Loaded> Client::load(const std::string& serialized) {
  Args<abi::DeserializeAndLoad> args;
  args.client = client_;
  args.bytes = serialized.data();
  args.size = serialized.size();
  if (!plugin_->has(Function::deserialize_and_load)) return nullptr;
  if (abi::Error* error = plugin_->try_call(Function::deserialize_and_load, args)) {
    plugin_->take_message(error);
    return nullptr;
  }
  return std::make_unique<Loaded>(*this, args.executable);
}

std::string Client::fingerprint() const {
  return concat(plugin_->path(), "\n", plugin_->version(), "\n", platform_version(), "\n", device_kind(0), "\n", device_count());
}

std::shared_ptr<DeviceBuffer> Client::buffer_of(const Array& array, int device) {
  const capibara::Buffer& host = array.buffer();
  if (auto known = std::dynamic_pointer_cast<DeviceBuffer>(host.device_memory())) {
    if (&known->client() == this && known->device() == device) return known;
  }
  std::shared_ptr<DeviceBuffer> copy = upload(array, device);
  if (host.device() == Device{}) host.keep_on_device(copy);
  return copy;
}

std::shared_ptr<DeviceBuffer> Client::upload(const Array& array, int device) {
  const HostType type = host_type(array.type());
  const capibara::Buffer host = array.buffer();
  Args<abi::BufferFromHost> args;
  args.client = client_;
  args.data = host.data();
  args.type = type.type;
  args.dims = type.shape.data();
  args.rank = type.shape.size();
  args.semantics = host.size() < 65536 ? abi::during_call : abi::until_transfer_completes;
  args.device = handle(device);
  plugin_->call(Function::client_buffer_from_host, args, "device_put");
  if (args.done_with_host) {
    Event done(*plugin_, args.done_with_host);
    // The host's memory stays until it has been read; a failure shows at the buffer itself.
    if (args.semantics != abi::during_call) done.on_ready([host](const std::string&) {});
  }
  return std::make_shared<DeviceBuffer>(*this, args.buffer, array.type(), device);
}

}  // namespace capibara::pjrt
