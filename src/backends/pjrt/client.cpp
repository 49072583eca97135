// A plugin's client: creation, compilation, and moving arrays to its devices.
#include "backends/pjrt/client.h"

#include <algorithm>
#include <cstdlib>

#include <capibara/error.h>

#include "backends/pjrt/named_values.h"
#include "core/processes/key_value_store.h"
#include "core/runtime/transfer_guard.h"

namespace capibara::pjrt {

using abi::Args;
using abi::Function;

namespace {

NamedValues client_options(const std::string& platform, int cpu_devices, const ProcessGroup& group) {
  NamedValues options;
  if (platform == "xla_cpu") options.integer("cpu_device_count", cpu_devices);
  if (platform == "cuda" || platform == "rocm") {
    // The variables with which jax's users control preallocation.
    // Taking three quarters of the card at startup costs 1.6 s on an H200: memory is allocated as needed, and kept.
    const char* preallocate = std::getenv("XLA_PYTHON_CLIENT_PREALLOCATE");
    options.boolean("preallocate",
                    preallocate && (std::string_view(preallocate) == "true" || std::string_view(preallocate) == "1"));
    if (const char* text = std::getenv("XLA_PYTHON_CLIENT_MEM_FRACTION"))
      options.real("memory_fraction", std::strtof(text, nullptr));
    if (group.store) {
      options.integer("node_id", group.process_id);
      options.integer("num_nodes", group.process_count);
    }
  }
  return options;
}

std::string public_platform(const std::string& platform) {
  return platform == "cuda" || platform == "rocm" ? "gpu" : platform;
}

}  // namespace

HostType host_type(const ArrayType& type) {
  HostType result{abi::Type::invalid, type.shape};
  switch (type.dtype) {
    case DType::bool_:
    case DType::float0:
      result.type = abi::Type::pred;
      break;
    case DType::int2:
      result.type = abi::Type::s2;
      break;
    case DType::int4:
      result.type = abi::Type::s4;
      break;
    case DType::int8:
      result.type = abi::Type::s8;
      break;
    case DType::int16:
      result.type = abi::Type::s16;
      break;
    case DType::int32:
      result.type = abi::Type::s32;
      break;
    case DType::int64:
      result.type = abi::Type::s64;
      break;
    case DType::uint2:
      result.type = abi::Type::u2;
      break;
    case DType::uint4:
      result.type = abi::Type::u4;
      break;
    case DType::uint8:
      result.type = abi::Type::u8;
      break;
    case DType::uint16:
      result.type = abi::Type::u16;
      break;
    case DType::uint32:
      result.type = abi::Type::u32;
      break;
    case DType::uint64:
      result.type = abi::Type::u64;
      break;
    case DType::float4_e2m1fn:
      result.type = abi::Type::f4e2m1fn;
      break;
    case DType::float8_e3m4:
      result.type = abi::Type::f8e3m4;
      break;
    case DType::float8_e4m3:
      result.type = abi::Type::f8e4m3;
      break;
    case DType::float8_e4m3b11fnuz:
      result.type = abi::Type::f8e4m3b11fnuz;
      break;
    case DType::float8_e4m3fn:
      result.type = abi::Type::f8e4m3fn;
      break;
    case DType::float8_e4m3fnuz:
      result.type = abi::Type::f8e4m3fnuz;
      break;
    case DType::float8_e5m2:
      result.type = abi::Type::f8e5m2;
      break;
    case DType::float8_e5m2fnuz:
      result.type = abi::Type::f8e5m2fnuz;
      break;
    case DType::float8_e8m0fnu:
      result.type = abi::Type::f8e8m0fnu;
      break;
    case DType::bfloat16:
      result.type = abi::Type::bf16;
      break;
    case DType::float16:
      result.type = abi::Type::f16;
      break;
    case DType::float32:
      result.type = abi::Type::f32;
      break;
    case DType::float64:
      result.type = abi::Type::f64;
      break;
    case DType::complex64:
      result.type = abi::Type::c64;
      break;
    case DType::complex128:
      result.type = abi::Type::c128;
      break;
    case DType::key_fry:
    case DType::key_rbg:
    case DType::key_unsafe_rbg:
      result.type = abi::Type::u32;
      result.shape.push_back(key_words(type.dtype));
      break;
    default:
      throw TypeError(concat("pjrt: plugins hold no arrays of type ", to_string(type)));
  }
  return result;
}

// ---- the store of several processes -------------------------------------------------------------------------------

namespace {

// Serves a client's request to the key-value store; errors become the plugin's own.
template <class Question, class Answer>
abi::Error* ask(Question* question, const Answer& answer) {
  constexpr int32_t internal = 13;
  constexpr std::pair<const char*, int32_t> codes[] = {
      {"DEADLINE_EXCEEDED", 4}, {"NOT_FOUND", 5}, {"ALREADY_EXISTS", 6}, {"UNAVAILABLE", 14}};
  try {
    answer(*static_cast<KeyValueStore*>(question->user), std::string(question->key, question->key_size));
    return nullptr;
  } catch (const std::exception& error) {
    const std::string_view text = error.what();
    int32_t code = internal;
    for (const auto& [name, number] : codes) {
      if (text.starts_with(name)) code = number;
    }
    return (*question->fail)(code, text.data(), text.size());
  }
}

template <class Question>
void give(Question* question, const std::string& value) {
  question->value = new char[value.size()];
  std::copy(value.begin(), value.end(), question->value);
  question->value_size = value.size();
  question->deleter = [](char* bytes) { delete[] bytes; };
}

abi::Error* get_value(abi::KeyValueGet* question) {
  return ask(question, [&](KeyValueStore& store, const std::string& key) {
    give(question, store.get(key, question->timeout_ms));
  });
}
abi::Error* try_get_value(abi::KeyValueTryGet* question) {
  return ask(question, [&](KeyValueStore& store, const std::string& key) {
    const std::optional<std::string> value = store.try_get(key);
    if (!value) throw RuntimeError(concat("NOT_FOUND: key '", key, "' has no value"));
    give(question, *value);
  });
}
abi::Error* put_value(abi::KeyValuePut* question) {
  return ask(question, [&](KeyValueStore& store, const std::string& key) {
    store.put(key, std::string(question->value, question->value_size), true);
  });
}

}  // namespace

Client::Client(std::shared_ptr<const Plugin> plugin, int cpu_devices)
    : plugin_(std::move(plugin)), platform_(public_platform(plugin_->platform())) {
  const ProcessGroup group = distributed::group();
  const NamedValues options = client_options(plugin_->platform(), cpu_devices, group);
  Args<abi::ClientCreate> create;
  create.options = options.list().data();
  create.option_count = options.list().size();
  if (group.store) {
    static auto* stores = new std::vector<std::shared_ptr<KeyValueStore>>;  // live as long as their clients: forever
    stores->push_back(group.store);
    create.get = get_value;
    create.put = put_value;
    create.try_get = try_get_value;
    create.get_user = create.put_user = create.try_get_user = group.store.get();
  }
  plugin_->call(Function::client_create, create,
                concat("Unable to initialize backend '", plugin_->platform(), "' of ", plugin_->path()));
  client_ = create.client;
  Args<abi::ClientProcessIndex> process;
  process.client = client_;
  plugin_->call(Function::client_process_index, process, "process index");
  process_ = process.index;
  list_devices();
  if (plugin_->platform() == "cuda") staging_ = std::make_unique<Staging>(*plugin_, client_);
}

void Client::list_devices() {
  Args<abi::ClientDevices> all, own;
  all.client = own.client = client_;
  plugin_->call(Function::client_devices, all, "devices");
  plugin_->call(Function::client_addressable_devices, own, "devices");
  for (std::size_t i = 0; i < all.count; ++i) {
    DeviceInfo info;
    info.handle = all.devices[i];
    info.addressable = std::find(own.devices, own.devices + own.count, info.handle) != own.devices + own.count;
    Args<abi::DeviceDescriptionOf> of;
    of.device = info.handle;
    plugin_->call(Function::device_description, of, "device");
    Args<abi::DescriptionId> id, process;
    id.description = process.description = of.description;
    plugin_->call(Function::description_id, id, "device");
    plugin_->call(Function::description_process, process, "device");
    info.id = id.id;
    info.process = process.id;
    Args<abi::DescriptionText> kind, text;
    kind.description = text.description = of.description;
    plugin_->call(Function::description_kind, kind, "device");
    plugin_->call(Function::description_debug_string, text, "device");
    info.kind.assign(kind.text, kind.size);
    info.text.assign(text.text, text.size);
    if (info.addressable) {
      auto kind_of = [&](abi::Memory* memory) {
        Args<abi::MemoryKind> args;
        args.memory = memory;
        plugin_->call(Function::memory_kind, args, "memory");
        return std::string(args.kind, args.size);
      };
      Args<abi::DeviceMemories> memories;
      memories.device = info.handle;
      plugin_->call(Function::device_memories, memories, "memories");
      for (std::size_t m = 0; m < memories.count; ++m)
        info.memories.push_back({kind_of(memories.memories[m]), memories.memories[m]});
      Args<abi::DeviceDefaultMemory> standard;
      standard.device = info.handle;
      // A plugin without default memory returns an error.
      if (abi::Error* error = plugin_->try_call(Function::device_default_memory, standard))
        plugin_->take_message(error);
      else
        info.default_memory = kind_of(standard.memory);
    }
    devices_.push_back(std::move(info));
  }
  std::sort(devices_.begin(), devices_.end(), [](const DeviceInfo& a, const DeviceInfo& b) { return a.id < b.id; });
  const auto first =
      std::find_if(devices_.begin(), devices_.end(), [](const DeviceInfo& info) { return info.addressable; });
  if (first == devices_.end())
    throw RuntimeError(concat("Unable to initialize backend '", plugin_->platform(), "': it has no device"));
  first_ = first->id;
}

const DeviceInfo& Client::info(int id) const {
  if (id >= 0 && static_cast<std::size_t>(id) < devices_.size() && devices_[static_cast<std::size_t>(id)].id == id) {
    return devices_[static_cast<std::size_t>(id)];
  }
  std::string known;
  for (const DeviceInfo& info : devices_) {
    if (info.id == id) return info;
    known += concat(known.empty() ? "" : ", ", platform_, ":", info.id);
  }
  throw ValueError(concat("no such device: ", platform_, ":", id, "; there are ", known));
}

abi::Memory* Client::memory(int device, const std::string& kind) const {
  const DeviceInfo& where = info(device);
  std::string known;
  for (const DeviceInfo::Memory& memory : where.memories) {
    if (memory.kind == kind || (kind.empty() && memory.kind == where.default_memory)) return memory.handle;
    known += concat(known.empty() ? "" : ", ", memory.kind);
  }
  throw ValueError(concat("Could not find memory addressable by device ", platform_, ":", device, ". Device ",
                          platform_, ":", device, " can address the following memory kinds: ", known,
                          ". Got memory kind: ", kind));
}

std::string Client::text(Function function) const {
  Args<abi::ClientName> args;
  args.client = client_;
  plugin_->call(function, args, "client");
  return std::string(args.text, args.size);
}

std::string Client::platform_version() const { return text(Function::client_platform_version); }

std::optional<MemoryStats> Client::memory_stats(int device) const {
  Args<abi::DeviceMemoryStats> args;
  args.device = handle(device);
  try {
    plugin_->call(Function::device_memory_stats, args, "memory_stats");
  } catch (const RuntimeError& error) {
    if (std::string_view(error.what()).find("UNIMPLEMENTED") == std::string_view::npos) throw;
    return std::nullopt;
  }
  MemoryStats stats;
  stats.bytes_in_use = args.bytes_in_use;
  if (args.peak_bytes_in_use.is_set) stats.peak_bytes_in_use = args.peak_bytes_in_use.value;
  if (args.bytes_limit.is_set) stats.bytes_limit = args.bytes_limit.value;
  if (args.num_allocs.is_set) stats.num_allocs = args.num_allocs.value;
  if (args.largest_alloc_size.is_set) stats.largest_alloc_size = args.largest_alloc_size.value;
  return stats;
}

std::unique_ptr<Loaded> Client::compile(const std::string& text, const CompileOptions& options,
                                        const std::string& what) {
  CompileArguments arguments(text, options);
  Args<abi::ClientCompile> args;
  args.client = client_;
  arguments.give_to(args);
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
  return concat(plugin_->path(), "\n", plugin_->version(), "\n", platform_version(), "\n", devices_[0].kind, "\n",
                device_count());
}

std::shared_ptr<DeviceBuffer> Client::buffer_of(const Array& array, int device) {
  const capibara::Buffer& host = array.buffer();
  if (auto known = std::dynamic_pointer_cast<DeviceBuffer>(host.device_memory())) {
    if (&known->client() == this && known->device() == device && known->memory_kind().empty()) return known;
  }
  std::shared_ptr<DeviceBuffer> copy = upload(array, device);
  if (host.device() == Device{}) host.keep_on_device(copy);
  return copy;
}

std::shared_ptr<DeviceBuffer> Client::upload(const Array& array, int device, const std::string& memory_kind) {
  const auto describe = [&] {
    return concat("aval=ShapedArray(", to_string(array.type()), "), dst=", platform_, ":", device);
  };
  // From one memory of this client to another, bypassing the host.
  if (auto known = std::dynamic_pointer_cast<DeviceBuffer>(array.buffer().device_memory());
      known && &known->client() == this) {
    if (plugin_->has(Function::buffer_copy_to_memory) && !info(device).default_memory.empty()) {
      transfer::check(transfer::Direction::device_to_device, describe);
      Args<abi::BufferCopyToMemory> args;
      args.from = known->handle();
      args.memory = memory(device, memory_kind);
      plugin_->call(Function::buffer_copy_to_memory, args, "device_put");
      return std::make_shared<DeviceBuffer>(*this, args.copy, array.type(), device, nullptr, memory_kind);
    }
  }
  transfer::check(transfer::Direction::host_to_device, describe);
  const HostType type = host_type(array.type());
  const capibara::Buffer host = array.buffer();
  Args<abi::BufferFromHost> args;
  args.client = client_;
  args.data = host.data();
  args.type = type.type;
  args.dims = type.shape.data();
  args.rank = type.shape.size();
  args.semantics = host.size() < 65536 ? abi::during_call : abi::until_transfer_completes;
  const std::shared_ptr<std::byte> block = staging_block(host.size());
  if (block) {
    copy_in_parallel(block.get(), host.data(), host.size());
    args.data = block.get();
  }
  args.device = handle(device);
  if (!memory_kind.empty()) args.memory = memory(device, memory_kind);
  plugin_->call(Function::client_buffer_from_host, args, "device_put");
  if (args.done_with_host) {
    Event done(*plugin_, args.done_with_host);
    // Keeps the host memory until it has been read; a failure is reported by the buffer itself.
    if (block)
      done.on_ready([block](const std::string&) {});
    else if (args.semantics != abi::during_call)
      done.on_ready([host](const std::string&) {});
  }
  return std::make_shared<DeviceBuffer>(*this, args.buffer, array.type(), device, nullptr, memory_kind);
}

}  // namespace capibara::pjrt
