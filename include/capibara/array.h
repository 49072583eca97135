// Array: an immutable n-dimensional value, either concrete on devices or traced by a transform.
#pragma once

#include <capibara/device.h>
#include <capibara/dtype.h>
#include <capibara/error.h>
#include <capibara/sharding.h>

#include <complex>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace capibara {

using Shape = std::vector<int64_t>;

// The number of elements of a shape: the product of its sizes.
int64_t element_count(std::span<const int64_t> shape);

// The type of an array, known before its value is computed.
struct ArrayType {
  Shape shape;
  DType dtype = DType::float32;
  bool weak_type = false;  // came from a plain number: takes the other operand's dtype
  bool ref = false;        // a mutable reference to an array of this type
  Sharding sharding;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t size() const { return element_count(shape); }
  ArrayType strong() const;  // the same without weak_type
  ArrayType with_shape(Shape s) const;
  ArrayType with_dtype(DType d) const;  // keeps weak_type
  friend bool operator==(const ArrayType&, const ArrayType&) = default;
};

// The type as jax prints it in messages: float32[2,3].
std::string to_string(const ArrayType& type);
// The type as jaxprs print it: f32[2,3].
std::string short_string(const ArrayType& type);

class ArrayBody;  // what a handle points to: a concrete value or a tracer
class Trace;
class Index;
class IndexUpdate;

// Any C++ number that becomes a weakly typed scalar (bool: strongly typed).
template <class T>
concept Number =
    std::is_arithmetic_v<T> || std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

class Array {
 public:
  Array() = default;  // an empty handle; in transform rules it denotes a symbolic zero
  template <Number T>
  Array(T value) : Array(weak_scalar(value)) {}
  explicit Array(std::shared_ptr<const ArrayBody> body) : body_(std::move(body)) {}

  Array(const Array&) = default;
  Array(Array&&) noexcept = default;
  Array& operator=(const Array&) & = default;
  Array& operator=(Array&&) & noexcept = default;
  template <class T>
  Array& operator=(T&&) && = delete;  // arrays do not change in place: write x = x.at(i).set(v)

  // A concrete array from host elements in row-major order; 64-bit types are narrowed unless x64 is on.
  static Array from_host(DType dtype, Shape shape, const void* elements, bool weak_type = false);
  // Adopts a buffer: no copy, no narrowing.
  static Array from_buffer(ArrayType type, Buffer buffer, bool committed = false);

  bool defined() const { return body_ != nullptr; }
  const ArrayType& type() const;
  const Shape& shape() const { return type().shape; }
  int64_t shape(int64_t axis) const;  // negative axes count from the end
  int64_t ndim() const { return type().rank(); }
  int64_t size() const { return type().size(); }
  DType dtype() const { return type().dtype; }
  bool weak_type() const { return type().weak_type; }

  bool is_tracer() const;

  // Host access. Each call waits for the value; a tracer raises ConcretizationTypeError.
  const std::byte* raw_data() const;
  template <class T>
  T item() const;  // the only element, converted
  template <class T>
  std::vector<T> to_vector() const;  // all elements in row-major order, converted
  explicit operator bool() const;    // the truth of a single element
  const Array& block_until_ready() const;
  bool is_ready() const;  // true if a read would not wait

  // Devices.
  const Buffer& buffer() const;
  Device device() const;
  bool committed() const;
  bool is_deleted() const;
  void delete_buffers() const;

  std::string to_string() const;  // as NumPy prints the value
  std::string repr() const;       // Array([1., 2.], dtype=float32)

  // Indexing as in NumPy with JAX's out-of-bounds rules; see <capibara/indexing.h> for Index.
  Array operator[](const Index& index) const;
  template <class... Indices>
  Array operator()(const Indices&... indices) const;
  template <class... Indices>
  IndexUpdate at(const Indices&... indices) const;

  Array astype(DType dtype) const;
  Array reshape(Shape shape) const;
  Array transpose(std::vector<int64_t> axes = {}) const;
  Array T() const { return transpose(); }
  Array flatten() const { return reshape({-1}); }

  const std::shared_ptr<const ArrayBody>& body() const { return body_; }
  bool same_as(const Array& other) const { return body_ == other.body_; }

