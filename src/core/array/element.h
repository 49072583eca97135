// Typed access to raw array data: visiting a dtype's C++ type, loading and storing elements, converting.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include <capibara/dtype.h>

#include "core/array/small_float.h"

namespace capibara {

template <class T>
struct Type {
  using type = T;
};

template <class T>
inline constexpr bool is_complex_number = false;
template <class T>
inline constexpr bool is_complex_number<std::complex<T>> = true;

[[noreturn]] void throw_no_elements(const char* operation, DType dtype);

// Calls f(Type<T>{}) with the type that an element has in a buffer. Keys and tokens: TypeError.
template <class F>
decltype(auto) visit_storage(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float0:
    case DType::bool_:
      return f(Type<bool>{});
    case DType::int1:
      return f(Type<Int1>{});
    case DType::int2:
      return f(Type<Int2>{});
    case DType::int4:
      return f(Type<Int4>{});
    case DType::int8:
      return f(Type<std::int8_t>{});
    case DType::int16:
      return f(Type<std::int16_t>{});
    case DType::int32:
      return f(Type<std::int32_t>{});
    case DType::int64:
      return f(Type<std::int64_t>{});
    case DType::uint1:
      return f(Type<UInt1>{});
    case DType::uint2:
      return f(Type<UInt2>{});
    case DType::uint4:
      return f(Type<UInt4>{});
    case DType::uint8:
      return f(Type<std::uint8_t>{});
    case DType::uint16:
      return f(Type<std::uint16_t>{});
    case DType::uint32:
      return f(Type<std::uint32_t>{});
    case DType::uint64:
      return f(Type<std::uint64_t>{});
    case DType::float4_e2m1fn:
      return f(Type<Float4E2M1FN>{});
    case DType::float6_e2m3fn:
      return f(Type<Float6E2M3FN>{});
    case DType::float6_e3m2fn:
      return f(Type<Float6E3M2FN>{});
    case DType::float8_e3m4:
      return f(Type<Float8E3M4>{});
    case DType::float8_e4m3:
      return f(Type<Float8E4M3>{});
    case DType::float8_e4m3b11fnuz:
      return f(Type<Float8E4M3B11FNUZ>{});
    case DType::float8_e4m3fn:
      return f(Type<Float8E4M3FN>{});
    case DType::float8_e4m3fnuz:
      return f(Type<Float8E4M3FNUZ>{});
    case DType::float8_e5m2:
      return f(Type<Float8E5M2>{});
    case DType::float8_e5m2fnuz:
      return f(Type<Float8E5M2FNUZ>{});
    case DType::float8_e8m0fnu:
      return f(Type<Float8E8M0FNU>{});
    case DType::bfloat16:
      return f(Type<BFloat16>{});
    case DType::float16:
      return f(Type<Half>{});
    case DType::float32:
      return f(Type<float>{});
    case DType::float64:
      return f(Type<double>{});
    case DType::complex64:
      return f(Type<std::complex<float>>{});
    case DType::complex128:
      return f(Type<std::complex<double>>{});
    default:
      throw_no_elements("visit_storage", dtype);
  }
}

// Calls f(Type<C>{}) with the type that arithmetic on the dtype uses: integers narrower than a byte
// compute in int8/uint8 and wrap when stored; floats narrower than 32 bits compute in float and
// round once when stored. Thirteen types in all.
template <class F>
decltype(auto) visit_compute(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float0:
    case DType::bool_:
      return f(Type<bool>{});
    case DType::int1:
    case DType::int2:
    case DType::int4:
    case DType::int8:
      return f(Type<std::int8_t>{});
    case DType::int16:
      return f(Type<std::int16_t>{});
    case DType::int32:
      return f(Type<std::int32_t>{});
    case DType::int64:
      return f(Type<std::int64_t>{});
    case DType::uint1:
    case DType::uint2:
    case DType::uint4:
    case DType::uint8:
      return f(Type<std::uint8_t>{});
    case DType::uint16:
      return f(Type<std::uint16_t>{});
    case DType::uint32:
      return f(Type<std::uint32_t>{});
    case DType::uint64:
      return f(Type<std::uint64_t>{});
    case DType::float64:
      return f(Type<double>{});
    case DType::complex64:
      return f(Type<std::complex<float>>{});
    case DType::complex128:
      return f(Type<std::complex<double>>{});
    default:
      if (is_floating(dtype)) return f(Type<float>{});
      throw_no_elements("visit_compute", dtype);
  }
}

// True if buffers of `dtype` store values of the compute type C without conversion.
template <class C>
constexpr bool stored_as(DType dtype) {
  if constexpr (std::is_same_v<C, bool>) return dtype == DType::bool_ || dtype == DType::float0;
  if constexpr (std::is_same_v<C, std::int8_t>) return dtype == DType::int8;
  if constexpr (std::is_same_v<C, std::int16_t>) return dtype == DType::int16;
  if constexpr (std::is_same_v<C, std::int32_t>) return dtype == DType::int32;
  if constexpr (std::is_same_v<C, std::int64_t>) return dtype == DType::int64;
  if constexpr (std::is_same_v<C, std::uint8_t>) return dtype == DType::uint8;
  if constexpr (std::is_same_v<C, std::uint16_t>) return dtype == DType::uint16;
  if constexpr (std::is_same_v<C, std::uint32_t>) return dtype == DType::uint32;
  if constexpr (std::is_same_v<C, std::uint64_t>) return dtype == DType::uint64;
  if constexpr (std::is_same_v<C, float>) return dtype == DType::float32;
  if constexpr (std::is_same_v<C, double>) return dtype == DType::float64;
  if constexpr (std::is_same_v<C, std::complex<float>>) return dtype == DType::complex64;
  if constexpr (std::is_same_v<C, std::complex<double>>) return dtype == DType::complex128;
  return false;
}

