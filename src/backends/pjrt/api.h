// The part of PJRT's C interface that this backend calls and that server/ implements for other clients: layouts of
// the functions' arguments.
//
// A plugin fills a table of functions; each takes one structure that begins with its own size. A plugin refuses
// structures smaller than its own and ignores trailing bytes: Args pads with zeros, so newer plugins accept them too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/pjrt/api_functions.h"

// Structures derive from their common head, which is laid out like leading members of their own.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

// One line per structure.
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
struct ExecuteContext;

struct Extension {
  std::size_t struct_size;
  int32_t type;
  Extension* next;
};
static_assert(sizeof(Extension) == 24 && offsetof(Extension, next) == 16);
enum ExtensionType : int32_t {
  gpu_custom_call_extension = 0,
  profiler_extension = 1,
  ffi_extension = 5,
  shardings_extension = 19,
};

// The head of the table; functions follow from byte 40.
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

// A structure that reports a larger size than this header declares.
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

// Requests of a client to the key-value store shared by the processes of a program. `fail` makes an error.
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
struct ClientName : Head { Client* client; const char* text; std::size_t size; };  // the platform's name, its version
struct ClientProcessIndex : Head { Client* client; int32_t index; };
struct ClientDevices : Head { Client* client; Device* const* devices; std::size_t count; };
struct ClientMemories : Head { Client* client; Memory* const* memories; std::size_t count; };
struct ClientLookup : Head { Client* client; int32_t id; Device* device; };
struct ClientDefaultAssignment : Head {
  Client* client;
  int32_t replicas, partitions;
  std::size_t size;
  int32_t* devices;  // filled in
};
static_assert(offsetof(ClientLookup, device) == 32 && offsetof(ClientDefaultAssignment, devices) == 40);
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
struct TopologyAttributes : Head { Topology* topology; const NamedValue* attributes; std::size_t count; };
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
struct ViewOfMemory : Head {
  Client* client;
  void* data;
  const int64_t* dims;
  std::size_t rank;
  Type type;
  void* layout;
  Device* device;
  void (*on_delete)(void* data, void* user);
  void* user;
  intptr_t stream;
  Buffer* buffer;
  Memory* memory;
};
static_assert(offsetof(ViewOfMemory, type) == 48 && offsetof(ViewOfMemory, memory) == 104);

struct DescriptionId : Head { DeviceDescription* description; int32_t id; };
struct DescriptionText : Head { DeviceDescription* description; const char* text; std::size_t size; };
struct DescriptionAttributes : Head {
  DeviceDescription* description;
  std::size_t count;
  const NamedValue* attributes;
};
struct DeviceDescriptionOf : Head { Device* device; DeviceDescription* description; };
struct DeviceLocalId : Head { Device* device; int32_t id; };
struct DeviceIsAddressable : Head { Device* device; bool is_addressable; };
struct DeviceDefaultMemory : Head { Device* device; Memory* memory; };
struct DeviceMemories : Head { Device* device; Memory* const* memories; std::size_t count; };
struct MemoryKind : Head { Memory* memory; const char* kind; std::size_t size; };
struct MemoryNumber : Head { Memory* memory; int32_t number; };  // its id, or the id of its kind
struct MemoryText : Head { Memory* memory; const char* text; std::size_t size; };
struct MemoryDevices : Head { Memory* memory; Device* const* devices; std::size_t count; };
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
struct ExecutableText : Head { Executable* executable; const char* text; std::size_t size; };  // name or fingerprint
struct ExecutableMemoryKinds : Head {
  Executable* executable;
  std::size_t count;
  const char* const* kinds;
  const std::size_t* sizes;
};
struct ExecutableOutputTypes : Head { Executable* executable; const Type* types; std::size_t count; };
struct ExecutableOutputDims : Head {
  Executable* executable;
  std::size_t count;
  const int64_t* dims;  // of all outputs, concatenated
  const std::size_t* ranks;
};
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
struct LoadedDevices : Head { LoadedExecutable* loaded; Device* const* devices; std::size_t count; };
struct LoadedIsDeleted : Head { LoadedExecutable* loaded; bool is_deleted; };
struct LoadedText : Head { LoadedExecutable* loaded; const char* text; std::size_t size; };
struct LoadedAssignment : Head {
  LoadedExecutable* loaded;
  const char* bytes;
  std::size_t size;
  Serialized* holder;
  void (*deleter)(Serialized*);
};
static_assert(offsetof(LoadedAssignment, deleter) == 48);
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
struct BufferTypeOf : Head { Buffer* buffer; Type type; };
struct BufferDims : Head { Buffer* buffer; const int64_t* dims; std::size_t rank; };
struct BufferDynamicDims : Head { Buffer* buffer; const std::size_t* indices; std::size_t count; };
struct BufferDeviceOf : Head { Buffer* buffer; Device* device; };
struct BufferMemoryOf : Head { Buffer* buffer; Memory* memory; };
struct BufferIsOnCpu : Head { Buffer* buffer; bool is_on_cpu; };
struct BufferPointer : Head { Buffer* buffer; void* pointer; };
struct BufferRawToHost : Head { Buffer* buffer; void* to; int64_t offset, size; Event* event; };
static_assert(offsetof(BufferRawToHost, event) == 48);
struct BufferCopyToDevice : Head { Buffer* from; Device* device; Buffer* copy; };
struct BufferCopyToMemory : Head { Buffer* from; Memory* memory; Buffer* copy; };
struct BufferIsDeleted : Head { Buffer* buffer; bool is_deleted; };
struct BufferSize : Head { Buffer* buffer; std::size_t bytes; };
struct BufferReadyEvent : Head { Buffer* buffer; Event* event; };
// The layout of the elements: the order of the dimensions, without tiling.
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
struct BufferLayout : Head { Buffer* buffer; Layout layout; };
static_assert(sizeof(BufferLayout) == 104);
struct ContextOnly : Head { ExecuteContext* context; };  // create and destroy

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
struct FfiUserData {
  int64_t type_id;
  void* data;
};
struct FfiUserDataAdd : Head { ExecuteContext* context; FfiUserData data; };
static_assert(sizeof(FfiUserDataAdd) == 40);
struct FfiExtension : Extension {
  void* type_register;
  Error* (*user_data_add)(FfiUserDataAdd*);
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

// Shardings of an executable's parameters or outputs, each an OpSharding message; null: unknown.
struct ExecutableShardings : Head {
  Executable* executable;
  std::size_t count;
  const char* const* shardings;
  const std::size_t* sizes;
};
static_assert(sizeof(ExecutableShardings) == 48);
struct ShardingsExtension : Extension {
  Error* (*parameters)(ExecutableShardings*);
  Error* (*outputs)(ExecutableShardings*);
};
static_assert(sizeof(ShardingsExtension) == 40);

}  // namespace capibara::pjrt::abi

#pragma GCC diagnostic pop