 private:
  static Array weak_scalar(bool value);
  static Array weak_scalar(int64_t value);
  static Array weak_scalar(uint64_t value);
  static Array weak_scalar(double value);
  static Array weak_scalar(std::complex<double> value);
  template <class T>
  requires std::is_arithmetic_v<T>
  static Array weak_scalar(T value) {
    using Whole = std::conditional_t<std::is_unsigned_v<T>, uint64_t, int64_t>;
    return weak_scalar(static_cast<std::conditional_t<std::is_floating_point_v<T>, double, Whole>>(value));
  }
  static Array weak_scalar(std::complex<float> value) { return weak_scalar(std::complex<double>(value)); }

  std::shared_ptr<const ArrayBody> body_;
};

std::ostream& operator<<(std::ostream& out, const Array& array);

// Arithmetic with NumPy's broadcasting and JAX's promotion.
Array operator+(const Array& a, const Array& b);
Array operator-(const Array& a, const Array& b);
Array operator*(const Array& a, const Array& b);
Array operator/(const Array& a, const Array& b);  // true division: integers become floats
Array operator%(const Array& a, const Array& b);  // the sign of the divisor, as in Python
Array operator-(const Array& a);
Array operator~(const Array& a);
Array operator&(const Array& a, const Array& b);
Array operator|(const Array& a, const Array& b);
Array operator^(const Array& a, const Array& b);
Array operator<<(const Array& a, const Array& b);
Array operator>>(const Array& a, const Array& b);
Array operator==(const Array& a, const Array& b);
Array operator!=(const Array& a, const Array& b);
Array operator<(const Array& a, const Array& b);
Array operator<=(const Array& a, const Array& b);
Array operator>(const Array& a, const Array& b);
Array operator>=(const Array& a, const Array& b);

// The dtype that represents a C++ element type.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::bool_;
  else if constexpr (std::is_same_v<T, float>)
    return DType::float32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::float64;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return DType::complex64;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return DType::complex128;
  else {
    static_assert(std::is_integral_v<T>, "array elements are bool, integers, float, double or std::complex of these");
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1)
      return is_signed ? DType::int8 : DType::uint8;
    else if constexpr (sizeof(T) == 2)
      return is_signed ? DType::int16 : DType::uint16;
    else if constexpr (sizeof(T) == 4)
      return is_signed ? DType::int32 : DType::uint32;
    else
      return is_signed ? DType::int64 : DType::uint64;
  }
}

// An array from C++ values: array<float>({1, 2, 3}), array<float>({1, 2, 3, 4}, {2, 2}).
template <class T>
Array array(const std::vector<T>& values, std::optional<Shape> shape = std::nullopt);
template <class T>
Array array(std::initializer_list<T> values, std::optional<Shape> shape = std::nullopt) {
  return array<T>(std::vector<T>(values), std::move(shape));
}
template <class T>
Array array(std::initializer_list<std::initializer_list<T>> rows) {
  std::vector<T> values;
  int64_t columns = rows.size() == 0 ? 0 : static_cast<int64_t>(rows.begin()->size());
  for (const auto& row : rows) {
    if (static_cast<int64_t>(row.size()) != columns) throw ValueError("array: rows must have equal length");
    values.insert(values.end(), row.begin(), row.end());
  }
  return array<T>(values, Shape{static_cast<int64_t>(rows.size()), columns});
}

namespace detail {
void copy_elements(const Array& from, DType to, void* out);  // converts every element
[[noreturn]] void throw_element_count(const Shape& shape, int64_t got);
}  // namespace detail

template <class T>
Array array(const std::vector<T>& values, std::optional<Shape> shape) {
  const auto count = static_cast<int64_t>(values.size());
  Shape dims = shape ? *shape : Shape{count};
  if (element_count(dims) != count) detail::throw_element_count(dims, count);
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<uint8_t> bytes(values.begin(), values.end());
    return Array::from_host(DType::bool_, std::move(dims), bytes.data());
  } else {
    return Array::from_host(dtype_of<T>(), std::move(dims), values.data());
  }
}

template <class T>
std::vector<T> Array::to_vector() const {
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<uint8_t> bytes(static_cast<std::size_t>(size()));
    detail::copy_elements(*this, DType::bool_, bytes.data());
    return std::vector<bool>(bytes.begin(), bytes.end());
  } else {
    std::vector<T> out(static_cast<std::size_t>(size()));
    detail::copy_elements(*this, dtype_of<T>(), out.data());
    return out;
  }
}

template <class T>
T Array::item() const {
  if (size() != 1)
    throw ValueError(concat("item: an array with exactly one element is needed, got ", capibara::to_string(type())));
  return to_vector<T>()[0];
}

}  // namespace capibara

#include <capibara/indexing.h>
