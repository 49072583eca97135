// Nested sequences as arrays: plain numbers are collected in one buffer, arrays among them are stacked.
#include <capibara/config.h>
#include <capibara/lax.h>

#include <algorithm>
#include <cmath>

#include "core/array/element.h"
#include "lax/operators/plain_number.h"
#include "lax/operators/promote.h"
#include "library/table/function.h"
#include "library/table/host_number.h"

namespace capibara::library {

namespace {

enum class Rung { none, boolean, integer, real, complex };  // kinds of plain numbers, each containing the previous ones

Rung rung_of(const Value& value) {
  if (value.get_if<bool>()) return Rung::boolean;
  if (value.get_if<int64_t>() || big_integer(value)) return Rung::integer;
  if (value.get_if<double>()) return Rung::real;
  return value.get_if<std::complex<double>>() ? Rung::complex : Rung::none;
}

// A summary of a nested sequence: its shape, the highest kind of plain number and the types of its arrays.
class Survey {
 public:
  Survey(const Value& value, const char* function) : function_(function) {
    measure(value);
    visit(value, 0);
    if (fits_) return;
    const std::string text =
        concat(function, ": the parts of a nested sequence must have equal shapes; the first ones say ",
               to_string(ArrayType{shape_, DType::float32, false, false, {}}).substr(7));
    if (only_numbers()) throw ValueError(text);
    throw TypeError(text);
  }

  const Shape& shape() const { return shape_; }
  bool only_numbers() const { return arrays_.empty(); }
  Rung rung() const { return rung_; }
  bool has_big_integer() const { return has_big_integer_; }

  DType dtype() const {
    std::vector<ScalarType> types = arrays_;
    switch (rung_) {
      case Rung::none:
        break;
      case Rung::boolean:
        types.push_back({DType::bool_, false});
        break;
      case Rung::integer:
        types.push_back({default_int(), true});
        break;
      case Rung::real:
        types.push_back({default_float(), true});
        break;
      case Rung::complex:
        types.push_back({default_complex(), true});
        break;
    }
    // A boolean among weak numbers stays strong, so both enter the promotion lattice.
    if (has_boolean_ && rung_ != Rung::boolean) types.push_back({DType::bool_, false});
    if (types.empty()) return default_float();
    return promote_types(types, capibara::config().enable_x64).dtype;
  }

 private:
  void measure(const Value& value) {
    const Value* at = &value;
    while (const Sequence* sequence = at->sequence()) {
      shape_.push_back(static_cast<int64_t>(sequence->items.size()));
      if (sequence->items.empty()) return;
      at = &sequence->items[0];
    }
    if (const Array* array = at->array()) shape_.insert(shape_.end(), array->shape().begin(), array->shape().end());
  }

  void visit(const Value& value, std::size_t depth) {
    if (const Sequence* sequence = value.sequence()) {
      fits_ = fits_ && depth < shape_.size() && shape_[depth] == static_cast<int64_t>(sequence->items.size());
      for (const Value& item : sequence->items) visit(item, depth + 1);
      return;
    }
    if (const Rung rung = rung_of(value); rung != Rung::none) {
      fits_ = fits_ && depth == shape_.size();
      has_boolean_ = has_boolean_ || rung == Rung::boolean;
      has_big_integer_ = has_big_integer_ || big_integer(value);
      rung_ = std::max(rung_, rung);
      return;
    }
    const Array* array = value.array();
    if (!array) {
      if (value.is_none()) throw ValueError(concat("None is not a valid value for jnp.", function_));
      throw TypeError(
          concat(function_, ": Unexpected input type for array: <class '", value.type_name(), "'>", hint_of(value)));
    }
    fits_ = fits_ && std::equal(shape_.begin() + static_cast<std::ptrdiff_t>(std::min(depth, shape_.size())),
                                shape_.end(), array->shape().begin(), array->shape().end());
    const ScalarType type{array->dtype(), array->weak_type()};
    if (arrays_.empty() || !(arrays_.back() == type)) arrays_.push_back(type);
  }

