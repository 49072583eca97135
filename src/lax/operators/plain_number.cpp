// Plain C++ numbers among arrays: immediate conversion, and the dtype of the operands next to them.
#include "lax/operators/plain_number.h"

#include <capibara/lax.h>

#include "core/array/element.h"
#include "core/array/promotion.h"
#include "lax/shape/shape.h"

namespace capibara {

// A number that was put on a device is an array: results computed from it are on that device.
bool is_plain_number(const Array& x) {
  return x.defined() && !x.is_tracer() && x.ndim() == 0 && x.weak_type() && !x.committed();
}

Array number_as(const Array& number, DType dtype, bool weak_type) {
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(storage_size(dtype)));
  convert_elements(number.dtype(), number.raw_data(), dtype, buffer.mutable_data(), 1);
  ArrayType type = sample_type(dtype, {});
  type.weak_type = weak_type;
  return Array::from_buffer(std::move(type), std::move(buffer));
}

Array array_as(const Array& x, DType dtype, bool weak_type) {
  if (x.dtype() == dtype && x.weak_type() == weak_type) return x;
  if (is_plain_number(x)) return number_as(x, dtype, weak_type);
  return jax::lax::convert_element_type(x, dtype, weak_type);
}

Arrays adopt_numbers(std::initializer_list<Array> operands) {
  Arrays result(operands);
  const Array* typed = nullptr;
  for (const Array& x : result) {
    if (!is_plain_number(x) && !typed) typed = &x;
  }
  if (!typed) return result;
  const DType dtype = typed->dtype();
  for (Array& x : result) {
    if (!is_plain_number(x) || x.dtype() == dtype || !(is_numeric(dtype))) continue;
    const ScalarType both = promote_types({dtype, false}, {x.dtype(), true}, true);
    if (both.dtype == dtype) x = number_as(x, dtype, true);
  }
  return result;
}

}  // namespace capibara
