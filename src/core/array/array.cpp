// Array: types, host values and queries on a handle.
#include <capibara/array.h>
#include <capibara/config.h>
#include <capibara/placement.h>

#include "core/array/body.h"
#include "core/array/element.h"
#include "core/array/format.h"
#include "core/array/readable.h"
#include "core/runtime/small_blocks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace capibara {

int64_t element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape) {
    if (__builtin_mul_overflow(count, size, &count))
      return std::count(shape.begin(), shape.end(), 0) > 0 ? 0 : std::numeric_limits<int64_t>::max();
  }
  return count;
}

ArrayType ArrayType::strong() const {
  ArrayType type = *this;
  type.weak_type = false;
  return type;
}

ArrayType ArrayType::with_shape(Shape s) const {
  ArrayType type = *this;
  type.shape = std::move(s);
  return type;
}

ArrayType ArrayType::with_dtype(DType d) const {
  ArrayType type = *this;
  type.dtype = d;
  return type;
}

namespace {

std::string dims_text(const Shape& shape, const Sharding& sharding = {}) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i) text += ",";
    text += std::to_string(shape[i]);
    if (sharding.is_explicit()) text += split_text(sharding, i);
  }
  return text + "]";
}

// Raises the error for an array without a readable value. Apart from `concrete`, which runs on every operand read.
[[noreturn, gnu::cold]] void refuse_reading(const Array& array, const char* what) {
  if (!array.defined()) throw ValueError(concat(what, ": the array handle is empty"));
  if (array.is_tracer()) {
    throw ConcretizationTypeError(concat(
        what, ": a concrete value is needed, but got a traced array of type ", to_string(array.type()), " inside ",
        array.body()->trace_kind(), ".\nHint: values of traced arrays are not known while a function is traced; use ",
        "lax::cond, lax::while_loop or lax::select, or mark the argument static.", array.body()->origin_line()));
  }
  if (array.type().ref)
    throw TypeError(concat(what, ": a ref is not a value, read it with get(), got ", to_string(array.type())));
  throw RuntimeError(
      concat("Array has been deleted with shape=", to_string(array.type()),
             ".\nHint: an argument that a jitted function takes by donate_argnums is gone after the call; "
             "use the function's result."));
}

inline const ConcreteBody& concrete(const Array& array, const char* what) {
  const ArrayBody* body = array.body().get();
  if (!body || body->trace() || body->type.ref) refuse_reading(array, what);
  const auto& own = static_cast<const ConcreteBody&>(*body);
  if (own.buffer.deleted()) refuse_reading(array, what);
  return own;
}

}  // namespace

std::string to_string(const ArrayType& type) {
  std::string text = concat(dtype_name(type.dtype), dims_text(type.shape, type.sharding), varying_text(type.sharding));
  return type.ref ? concat("Ref{", text, "}") : text;
}

std::string short_string(const ArrayType& type) {
  if (type.dtype == DType::token) return std::string(short_name(type.dtype));
  std::string text = concat(short_name(type.dtype), dims_text(type.shape, type.sharding), varying_text(type.sharding));
  return type.ref ? concat("Ref{", text, "}") : text;
}

Array Array::from_host(DType dtype, Shape shape, const void* elements, bool weak_type) {
  for (int64_t size : shape) {
    if (size < 0) throw ValueError(concat("array: dimensions must not be negative, got ", dims_text(shape)));
  }
  DType stored = canonicalize(dtype, config().enable_x64);
  ArrayType type{std::move(shape), stored, weak_type, false, {}};
  int64_t count = type.size();
  if (count > (int64_t{1} << 48))
    throw ValueError(concat("array: ", capibara::to_string(type), " has too many elements"));
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(count * storage_size(stored)));
  if (count == 0) {
    // nothing to copy: `elements` may be null
  } else if (stored == dtype) {
    std::memcpy(buffer.mutable_data(), elements, static_cast<std::size_t>(count * storage_size(stored)));
  } else {
    const auto size = static_cast<std::size_t>(storage_size(dtype));
    std::vector<std::byte> aligned;  // elements of a mapped file may be unaligned
    if (reinterpret_cast<std::uintptr_t>(elements) % size != 0) {
      const auto* bytes = static_cast<const std::byte*>(elements);
      aligned.assign(bytes, bytes + static_cast<std::size_t>(count) * size);
    }
    convert_elements(dtype, aligned.empty() ? elements : aligned.data(), stored, buffer.mutable_data(), count);
  }
  return from_buffer(std::move(type), std::move(buffer));
}

Array Array::from_buffer(ArrayType type, Buffer buffer, bool committed) {
  return Array(std::allocate_shared<const ConcreteBody>(SmallBlocks<ConcreteBody>(), std::move(type), std::move(buffer),
                                                        committed));
}