// `count` elements from `data` (of any dtype) into `out`, and back. C is a compute type; a dtype
// with another compute type is converted as convert_elements does. Compiled once, in element.cpp.
template <class C>
void load_range(DType dtype, const void* data, std::int64_t count, C* out);
template <class C>
void store_range(DType dtype, void* data, std::int64_t count, const C* values);

inline const void* element_address(DType dtype, const void* data, std::int64_t index) {
  return static_cast<const std::byte*>(data) + index * storage_size(dtype);
}
inline void* element_address(DType dtype, void* data, std::int64_t index) {
  return static_cast<std::byte*>(data) + index * storage_size(dtype);
}

template <class C>
C load_as(DType dtype, const void* data, std::int64_t index) {
  if (stored_as<C>(dtype)) return static_cast<const C*>(data)[index];
  C value{};
  load_range<C>(dtype, element_address(dtype, data, index), 1, &value);
  return value;
}

template <class C>
void store_as(DType dtype, void* data, std::int64_t index, C value) {
  if (stored_as<C>(dtype)) {
    static_cast<C*>(data)[index] = value;
  } else {
    store_range<C>(dtype, element_address(dtype, data, index), 1, &value);
  }
}

// An owned, zero-initialised run of values; unlike std::vector, one bool is one addressable byte.
template <class C>
class Elements {
 public:
  Elements() = default;
  explicit Elements(std::int64_t count)
      : values_(std::make_unique<C[]>(static_cast<std::size_t>(count))), size_(count) {}

  C* data() { return values_.get(); }
  const C* data() const { return values_.get(); }
  std::int64_t size() const { return size_; }
  C& operator[](std::int64_t i) { return values_[static_cast<std::size_t>(i)]; }
  const C& operator[](std::int64_t i) const { return values_[static_cast<std::size_t>(i)]; }
  C* begin() { return data(); }
  C* end() { return data() + size_; }
  const C* begin() const { return data(); }
  const C* end() const { return data() + size_; }

 private:
  std::unique_ptr<C[]> values_;
  std::int64_t size_ = 0;
};

// Values to read only: borrows the buffer where it already holds C, else owns converted ones. Must
// not outlive the buffer.
template <class C>
class ReadElements {
 public:
  ReadElements(DType dtype, const void* data, std::int64_t count) : size_(count) {
    if (stored_as<C>(dtype)) {
      data_ = static_cast<const C*>(data);
    } else {
      owned_ = Elements<C>(count);
      load_range<C>(dtype, data, count, owned_.data());
      data_ = owned_.data();
    }
  }

  const C* data() const { return data_; }
  std::int64_t size() const { return size_; }
  const C& operator[](std::int64_t i) const { return data_[i]; }
  const C* begin() const { return data_; }
  const C* end() const { return data_ + size_; }

 private:
  Elements<C> owned_;
  const C* data_ = nullptr;
  std::int64_t size_ = 0;
};

// A modifiable copy of all elements.
template <class C>
Elements<C> load_all(DType dtype, const void* data, std::int64_t count) {
  Elements<C> values(count);
  load_range<C>(dtype, data, count, values.data());
  return values;
}

// All elements for reading, without a copy where none is needed.
template <class C>
ReadElements<C> read_all(DType dtype, const void* data, std::int64_t count) {
  return ReadElements<C>(dtype, data, count);
}

template <class C>
void store_all(DType dtype, void* data, std::int64_t count, const C* values) {
  store_range<C>(dtype, data, count, values);
}
template <class C>
void store_all(DType dtype, void* data, const Elements<C>& values) {
  store_range<C>(dtype, data, values.size(), values.data());
}

// The real part of any number as a double (64-bit integers may round).
double element_as_double(DType dtype, const void* data, std::int64_t index);
// Integers and bool exactly (uint64 wraps); floats truncate and saturate.
std::int64_t element_as_int64(DType dtype, const void* data, std::int64_t index);

// lax.convert_element_type on raw data, as jax computes it: floats truncate toward zero to integers,
// saturate at their bounds and take NaN to 0; integers wrap to narrower ones; bool is "not equal to
// zero"; complex to real keeps the real part. Keys convert only to themselves. No overlap of buffers.
void convert_elements(DType from, const void* source, DType to, void* target, std::int64_t count);

#define CAPIBARA_FOR_EACH_COMPUTE_TYPE(apply)                                                                    \
  apply(bool) apply(std::int8_t) apply(std::int16_t) apply(std::int32_t) apply(std::int64_t) apply(std::uint8_t) \
      apply(std::uint16_t) apply(std::uint32_t) apply(std::uint64_t) apply(float) apply(double)                  \
          apply(std::complex<float>) apply(std::complex<double>)

#define CAPIBARA_DECLARE_ELEMENT_ACCESS(C)                                  \
  extern template void load_range<C>(DType, const void*, std::int64_t, C*); \
  extern template void store_range<C>(DType, void*, std::int64_t, const C*);
CAPIBARA_FOR_EACH_COMPUTE_TYPE(CAPIBARA_DECLARE_ELEMENT_ACCESS)
#undef CAPIBARA_DECLARE_ELEMENT_ACCESS

}  // namespace capibara
