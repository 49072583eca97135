// The part of XLA's foreign function interface that our handlers read: the contents and layout of a call frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// Structures derive from their common head, which is laid out like leading members of their own.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace capibara::pjrt::ffi {

struct Head {
  std::size_t struct_size;
  void* extension_start;
};

struct Extension {
  std::size_t struct_size;
  int32_t type;  // 1: the caller queries metadata
  Extension* next;
};

struct Error;
enum ErrorCode : int32_t { internal = 13 };
struct ErrorCreate : Head {
  const char* message;
  int32_t code;
};
static_assert(offsetof(ErrorCreate, code) == 24);

struct StreamGet : Head {
  void* context;
  void* stream;
};
struct DeviceMemoryAllocate : Head {
  void* context;
  std::size_t size, alignment;
  void* data;
};
struct DeviceMemoryFree : Head {
  void* context;
  std::size_t size;
  void* data;
};
static_assert(offsetof(DeviceMemoryAllocate, data) == 40 && sizeof(DeviceMemoryFree) == 40);

// The functions begin at byte 40.
struct Api {
  std::size_t struct_size;
  void* extension_start;
  std::size_t version_struct_size;
  void* version_extension;
  int32_t major_version, minor_version;
  void* internal;
  Error* (*error_create)(ErrorCreate*);
  void* error_get_details;
  void* error_destroy;
  void* handler_register;
  Error* (*stream_get)(StreamGet*);
  void* type_register;
  void* context_get;
  void* state_set;
  void* state_get;
  Error* (*memory_allocate)(DeviceMemoryAllocate*);
  Error* (*memory_free)(DeviceMemoryFree*);
};
static_assert(offsetof(Api, error_create) == 48 && offsetof(Api, stream_get) == 80 &&
              offsetof(Api, memory_allocate) == 120 && offsetof(Api, memory_free) == 128);

struct Buffer : Head {
  int32_t dtype;  // XLA's own codes, which differ from PJRT's: 11 float32, 16 bfloat16
  void* data;
  int64_t rank;
  const int64_t* dims;
};
static_assert(offsetof(Buffer, data) == 24 && offsetof(Buffer, dims) == 40);

struct List : Head {  // operands, or results
  int64_t size;
  const int32_t* types;  // 1: a buffer
  void* const* values;
};
struct ByteSpan {
  const char* data;
  std::size_t size;
};
struct Scalar {
  int32_t dtype;
  void* value;
};
struct Attributes : Head {
  int64_t size;
  const int32_t* types;  // 1: array, 2: dictionary, 3: scalar, 4: string
  const ByteSpan* const* names;
  void* const* values;
};
static_assert(sizeof(List) == 40 && sizeof(Attributes) == 48);

struct CallFrame {
  std::size_t struct_size;
  Extension* extension_start;
  const Api* api;
  void* context;
  int32_t stage;  // 3: execute
  List operands;
  List results;
  Attributes attributes;
};
static_assert(offsetof(CallFrame, operands) == 40 && offsetof(CallFrame, results) == 80 &&
              offsetof(CallFrame, attributes) == 120);

struct Metadata {
  std::size_t struct_size;
  std::size_t version_struct_size;
  void* version_extension;
  int32_t major_version, minor_version;
  uint32_t traits;
};
static_assert(offsetof(Metadata, major_version) == 24 && offsetof(Metadata, traits) == 32);
struct MetadataExtension : Extension {
  Metadata* metadata;
};
static_assert(offsetof(MetadataExtension, metadata) == 24);

enum Traits : uint32_t { no_traits = 0, command_buffer_compatible = 1 };

// Answers a metadata query; true if the frame was one.
inline bool answer_metadata(CallFrame* frame, uint32_t traits) {
  Extension* extension = frame->extension_start;
  if (!extension || extension->type != 1) return false;
  Metadata* metadata = static_cast<MetadataExtension*>(extension)->metadata;
  metadata->major_version = 0;
  metadata->minor_version = 1;
  metadata->traits = traits;
  return true;
}

// The value of the attribute `name`: a Scalar or a ByteSpan; null if there is none.
inline const void* find_attribute(const CallFrame* frame, std::string_view name) {
  const Attributes& all = frame->attributes;
  for (int64_t i = 0; i < all.size; ++i) {
    if (std::string_view(all.names[i]->data, all.names[i]->size) == name) return all.values[i];
  }
  return nullptr;
}

// The stream on which the program runs; null if it has none.
inline void* stream_of(const CallFrame* frame) {
  StreamGet get{};
  get.struct_size = sizeof get;
  get.context = frame->context;
  return frame->api->stream_get(&get) ? nullptr : get.stream;
}

// The return value of a handler that failed.
inline Error* failure(const CallFrame* frame, const char* message) {
  ErrorCreate create{};
  create.struct_size = sizeof create;
  create.message = message;
  create.code = internal;
  return frame->api->error_create(&create);
}

}  // namespace capibara::pjrt::ffi

#pragma GCC diagnostic pop
