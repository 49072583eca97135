// The part of PJRT's C interface that this backend calls: offsets of functions, and layouts of their arguments.
//
// A plugin fills a table of functions; each takes one structure that begins with its own size. A plugin refuses
// smaller structures than it knows and ignores what follows: Args adds zeros, so that newer plugins accept them too.
#pragma once

#include <cstddef>
#include <cstdint>

// Structures derive from their common head, which is laid out as if its members were their own first ones.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

// A structure stays a line.
// clang-format off
namespace capibara::pjrt::abi {

struct Error;
struct Client;
struct Device;
struct DeviceDescription;
struct Memory;
struct Buffer;
struct Event;
struct Executable;
struct LoadedExecutable;
struct Topology;

// Where a function stands in the table.
enum class Function : std::size_t {
  error_destroy = 40,
  error_message = 48,
  error_code = 56,
  plugin_initialize = 64,
  plugin_attributes = 72,
  event_destroy = 80,
  event_is_ready = 88,
  event_error = 96,
  event_await = 104,
  event_on_ready = 112,
  client_create = 120,
  client_destroy = 128,
  client_platform_name = 136,
  client_process_index = 144,
  client_platform_version = 152,
  client_devices = 160,
  client_addressable_devices = 168,
  client_compile = 200,
  client_buffer_from_host = 216,
  description_id = 224,
  description_process = 232,
  description_kind = 248,
  description_debug_string = 256,
  device_description = 272,
  device_local_hardware_id = 288,
  device_memories = 296,
  device_default_memory = 304,
  device_memory_stats = 312,
  memory_kind = 328,
  executable_destroy = 360,
  executable_output_count = 392,
  executable_code_size = 400,
  executable_cost_analysis = 408,
  executable_optimized_program = 424,
  executable_serialize = 432,
  loaded_destroy = 440,
  loaded_executable = 448,
  loaded_execute = 480,
  deserialize_and_load = 488,
  buffer_destroy = 504,
  buffer_device_size = 552,
  buffer_delete = 576,
  buffer_is_deleted = 584,
  buffer_copy_to_device = 592,
  buffer_to_host = 600,
  buffer_ready_event = 616,
  topology_create = 696,
  topology_destroy = 704,
  topology_platform = 712,
  topology_version = 720,
  topology_devices = 728,
  compile = 752,
  buffer_copy_to_memory = 776,
  client_topology = 800,
  executable_memory_stats = 808,
  client_dma_map = 920,
  client_dma_unmap = 928,
};

struct Extension {
  std::size_t struct_size;
  int32_t type;
  Extension* next;
};
static_assert(sizeof(Extension) == 24 && offsetof(Extension, next) == 16);
enum ExtensionType : int32_t { gpu_custom_call_extension = 0, profiler_extension = 1, ffi_extension = 5 };

// The head of the table; functions follow from byte 40 on.
struct Api {
  std::size_t struct_size;
  Extension* extension_start;
  std::size_t version_struct_size;
  Extension* version_extension;
  int32_t major_version, minor_version;
};
static_assert(sizeof(Api) == 40 && offsetof(Api, major_version) == 32);

struct Head {
  std::size_t struct_size;
  void* extension_start;
};
static_assert(sizeof(Head) == 16);

// A structure that reports more room than this header knows of.
template <class T>
struct Args : T {
  Args() : T{}, room_{} { this->struct_size = sizeof *this; }