const std::shared_ptr<const NamedSharding>& host_placement(const Array& array) {
  static const std::shared_ptr<const NamedSharding> none;
  if (!array.defined() || array.is_tracer() || array.type().ref) return none;
  return static_cast<const ConcreteBody&>(*array.body()).placement;
}

Array placed_on_host(const Array& array, std::shared_ptr<const NamedSharding> placement) {
  ArrayType type = array.type();
  type.sharding = placement ? type_sharding(*placement, type.shape.size()) : Sharding();
  return Array(std::allocate_shared<const ConcreteBody>(SmallBlocks<ConcreteBody>(), std::move(type), array.buffer(),
                                                        true, std::move(placement)));
}

const ArrayType& Array::type() const {
  if (!body_) throw ValueError("the array handle is empty");
  return body_->type;
}

int64_t Array::shape(int64_t axis) const {
  int64_t rank = ndim();
  if (axis < -rank || axis >= rank) {
    throw IndexError(concat("shape: axis ", axis, " is out of range for ", capibara::to_string(type())));
  }
  return type().shape[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)];
}

bool Array::is_tracer() const { return body_ && body_->trace() != nullptr; }

const std::byte* Array::raw_data() const { return concrete(*this, "reading a value").buffer.data(); }

Array::operator bool() const {
  if (is_tracer()) {
    throw TracerBoolConversionError(concat("Attempted boolean conversion of a traced array of type ",
                                           capibara::to_string(type()), " inside ", body_->trace_kind(),
                                           ".\nHint: use lax::cond or lax::select instead of if on a traced value.",
                                           body_->origin_line()));
  }
  if (size() != 1) {
    throw ValueError(concat("bool: the truth value of an array with ", size(), " elements is ambiguous, got ",
                            capibara::to_string(type())));
  }
  return item<bool>();
}

const Array& Array::block_until_ready() const {
  if (!is_tracer()) concrete(*this, "block_until_ready").buffer.wait();
  return *this;
}

bool Array::is_ready() const { return is_tracer() || concrete(*this, "is_ready").buffer.is_ready(); }

const Buffer& Array::buffer() const { return concrete(*this, "buffer").buffer; }
Device Array::device() const { return concrete(*this, "device").buffer.device(); }
bool Array::committed() const {
  return !is_tracer() && !type().ref && static_cast<const ConcreteBody&>(*body_).committed;
}

bool Array::is_deleted() const {
  return defined() && !is_tracer() && !type().ref && static_cast<const ConcreteBody&>(*body_).buffer.deleted();
}

void Array::delete_buffers() const {
  if (is_deleted()) return;
  Buffer buffer = concrete(*this, "delete").buffer;
  buffer.mark_deleted();
}

std::string Array::to_string() const {
  if (!defined()) return "<empty>";
  if (is_tracer()) return concat("Traced<", short_string(type()), ">with<", body_->trace_kind(), ">");
  return is_readable(*this) ? array_str(dtype(), shape(), raw_data()) : text_without_values(*this);
}

std::string Array::repr() const {
  if (!defined() || is_tracer()) return to_string();
  return is_readable(*this) ? array_repr(dtype(), shape(), raw_data(), weak_type()) : text_without_values(*this);
}

std::ostream& operator<<(std::ostream& out, const Array& array) { return out << array.to_string(); }

Array Array::weak_scalar(bool value) { return from_host(DType::bool_, {}, &value); }

Array Array::weak_scalar(int64_t value) {
  if (!config().enable_x64 &&
      (value > std::numeric_limits<int32_t>::max() || value < std::numeric_limits<int32_t>::min())) {
    throw OverflowError(concat("Python int too large to convert to int32: Python integer ", value,
                               " out of bounds for int32; turn x64 on, or make an array of another dtype"));
  }
  return from_host(DType::int64, {}, &value, true);
}

Array Array::weak_scalar(uint64_t value) {
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    throw OverflowError(concat("number ", value, " does not fit int64; make a uint64 array instead"));
  }
  return weak_scalar(static_cast<int64_t>(value));
}

Array Array::weak_scalar(double value) { return from_host(DType::float64, {}, &value, true); }
Array Array::weak_scalar(std::complex<double> value) { return from_host(DType::complex128, {}, &value, true); }

namespace detail {

void copy_elements(const Array& from, DType to, void* out) {
  if (!is_readable(from)) refuse_distant_values();
  convert_elements(from.dtype(), from.raw_data(), to, out, from.size());
}

void throw_element_count(const Shape& shape, int64_t got) {
  throw ValueError(concat("array: shape ", dims_text(shape), " needs ", element_count(shape), " elements, got ", got));
}

}  // namespace detail
}  // namespace capibara