  const char* function_;
  Shape shape_;
  bool fits_ = true;
  Rung rung_ = Rung::none;
  bool has_boolean_ = false, has_big_integer_ = false;
  std::vector<ScalarType> arrays_;
};

template <class T>
T number_in(const Value& value) {
  if (const double* real = value.get_if<double>()) return static_cast<T>(*real);
  if (const int64_t* integer = value.get_if<int64_t>()) return static_cast<T>(*integer);
  if (const BigInteger* big = big_integer(value)) {
    return std::is_integral_v<T> ? static_cast<T>(big->low_bits()) : static_cast<T>(big->real());
  }
  return static_cast<T>(*value.get_if<bool>());
}
template <>
std::complex<double> number_in(const Value& value) {
  if (const auto* number = value.get_if<std::complex<double>>()) return *number;
  return number_in<double>(value);
}

template <class T>
void gather(const Value& value, std::vector<T>& to) {
  if (const Sequence* sequence = value.sequence()) {
    for (const Value& item : sequence->items) gather(item, to);
  } else {
    to.push_back(number_in<T>(value));
  }
}

// True if every number fits an integer dtype.
void require_range(const char* function, const Value& value, DType dtype) {
  if (const Sequence* sequence = value.sequence()) {
    for (const Value& item : sequence->items) require_range(function, item, dtype);
    return;
  }
  const IntInfo info = iinfo(dtype);
  const BigInteger* big = big_integer(value);
  if (big && (!big->fits_unsigned() || big->low_bits() > info.max)) {
    throw OverflowError(concat(function, ": Python integer ", big->text(), " out of bounds for ", to_string(dtype)));
  }
  if (big) return;
  const auto number = number_in<int64_t>(value);
  if (number >= info.min && (number < 0 || static_cast<uint64_t>(number) <= info.max)) return;
  throw OverflowError(concat(function, ": Python integer ", number, " out of bounds for ", to_string(dtype)));
}

void require_integral(const char* function, const std::vector<double>& numbers, DType dtype) {
  if (!is_integer(dtype)) return;
  for (double number : numbers) {
    if (std::isnan(number)) throw ValueError(concat(function, ": cannot convert float NaN to integer"));
    if (std::isinf(number)) throw OverflowError(concat(function, ": cannot convert float infinity to integer"));
  }
}

Array array_of_numbers(const Value& value, const Survey& survey, DType dtype, const char* function) {
  const int64_t count = element_count(survey.shape());
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(count * storage_size(dtype)));
  const auto fill = [&](DType from, const auto& numbers) {
    convert_elements(from, numbers.data(), dtype, buffer.mutable_data(), count);
  };
  if (survey.rung() == Rung::complex) {
    if (!is_complex(dtype)) throw TypeError(concat(function, ": complex numbers cannot become ", to_string(dtype)));
    std::vector<std::complex<double>> numbers;
    numbers.reserve(static_cast<std::size_t>(count));
    gather(value, numbers);
    fill(DType::complex128, numbers);
  } else if (survey.rung() == Rung::real || (survey.has_big_integer() && !is_integer(dtype))) {
    std::vector<double> numbers;
    numbers.reserve(static_cast<std::size_t>(count));
    gather(value, numbers);
    require_integral(function, numbers, dtype);
    fill(DType::float64, numbers);
  } else {
    std::vector<int64_t> numbers;
    numbers.reserve(static_cast<std::size_t>(count));
    if (is_integer(dtype)) require_range(function, value, dtype);
    gather(value, numbers);
    // Two's complement: the bits of numbers that fit only uint64 are right in either type.
    fill(is_unsigned(dtype) ? DType::uint64 : DType::int64, numbers);
  }
  return Array::from_buffer(ArrayType{survey.shape(), dtype, false, false, {}}, std::move(buffer));
}

Array stacked(const Value& value, DType dtype, const char* function) {
  if (const Array* array = value.array()) return jax::lax::convert_element_type(*array, dtype, false);
  const Survey survey(value, function);
  if (survey.only_numbers()) return array_of_numbers(value, survey, dtype, function);
  Arrays rows;
  for (const Value& item : value.sequence()->items) rows.push_back(stacked(item, dtype, function));
  return jax::lax::stack(rows, 0);
}

}  // namespace

Array array_of(const Value& value, const char* function, std::optional<DType> dtype) {
  if (const Array* array = value.array()) {
    return dtype ? jax::lax::convert_element_type(*array, *dtype, false) : *array;
  }
  if (const auto* foreign = value.get_if<std::shared_ptr<const Foreign>>(); foreign && dtype) {
    if (const std::optional<Array> array = (*foreign)->as_dtype(*dtype)) return *array;
  }
  const Survey survey(value, function);
  // A single number is weak; numbers in a sequence are strong.
  if (!dtype && !value.sequence()) {
    switch (survey.rung()) {
      case Rung::boolean:
        return Array(*value.get_if<bool>());
      case Rung::integer:
        if (const int64_t* integer = value.get_if<int64_t>()) return Array(*integer);
        throw OverflowError(
            concat("Python int too large to convert to ", to_string(default_int()), ": ", big_integer(value)->text()));
      case Rung::real:
        return Array(*value.get_if<double>());
      default:
        return Array(*value.get_if<std::complex<double>>());
    }
  }
  return stacked(value, dtype.value_or(survey.dtype()), function);
}

}  // namespace capibara::library