 private:
  [[maybe_unused]] std::byte room_[256];
};

struct ErrorDestroy : Head { Error* error; };
struct ErrorMessage : Head { const Error* error; const char* message; std::size_t message_size; };
struct ErrorCode : Head { const Error* error; int32_t code; };
static_assert(offsetof(ErrorMessage, message_size) == 32 && offsetof(ErrorCode, code) == 24);

enum NamedType : int32_t { named_string = 0, named_integer = 1, named_integers = 2, named_float = 3, named_bool = 4 };
struct NamedValue : Head {
  const char* name;
  std::size_t name_size;
  NamedType type;
  union {
    const char* string;
    int64_t integer;
    const int64_t* integers;
    float real;
    bool boolean;
  };
  std::size_t value_size;
};
static_assert(sizeof(NamedValue) == 56 && offsetof(NamedValue, string) == 40 && offsetof(NamedValue, value_size) == 48);

struct PluginInitialize : Head {};
struct PluginAttributes : Head { const NamedValue* attributes; std::size_t count; };

struct EventDestroy : Head { Event* event; };
struct EventIsReady : Head { Event* event; bool is_ready; };
struct EventError : Head { Event* event; };
struct EventAwait : Head { Event* event; };
struct EventOnReady : Head { Event* event; void (*callback)(Error*, void*); void* user; };
static_assert(offsetof(EventIsReady, is_ready) == 24 && offsetof(EventOnReady, user) == 32);

// Questions of a client to the store that the processes of a program share. An error is made by `fail`.
using FailCallback = Error* (*)(int32_t code, const char* message, std::size_t size);
struct KeyValueGet : Head {
  const char* key;
  std::size_t key_size;
  int32_t timeout_ms;
  FailCallback* fail;
  void* user;
  char* value;  // freed by the deleter
  std::size_t value_size;
  void (*deleter)(char*);
};
struct KeyValueTryGet : Head {
  const char* key;
  std::size_t key_size;
  FailCallback* fail;
  void* user;
  char* value;
  std::size_t value_size;
  void (*deleter)(char*);
};
struct KeyValuePut : Head {
  const char* key;
  std::size_t key_size;
  const char* value;
  std::size_t value_size;
  FailCallback* fail;
  void* user;
};
static_assert(sizeof(KeyValueGet) == 80 && sizeof(KeyValueTryGet) == 72 && sizeof(KeyValuePut) == 64);

struct ClientCreate : Head {
  const NamedValue* options;
  std::size_t option_count;
  Error* (*get)(struct KeyValueGet*);
  void* get_user;
  Error* (*put)(struct KeyValuePut*);
  void* put_user;
  Client* client;
  Error* (*try_get)(struct KeyValueTryGet*);
  void* try_get_user;
};
static_assert(offsetof(ClientCreate, client) == 64 && sizeof(ClientCreate) == 88);
struct ClientDestroy : Head { Client* client; };
struct ClientName : Head { Client* client; const char* text; std::size_t size; };  // of platform and of its version
struct ClientProcessIndex : Head { Client* client; int32_t index; };
struct ClientDevices : Head { Client* client; Device* const* devices; std::size_t count; };
static_assert(offsetof(ClientName, size) == 32 && offsetof(ClientDevices, count) == 32);

struct ProgramText : Head { char* code; std::size_t code_size; const char* format; std::size_t format_size; };
struct ClientCompile : Head {
  Client* client;
  const ProgramText* program;
  const char* options;
  std::size_t options_size;
  LoadedExecutable* executable;
};
static_assert(sizeof(ProgramText) == 48 && offsetof(ClientCompile, executable) == 48);
struct Compile : Head {
  const Topology* topology;
  const ProgramText* program;
  const char* options;
  std::size_t options_size;
  Client* client;
  Executable* executable;
};
static_assert(offsetof(Compile, executable) == 56);
struct TopologyCreate : Head {
  const char* name;
  std::size_t name_size;
  const NamedValue* options;
  std::size_t option_count;
  Topology* topology;
};
struct TopologyDestroy : Head { Topology* topology; };
struct TopologyText : Head { Topology* topology; const char* text; std::size_t size; };
struct TopologyDevices : Head { Topology* topology; DeviceDescription* const* descriptions; std::size_t count; };
struct ClientTopology : Head { Client* client; Topology* topology; };
static_assert(offsetof(TopologyCreate, topology) == 48);

// The element types of buffers.
enum class Type : int32_t {
  invalid, pred, s8, s16, s32, s64, u8, u16, u32, u64, f16, f32, f64, bf16, c64, c128, f8e5m2, f8e4m3fn, f8e4m3b11fnuz,
  f8e5m2fnuz, f8e4m3fnuz, s4, u4, token, s2, u2, f8e4m3, f8e3m4, f8e8m0fnu, f4e2m1fn,
};
enum HostSemantics : int32_t { during_call = 0, until_transfer_completes = 1, zero_copy = 2 };
struct BufferFromHost : Head {
  Client* client;
  const void* data;
  Type type;
  const int64_t* dims;
  std::size_t rank;
  const int64_t* byte_strides;
  std::size_t stride_count;
  HostSemantics semantics;
  Device* device;
  Memory* memory;
  void* layout;
  Event* done_with_host;
  Buffer* buffer;
};
static_assert(offsetof(BufferFromHost, dims) == 40 && offsetof(BufferFromHost, semantics) == 72 &&
              offsetof(BufferFromHost, device) == 80 && offsetof(BufferFromHost, buffer) == 112);
struct ClientDma : Head { Client* client; void* data; std::size_t size; };

struct DescriptionId : Head { DeviceDescription* description; int32_t id; };
struct DescriptionText : Head { DeviceDescription* description; const char* text; std::size_t size; };
struct DeviceDescriptionOf : Head { Device* device; DeviceDescription* description; };
struct DeviceLocalId : Head { Device* device; int32_t id; };
struct DeviceDefaultMemory : Head { Device* device; Memory* memory; };
struct DeviceMemories : Head { Device* device; Memory* const* memories; std::size_t count; };
struct MemoryKind : Head { Memory* memory; const char* kind; std::size_t size; };
struct OptionalCount {
  int64_t value;
  bool is_set;
};
struct DeviceMemoryStats : Head {
  Device* device;
  int64_t bytes_in_use;
  OptionalCount peak_bytes_in_use, num_allocs, largest_alloc_size, bytes_limit, bytes_reserved, peak_bytes_reserved,
      bytes_reservable_limit, largest_free_block_bytes, pool_bytes, peak_pool_bytes;
};
static_assert(offsetof(DeviceMemoryStats, peak_bytes_in_use) == 32 && offsetof(DeviceMemoryStats, bytes_limit) == 80 &&
              offsetof(DeviceMemoryStats, peak_pool_bytes) == 176);

struct ExecutableDestroy : Head { Executable* executable; };
struct ExecutableCount : Head { Executable* executable; std::size_t count; };
struct ExecutableCodeSize : Head { Executable* executable; int64_t bytes; };
struct ExecutableCosts : Head { Executable* executable; std::size_t count; const NamedValue* properties; };
struct ExecutableProgram : Head { Executable* executable; ProgramText* program; };
struct Serialized;
struct ExecutableSerialize : Head {
  const Executable* executable;
  const char* bytes;
  std::size_t size;
  Serialized* holder;
  void (*deleter)(Serialized*);
};
static_assert(offsetof(ExecutableSerialize, deleter) == 48);
struct ExecutableMemory : Head {
  Executable* executable;
  int64_t generated_code, argument, output, alias, temp;
  int64_t host_generated_code, host_argument, host_output, host_alias, host_temp;
  int64_t peak;
};
static_assert(offsetof(ExecutableMemory, temp) == 56 && offsetof(ExecutableMemory, peak) == 104);

struct LoadedDestroy : Head { LoadedExecutable* executable; };
struct LoadedExecutableOf : Head { LoadedExecutable* loaded; Executable* executable; };
struct DeserializeAndLoad : Head {
  Client* client;
  const char* bytes;
  std::size_t size;
  LoadedExecutable* executable;
  const char* options;
  std::size_t options_size;
  void* load_options;
};
static_assert(offsetof(DeserializeAndLoad, options) == 48);

struct ExecuteOptions : Head {
  void* send_callbacks;
  void* recv_callbacks;
  std::size_t send_count, recv_count;
  int32_t launch_id;
  const int64_t* non_donatable;
  std::size_t non_donatable_count;
  void* context;
  const char* call_location;
  std::size_t task_count;
  void* task_ids;
  void* incarnation_ids;
};
static_assert(offsetof(ExecuteOptions, non_donatable) == 56 && offsetof(ExecuteOptions, call_location) == 80 &&
              offsetof(ExecuteOptions, incarnation_ids) == 104);
struct LoadedExecute : Head {
  LoadedExecutable* executable;
  ExecuteOptions* options;
  Buffer* const* const* arguments;
  std::size_t device_count, argument_count;
  Buffer** const* outputs;
  Event** events;
  Device* device;
};
static_assert(offsetof(LoadedExecute, outputs) == 56 && sizeof(LoadedExecute) == 80);

struct BufferOnly : Head { Buffer* buffer; };  // destroy and delete
struct BufferCopyToDevice : Head { Buffer* from; Device* device; Buffer* copy; };
struct BufferCopyToMemory : Head { Buffer* from; Memory* memory; Buffer* copy; };
struct BufferIsDeleted : Head { Buffer* buffer; bool is_deleted; };
struct BufferSize : Head { Buffer* buffer; std::size_t bytes; };
struct BufferReadyEvent : Head { Buffer* buffer; Event* event; };
// The layout of the elements: the order of their dimensions, without tiles.
struct TiledLayout : Head {
  const int64_t* minor_to_major;
  std::size_t minor_to_major_size;
  const int64_t* tile_dims;
  const std::size_t* tile_dim_sizes;
  std::size_t tile_count;
};
struct Layout : Head {
  TiledLayout tiled;
  int32_t type;  // 0: tiled
};
static_assert(sizeof(TiledLayout) == 56 && offsetof(Layout, type) == 72 && sizeof(Layout) == 80);
struct BufferToHost : Head { Buffer* source; Layout* layout; void* to; std::size_t size; Event* event; };
static_assert(offsetof(BufferToHost, event) == 48);

// ---- extensions ---------------------------------------------------------------------------------------------------

struct FfiRegister {
  std::size_t struct_size;
  const char* name;
  std::size_t name_size;
  void* handler;
  const char* platform;
  std::size_t platform_size;
  uint32_t traits;
};
static_assert(offsetof(FfiRegister, traits) == 48);
struct FfiExtension : Extension {
  void* type_register;
  void* user_data_add;
  Error* (*register_handler)(FfiRegister*);
};
static_assert(offsetof(FfiExtension, register_handler) == 40);

struct GpuRegister {
  std::size_t struct_size;
  const char* name;
  std::size_t name_size;
  int32_t api_version;
  void* instantiate;
  void* prepare;
  void* initialize;
  void* execute;
  uint32_t traits;
};
static_assert(offsetof(GpuRegister, execute) == 56 && offsetof(GpuRegister, traits) == 64);
struct GpuExtension : Extension {
  Error* (*custom_call)(GpuRegister*);
};

}  // namespace capibara::pjrt::abi

#pragma GCC diagnostic pop
