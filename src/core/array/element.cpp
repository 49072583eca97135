// The one place where every (stored type, compute type) pair is compiled.
#include "core/array/element.h"

#include <cmath>
#include <limits>

#include <capibara/error.h>

namespace capibara {

void throw_no_elements(const char* operation, DType dtype) {
  throw TypeError(concat(operation, ": expected a numeric or boolean dtype, got ", dtype_name(dtype),
                         "; PRNG keys are read through their uint32 words (key_data)"));
}

namespace {

template <class T>
constexpr bool is_small_int = false;
template <int width, bool is_signed>
constexpr bool is_small_int<SmallInt<width, is_signed>> = true;

template <class T>
constexpr bool is_small_float = std::is_same_v<T, BFloat16>;
template <SmallFormat F>
constexpr bool is_small_float<SmallFloat<F>> = true;

// Truncates toward zero within [low, high]. `high` may round up to a power of two in From, so a
// value at or above it saturates.
template <class To, class From>
To saturate(From value, To low, To high) {
  if (std::isnan(value)) return To{0};
  if (value <= static_cast<From>(low)) return low;
  if (value >= static_cast<From>(high)) return high;
  return static_cast<To>(value);
}

template <class To, class From>
To convert_value(From value) {
  if constexpr (is_small_float<From>) {
    return convert_value<To>(static_cast<float>(value));
  } else if constexpr (is_small_int<From>) {
    return convert_value<To>(static_cast<std::int64_t>(value));
  } else if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (is_complex_number<To>) {
    using Part = typename To::value_type;
    if constexpr (is_complex_number<From>) {
      return To(static_cast<Part>(value.real()), static_cast<Part>(value.imag()));
    } else {
      return To(static_cast<Part>(value), Part{0});
    }
  } else if constexpr (is_complex_number<From>) {
    return convert_value<To>(value.real());
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (is_small_float<To>) {
    // Integers pass through float32, as XLA does; a double is rounded once.
    if constexpr (std::is_same_v<From, double>)
      return To(value);
    else
      return To(static_cast<float>(value));
  } else if constexpr (is_small_int<To>) {
    if constexpr (std::is_floating_point_v<From>) {
      return To(saturate<std::int64_t>(value, To::min(), To::max()));
    } else {
      return To(static_cast<std::int64_t>(value));
    }
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return saturate<To>(value, std::numeric_limits<To>::min(), std::numeric_limits<To>::max());
  } else {
    return static_cast<To>(value);
  }
}

// A bool is read through its byte: foreign data may hold values other than 0 and 1.
template <class T>
T read_element(const void* data, std::int64_t index) {
  if constexpr (std::is_same_v<T, bool>)
    return static_cast<const std::uint8_t*>(data)[index] != 0;
  else
    return static_cast<const T*>(data)[index];
}

}  // namespace

template <class C>
void load_range(DType dtype, const void* data, std::int64_t count, C* out) {
  visit_storage(dtype, [&]<class T>(Type<T>) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = convert_value<C>(read_element<T>(data, i));
  });
}

template <class C>
void store_range(DType dtype, void* data, std::int64_t count, const C* values) {
  visit_storage(dtype, [&]<class T>(Type<T>) {
    T* elements = static_cast<T*>(data);
    for (std::int64_t i = 0; i < count; ++i) elements[i] = convert_value<T>(values[i]);
  });
}

#define CAPIBARA_DEFINE_ELEMENT_ACCESS(C)                            \
  template void load_range<C>(DType, const void*, std::int64_t, C*); \
  template void store_range<C>(DType, void*, std::int64_t, const C*);
CAPIBARA_FOR_EACH_COMPUTE_TYPE(CAPIBARA_DEFINE_ELEMENT_ACCESS)

double element_as_double(DType dtype, const void* data, std::int64_t index) {
  return load_as<double>(dtype, data, index);
}

std::int64_t element_as_int64(DType dtype, const void* data, std::int64_t index) {
  return load_as<std::int64_t>(dtype, data, index);
}

void convert_elements(DType from, const void* source, DType to, void* target, std::int64_t count) {
  if (from == to) {
    if (count > 0) std::memcpy(target, source, static_cast<std::size_t>(count * storage_size(from)));
    return;
  }
  visit_compute(from, [&]<class C>(Type<C>) {
    if (stored_as<C>(from)) {
      store_range<C>(to, target, count, static_cast<const C*>(source));
      return;
    }
    // Small blocks keep the widened values in cache.
    constexpr std::int64_t block = 512;
    C widened[block];
    for (std::int64_t start = 0; start < count; start += block) {
      const std::int64_t length = count - start < block ? count - start : block;
      load_range<C>(from, element_address(from, source, start), length, widened);
      store_range<C>(to, element_address(to, target, start), length, widened);
    }
  });
}

}  // namespace capibara
