// Buffers: values on devices, all of which use the memory of this process.
#include <capibara/error.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backends/pjrt/client.h"
#include "backends/pjrt/server/objects.h"

namespace capibara::pjrt::server {

// ---- types ---------------------------------------------------------------------------------------------------------

abi::Type type_of(DType dtype) { return host_type(ArrayType{{}, dtype}).type; }

DType dtype_of(abi::Type type) {
  static const std::vector<std::pair<abi::Type, DType>> types = [] {
    std::vector<std::pair<abi::Type, DType>> list;
    for (const DTypeRow& row : dtype_table) {
      const bool narrow = row.bits == 1 || row.bits == 6;  // PJRT has no types of this width
      if (!narrow && row.kind != Kind::float0 && row.kind != Kind::key && row.kind != Kind::token)
        list.emplace_back(type_of(row.dtype), row.dtype);
    }
    return list;
  }();
  for (const auto& [known, dtype] : types) {
    if (known == type) return dtype;
  }
  throw Failure(Code::unimplemented,
                concat("capibara has no arrays with elements of PJRT's type number ", static_cast<int32_t>(type)));
}

// ---- arrays as buffers ---------------------------------------------------------------------------------------------

abi::Buffer* make_buffer(abi::Device& device, abi::Memory& memory, Array array) {
  auto buffer = std::make_unique<abi::Buffer>();
  buffer->device = &device;
  buffer->memory = &memory;
  buffer->type = type_of(array.dtype());
  buffer->dims = array.shape();
  buffer->array = std::move(array);
  return buffer.release();
}

namespace {

[[noreturn]] void refuse_deleted(const char* what) {
  throw Failure(Code::invalid_argument, concat(what, " called on deleted or donated buffer"));
}

// External readers keep the value alive until the last of them is gone.
void forget(abi::Buffer& buffer) {
  buffer.deleted = true;
  if (buffer.readers == 0) buffer.array = Array();
}

}  // namespace

Array live_array(abi::Buffer& buffer, const char* what) {
  const std::lock_guard lock(buffer.mutex);
  if (buffer.deleted) refuse_deleted(what);
  return buffer.array;
}

Array donated_array(abi::Buffer& buffer, bool& alone) {
  const std::lock_guard lock(buffer.mutex);
  if (buffer.deleted) refuse_deleted("Donate");
  Array array = buffer.array;
  alone = buffer.readers == 0;
  forget(buffer);
  return array;
}

namespace {

// ---- from the host -------------------------------------------------------------------------------------------------

// Copies elements with arbitrary strides to row-major order.
void copy_strided(const std::byte* from, const Shape& dims, const int64_t* strides, std::size_t element,
                  std::byte* to) {
  const int64_t count = element_count(dims);
  const std::size_t rank = dims.size();
  const int64_t row = rank == 0 ? 1 : dims.back();
  std::vector<int64_t> index(rank, 0);
  for (int64_t done = 0; done < count; done += row) {
    const std::byte* at = from;
    for (std::size_t dim = 0; dim + 1 < rank; ++dim) at += index[dim] * strides[dim];
    const int64_t step = rank == 0 ? 0 : strides[rank - 1];
    if (step == static_cast<int64_t>(element)) {
      std::memcpy(to, at, static_cast<std::size_t>(row) * element);
      to += static_cast<std::size_t>(row) * element;
    } else {
      for (int64_t i = 0; i < row; ++i, to += element) std::memcpy(to, at + i * step, element);
    }
    for (std::size_t dim = rank; dim-- > 0;) {
      if (dim + 1 == rank) continue;
      if (++index[dim] < dims[dim]) break;
      index[dim] = 0;
    }
  }
}

bool is_row_major(const Shape& dims, const int64_t* strides, std::size_t element) {
  auto expected = static_cast<int64_t>(element);
  for (std::size_t dim = dims.size(); dim-- > 0;) {
    if (dims[dim] != 1 && strides[dim] != expected) return false;
    expected *= dims[dim];
  }
  return true;
}

void check_layout(const void* layout, const char* what) {
  if (!layout) return;
  const auto& given = *static_cast<const abi::Layout*>(layout);
  const std::size_t rank = given.tiled.minor_to_major_size;
  bool plain = given.type == 0 && given.tiled.tile_count == 0;
  for (std::size_t i = 0; plain && i < rank; ++i)
    plain = given.tiled.minor_to_major[i] == static_cast<int64_t>(rank - 1 - i);
  if (!plain)
    throw Failure(Code::unimplemented, concat(what, ": only the row-major layout without tiles is supported"));
}

abi::Memory& memory_of(abi::Client& client, abi::Device* device, abi::Memory* memory) {
  return memory ? *memory : *(device ? device : client.devices.at(0))->memories[0];
}

Shape checked_dims(const int64_t* dims, std::size_t rank) {
  Shape shape(dims, dims + rank);
  for (const int64_t size : shape) {
    if (size < 0) throw Failure(Code::invalid_argument, concat("a buffer cannot have a dimension of size ", size));
  }
  return shape;
}

void from_host(abi::BufferFromHost& args) {
  check_layout(args.layout, "BufferFromHostBuffer");
  const DType dtype = dtype_of(args.type);
  const ArrayType type{checked_dims(args.dims, args.rank), dtype};
  const auto element = static_cast<std::size_t>(storage_size(dtype));
  const std::size_t bytes = static_cast<std::size_t>(type.size()) * element;
  if (args.stride_count != 0 && args.stride_count != args.rank) {
    throw Failure(Code::invalid_argument,
                  concat("BufferFromHostBuffer: expected ", args.rank, " strides, got ", args.stride_count));
  }
  const bool in_order = args.stride_count == 0 || is_row_major(type.shape, args.byte_strides, element);
  const auto* data = static_cast<const std::byte*>(args.data);
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  auto gate = std::make_shared<Gate>();
  Array array;
  if (args.semantics == abi::zero_copy && in_order && aligned && bytes > 0) {
    array = Array::from_buffer(type,
                               capibara::Buffer::borrow(const_cast<std::byte*>(data), bytes, [gate] { gate->open(); }));
  } else {
    capibara::Buffer buffer = capibara::Buffer::allocate(bytes);
    if (bytes > 0) {
      if (in_order)
        std::memcpy(buffer.address(), data, bytes);
      else
        copy_strided(data, type.shape, args.byte_strides, element, buffer.address());
    }
    array = Array::from_buffer(type, std::move(buffer));
    gate->open();
  }
  abi::Memory& memory = memory_of(*args.client, args.device, args.memory);
  args.buffer = make_buffer(*memory.device, memory, std::move(array));
  args.done_with_host = new abi::Event{{}, std::move(gate)};
}

// Borrows memory of the client, which is notified when it is no longer needed.
void view_of_memory(abi::ViewOfMemory& args) {
  check_layout(args.layout, "CreateViewOfDeviceBuffer");
  const ArrayType type{checked_dims(args.dims, args.rank), dtype_of(args.type)};
  const auto bytes = static_cast<std::size_t>(type.size() * storage_size(type.dtype));
  const auto over = [data = args.data, on_delete = args.on_delete, user = args.user] {
    if (on_delete) on_delete(data, user);
  };
  abi::Memory& memory = memory_of(*args.client, args.device, args.memory);
  args.buffer =
      make_buffer(*memory.device, memory, Array::from_buffer(type, capibara::Buffer::borrow(args.data, bytes, over)));
}

// ---- to the host ---------------------------------------------------------------------------------------------------

abi::Event* done() { return new abi::Event{}; }

void to_host(abi::BufferToHost& args) {
  check_layout(args.layout, "ToHostBuffer");
  const Array array = live_array(*args.source, "ToHostBuffer()");
  const std::size_t bytes = array.buffer().size();
  if (!args.to) {
    args.size = bytes;
    return;
  }
  if (args.size < bytes)
    throw Failure(Code::invalid_argument, concat("ToHostBuffer: expected room for ", bytes, " bytes, got ", args.size));
  if (bytes) std::memcpy(args.to, array.raw_data(), bytes);
  args.event = done();
}

void raw_to_host(abi::BufferRawToHost& args) {
  const Array array = live_array(*args.buffer, "CopyRawToHost()");
  const auto bytes = static_cast<int64_t>(array.buffer().size());
  if (args.offset < 0 || args.size < 0 || args.offset > bytes || args.size > bytes - args.offset) {
    throw Failure(Code::invalid_argument, concat("CopyRawToHost: expected a part of ", bytes, " bytes, got ", args.size,
                                                 " from ", args.offset));
  }
  if (args.size) std::memcpy(args.to, array.raw_data() + args.offset, static_cast<std::size_t>(args.size));
  args.event = done();
}

// ---- copies --------------------------------------------------------------------------------------------------------

// All devices share the memory of the process, and values are immutable: a copy is another handle to the same value.
abi::Buffer* copied(abi::Buffer& from, abi::Memory& memory) {
  return make_buffer(*memory.device, memory, live_array(from, "CopyToMemorySpace()"));
}

void copy_to_device(abi::BufferCopyToDevice& args) { args.copy = copied(*args.from, *args.device->memories[0]); }

void copy_to_memory(abi::BufferCopyToMemory& args) { args.copy = copied(*args.from, *args.memory); }

// ---- properties of a buffer ----------------------------------------------------------------------------------------

void buffer_destroy(abi::BufferOnly& args) { delete args.buffer; }

void buffer_delete(abi::BufferOnly& args) {
  const std::lock_guard lock(args.buffer->mutex);
  forget(*args.buffer);
}

void buffer_is_deleted(abi::BufferIsDeleted& args) {
  const std::lock_guard lock(args.buffer->mutex);
  args.is_deleted = args.buffer->deleted;
}

void buffer_type(abi::BufferTypeOf& args) { args.type = args.buffer->type; }

void buffer_dims(abi::BufferDims& args) {
  args.dims = args.buffer->dims.data();
  args.rank = args.buffer->dims.size();
}

void buffer_dynamic_dims(abi::BufferDynamicDims& args) {
  args.indices = nullptr;
  args.count = 0;
}

void buffer_layout(abi::BufferLayout& args) {
  abi::Buffer& buffer = *args.buffer;
  const std::lock_guard lock(buffer.mutex);
  if (buffer.minor_to_major.size() != buffer.dims.size()) {
    buffer.minor_to_major.resize(buffer.dims.size());
    std::iota(buffer.minor_to_major.rbegin(), buffer.minor_to_major.rend(), 0);
  }
  args.layout = {};
  args.layout.struct_size = sizeof args.layout;
  args.layout.tiled.struct_size = sizeof args.layout.tiled;
  args.layout.tiled.minor_to_major = buffer.minor_to_major.data();
  args.layout.tiled.minor_to_major_size = buffer.minor_to_major.size();
}

void buffer_size(abi::BufferSize& args) {
  args.bytes = static_cast<std::size_t>(element_count(args.buffer->dims) * storage_size(dtype_of(args.buffer->type)));
}

void buffer_device(abi::BufferDeviceOf& args) { args.device = args.buffer->device; }

void buffer_memory(abi::BufferMemoryOf& args) { args.memory = args.buffer->memory; }

void buffer_is_on_cpu(abi::BufferIsOnCpu& args) { args.is_on_cpu = true; }

// A deleted buffer counts as ready: the client aborts if this function fails.
void buffer_ready_event(abi::BufferReadyEvent& args) {
  const std::lock_guard lock(args.buffer->mutex);
  args.event = new abi::Event{};
  if (args.buffer->array.defined()) args.event->arrays.push_back(args.buffer->array);
}

// ---- external readers ----------------------------------------------------------------------------------------------

void increase_references(abi::BufferOnly& args) {
  const std::lock_guard lock(args.buffer->mutex);
  if (args.buffer->deleted) refuse_deleted("AcquireExternalReference()");
  ++args.buffer->readers;
}

void decrease_references(abi::BufferOnly& args) {
  const std::lock_guard lock(args.buffer->mutex);
  if (args.buffer->readers == 0) return;  // the client aborts if this function fails
  if (--args.buffer->readers == 0 && args.buffer->deleted) args.buffer->array = Array();
}

void data_pointer(abi::BufferPointer& args) {
  const std::lock_guard lock(args.buffer->mutex);
  if (!args.buffer->array.defined()) refuse_deleted("OpaqueDeviceMemoryDataPointer()");
  args.pointer = const_cast<std::byte*>(args.buffer->array.raw_data());
}

void unsafe_pointer(abi::BufferPointer& args) {
  args.pointer = const_cast<std::byte*>(live_array(*args.buffer, "UnsafePointer()").raw_data());
}

}  // namespace

void add_buffer_functions(Table& table) {
  using F = abi::Function;
  table.add<from_host>(F::client_buffer_from_host);
  table.add<view_of_memory>(F::client_view_of_memory);
  table.add<to_host>(F::buffer_to_host);
  table.add<raw_to_host>(F::buffer_copy_raw_to_host);
  table.add<copy_to_device>(F::buffer_copy_to_device);
  table.add<copy_to_memory>(F::buffer_copy_to_memory);
  table.add<buffer_destroy>(F::buffer_destroy);
  table.add<buffer_delete>(F::buffer_delete);
  table.add<buffer_is_deleted>(F::buffer_is_deleted);
  table.add<buffer_type>(F::buffer_type);
  table.add<buffer_dims>(F::buffer_dims);
  table.add<buffer_dims>(F::buffer_unpadded_dims);
  table.add<buffer_dynamic_dims>(F::buffer_dynamic_dims);
  table.add<buffer_layout>(F::buffer_layout);
  table.add<buffer_size>(F::buffer_device_size);
  table.add<buffer_device>(F::buffer_device);
  table.add<buffer_memory>(F::buffer_memory);
  table.add<buffer_is_on_cpu>(F::buffer_is_on_cpu);
  table.add<buffer_ready_event>(F::buffer_ready_event);
  table.add<increase_references>(F::buffer_increase_references);
  table.add<decrease_references>(F::buffer_decrease_references);
  table.add<data_pointer>(F::buffer_data_pointer);
  table.add<unsafe_pointer>(F::buffer_unsafe_pointer);
}

}  // namespace capibara::pjrt::server
