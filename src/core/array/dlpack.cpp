// DLPack export and import.
#include <capibara/dlpack.h>

#include <cstdint>
#include <cstring>
#include <memory>

namespace capibara::jax::dlpack {

namespace {

enum Code : uint8_t {
  signed_code = 0,
  unsigned_code = 1,
  float_code = 2,
  bfloat_code = 4,
  complex_code = 5,
  bool_code = 6
};

DLDataType data_type(DType dtype) {
  uint8_t width = static_cast<uint8_t>(storage_size(dtype) * 8);
  if (dtype == DType::bfloat16) return {bfloat_code, 16, 1};
  switch (kind(dtype)) {
    case Kind::boolean:
      return {bool_code, 8, 1};
    case Kind::signed_integer:
      if (!is_sub_byte(dtype)) return {signed_code, width, 1};
      break;
    case Kind::unsigned_integer:
      if (!is_sub_byte(dtype)) return {unsigned_code, width, 1};
      break;
    case Kind::floating:
      if (bits(dtype) >= 16) return {float_code, width, 1};
      break;
    case Kind::complex:
      return {complex_code, width, 1};
    default:
      break;
  }
  throw TypeError(concat("to_dlpack: DLPack has no type for ", dtype_name(dtype), "; convert the array first"));
}

DType dtype_from(const DLDataType& type) {
  for (const DTypeRow& row : dtype_table) {
    bool exchanged = row.kind == Kind::boolean || row.kind == Kind::complex || (is_numeric(row.dtype) && row.bits >= 8);
    if (!exchanged || (is_floating(row.dtype) && row.bits < 16)) continue;
    DLDataType own = data_type(row.dtype);
    if (own.code == type.code && own.bits == type.bits && type.lanes == 1) return row.dtype;
  }
  throw TypeError(concat("from_dlpack: DLPack type code ", int{type.code}, " with ", int{type.bits}, " bits and ",
                         type.lanes, " lanes is not supported"));
}

struct Exported {
  DLManagedTensor tensor;
  Array array;
  Buffer held;  // keeps programs from overwriting the exported memory
  Shape shape;
};

bool row_major(const DLTensor& tensor) {
  if (!tensor.strides) return true;
  int64_t expected = 1;
  for (int i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

void copy_strided(const DLTensor& tensor, const std::byte* from, std::byte* to, std::size_t element) {
  Shape index(static_cast<std::size_t>(tensor.ndim), 0);
  for (int64_t count = element_count({tensor.shape, static_cast<std::size_t>(tensor.ndim)}); count > 0; --count) {
    int64_t offset = 0;
    for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * tensor.strides[i];
    std::memcpy(to, from + offset * static_cast<int64_t>(element), element);
    to += element;
    for (std::size_t i = index.size(); i-- > 0;) {
      if (++index[i] < tensor.shape[i]) break;
      index[i] = 0;
    }
  }
}

}  // namespace

DLManagedTensor* to_dlpack(const Array& array) {
  DLDataType type = data_type(array.dtype());
  auto exported = std::make_unique<Exported>();
  exported->array = array;
  exported->held = array.buffer();
  exported->shape = array.shape();
  DLTensor& tensor = exported->tensor.dl_tensor;
  tensor.data = const_cast<std::byte*>(array.raw_data());
  tensor.device = {1, 0};
  tensor.ndim = static_cast<int32_t>(exported->shape.size());
  tensor.dtype = type;
  tensor.shape = exported->shape.data();
  tensor.strides = nullptr;
  tensor.byte_offset = 0;
  exported->tensor.manager_ctx = exported.get();
  exported->tensor.deleter = [](DLManagedTensor* self) { delete static_cast<Exported*>(self->manager_ctx); };
  return &exported.release()->tensor;
}

Array from_dlpack(DLManagedTensor* managed) {
  if (!managed) throw ValueError("from_dlpack: the tensor is null");
  std::shared_ptr<DLManagedTensor> owner(managed, [](DLManagedTensor* self) {
    if (self->deleter) self->deleter(self);
  });
  const DLTensor& tensor = managed->dl_tensor;
  if (tensor.device.device_type != 1) {
    throw ValueError(
        concat("from_dlpack: the tensor is on device type ", tensor.device.device_type, ", only CPU (1) is supported"));
  }
  ArrayType type{{tensor.shape, tensor.shape + tensor.ndim}, dtype_from(tensor.dtype), false, false, {}};
  std::size_t element = static_cast<std::size_t>(storage_size(type.dtype));
  std::size_t bytes = static_cast<std::size_t>(type.size()) * element;
  auto* data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  const bool in_order = row_major(tensor), aligned = reinterpret_cast<std::uintptr_t>(data) % element == 0;
  if (in_order && aligned) return Array::from_buffer(type, Buffer::borrow(data, bytes, [owner] {}));
  Buffer buffer = Buffer::allocate(bytes);
  if (in_order)
    std::memcpy(buffer.mutable_data(), data, bytes);
  else
    copy_strided(tensor, data, buffer.mutable_data(), element);
  return Array::from_buffer(type, std::move(buffer));
}

}  // namespace capibara::jax::dlpack
