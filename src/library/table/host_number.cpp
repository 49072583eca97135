// Conversion of host-language numbers to arrays of a dtype without passing through the default width.
#include "library/table/host_number.h"

#include <capibara/lax.h>

#include "core/array/element.h"

namespace capibara::library {

namespace {

Array scalar(DType from, const void* number, DType dtype) {
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(storage_size(dtype)));
  convert_elements(from, number, dtype, buffer.mutable_data(), 1);
  return Array::from_buffer(ArrayType{{}, dtype, false, false, {}}, std::move(buffer));
}

}  // namespace

const BigInteger* big_integer(const Value& value) {
  const auto* foreign = value.get_if<std::shared_ptr<const Foreign>>();
  return foreign ? dynamic_cast<const BigInteger*>(foreign->get()) : nullptr;
}

Array converted(const Arguments& arguments, std::string_view name, DType dtype) {
  const Value& value = arguments[name];
  const bool has_elements = is_numeric(dtype) || is_bool(dtype);
  if (const int64_t* integer = value.get_if<int64_t>(); integer && has_elements) {
    return scalar(DType::int64, integer, dtype);
  }
  if (const BigInteger* big = big_integer(value); big && has_elements) {
    const uint64_t bits = big->low_bits();
    const double real = big->real();
    return is_integer(dtype) ? scalar(DType::uint64, &bits, dtype) : scalar(DType::float64, &real, dtype);
  }
  return jax::lax::convert_element_type(arguments.array(name), dtype, false);
}

}  // namespace capibara::library
