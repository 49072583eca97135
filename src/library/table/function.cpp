// Parsing of signatures in Python notation, and readers for the arguments of a call.
#include "library/table/function.h"

#include <capibara/config.h>
#include <capibara/lax.h>

#include <cmath>
#include <cstdlib>

#include "core/runtime/warning.h"
#include "lax/operators/explicit_x64.h"
#include "lax/operators/promote.h"
#include "library/table/host_number.h"
#include "program/trace/trace.h"

namespace capibara::library {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// A default value: None, True, False, a number, a quoted string, or a tuple of these.
Value literal(std::string_view text) {
  text = trimmed(text);
  if (text == "None") return {};
  if (text == "True") return true;
  if (text == "False") return false;
  if (text == "inf") return HUGE_VAL;
  if (text == "-inf") return -HUGE_VAL;
  if (text.front() == '\'' || text.front() == '"') return std::string(text.substr(1, text.size() - 2));
  if (text.front() == '(') {
    Values items;
    std::string_view inside = text.substr(1, text.size() - 2);
    while (!trimmed(inside).empty()) {
      std::size_t comma = inside.find(',');
      items.push_back(literal(inside.substr(0, comma)));
      inside = comma == std::string_view::npos ? std::string_view() : inside.substr(comma + 1);
    }
    return Value::tuple_of(std::move(items));
  }
  std::string number(text);
  char* end = nullptr;
  if (number.find_first_of(".eE") == std::string::npos) {
    int64_t integer = std::strtoll(number.c_str(), &end, 10);
    if (*end == '\0') return integer;
  } else {
    double real = std::strtod(number.c_str(), &end);
    if (*end == '\0') return real;
  }
  throw InternalError(concat("library table: no value is written '", number, "'"));
}

// Splits at commas outside brackets and quotes.
std::vector<std::string_view> split_parameters(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  char quote = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0 && !quote)) {
      std::string_view part = trimmed(text.substr(begin, i - begin));
      if (!part.empty()) parts.push_back(part);
      begin = i + 1;
    } else if (quote) {
      if (text[i] == quote) quote = 0;
    } else if (text[i] == '\'' || text[i] == '"') {
      quote = text[i];
    } else if (text[i] == '(' || text[i] == '[') {
      ++depth;
    } else if (text[i] == ')' || text[i] == ']') {
      --depth;
    }
  }
  return parts;
}

// Parses the parameters and the result type: "x, y -> tuple[Array, Array]".
std::pair<std::string_view, std::string_view> split_result(std::string_view text) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) return {text, {}};
  return {trimmed(text.substr(0, arrow)), trimmed(text.substr(arrow + 2))};
}

struct NumberAsArray {
  template <class T>
  std::optional<Array> operator()(const T& value) const {
    if constexpr (Number<T>) {
      return Array(value);
    } else if constexpr (std::is_same_v<T, Array>) {
      return value;
    } else {
      return std::nullopt;
    }
  }
};

std::optional<Array> as_array(const Value& value) {
  if (const BigInteger* big = big_integer(value)) {
    throw OverflowError(concat("Python int too large to convert to ", to_string(default_int()), ": Python integer ",
                               big->text(), " out of bounds"));
  }
  return std::visit(NumberAsArray(), value.content());
}

}  // namespace

Signature::Signature(std::string_view text) {
  bool keyword_only = false;
  const auto [parameters, result] = split_result(text);
  result_ = std::string(result);
  for (std::string_view part : split_parameters(parameters)) {
    if (part == "/") {
      for (Parameter& earlier : parameters_) earlier.kind = Parameter::positional_only;
      continue;
    }
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    Parameter parameter;
    if (part.starts_with("**")) {
      parameter.kind = Parameter::keywords;
      part.remove_prefix(2);
      keywords_ = true;
    } else if (part.starts_with("*")) {
      parameter.kind = Parameter::variadic;
      part.remove_prefix(1);
      keyword_only = variadic_ = true;
    } else {
      parameter.kind = keyword_only ? Parameter::keyword_only : Parameter::positional_or_keyword;
      positional_count_ += !keyword_only;
    }
    std::size_t equals = part.find('=');
    const std::string_view named = part.substr(0, equals);
    const std::size_t colon = named.find(':');
    parameter.name = std::string(trimmed(named.substr(0, colon)));
    if (colon != std::string_view::npos) parameter.annotation = std::string(trimmed(named.substr(colon + 1)));
    if (equals != std::string_view::npos) {
      parameter.default_text = std::string(trimmed(part.substr(equals + 1)));
      parameter.default_value = literal(parameter.default_text);
    }
    parameters_.push_back(std::move(parameter));
  }
}

std::string text_of(const Function& function) {
  const auto [parameters, result] = split_result(function.signature);
  return concat(function.name, "(", parameters, ")", result.empty() ? "" : " -> ", result);
}

int Signature::find(std::string_view name) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

const Value& Arguments::operator[](std::string_view name) const {
  int index = signature_.find(name);
  if (index < 0) throw InternalError(concat("library table: ", function_, " has no parameter '", name, "'"));
  return values_[static_cast<std::size_t>(index)];
}

void Arguments::refuse(std::string_view name, const char* expected) const {
  throw TypeError(concat(function_, ": argument '", name, "' must be ", expected, ", got ", (*this)[name].type_name()));
}

Array Arguments::array(std::string_view name) const {
  const Value& value = (*this)[name];
  if (std::optional<Array> array = as_array(value)) return *array;
  throw TypeError(
      concat(function_, " requires ndarray or scalar arguments, got <class '", value.type_name(), "'> at position ",
             signature_.find(name), ".",
             name == "key" ? "\nHint: the argument 'key' is made by jax.random.key(number)." : hint_of(value)));
}

std::optional<Array> Arguments::optional_array(std::string_view name) const {
  if (!given(name)) return std::nullopt;
  return array(name);
}

Array Arguments::array_like(std::string_view name) const {
  const Value& value = (*this)[name];
  if (value.is_none()) refuse(name, "an array, a number or a nested sequence of them");
  return array_of(value, function().c_str());
}

Arrays Arguments::arrays(std::string_view name) const {
  const Value& value = (*this)[name];
  if (const Array* whole = value.array()) {
    if (whole->ndim() == 0) refuse(name, "a sequence of arrays");
    return jax::lax::unstack(*whole, 0);
  }
  const Sequence* sequence = value.sequence();
  if (!sequence) refuse(name, "a sequence of arrays");
  Arrays result;
  for (std::size_t i = 0; i < sequence->items.size(); ++i) {
    std::optional<Array> array = as_array(sequence->items[i]);
    if (!array) {
      throw TypeError(concat(function_, " requires ndarray or scalar arguments, got <class '",
                             sequence->items[i].type_name(), "'> at position ", i, "."));
    }
    result.push_back(*array);
  }
  return result;
}

int64_t Arguments::integer_of(std::string_view name, const Value& value) const {
  if (const int64_t* integer = value.get_if<int64_t>()) return *integer;
  if (const bool* truth = value.get_if<bool>()) return *truth;
  const bool is_shape = name == "shape" || name == "new_sizes" || name == "N" || name == "M";
  const Array* array = value.array();
  if (array && array->is_tracer()) {
    const std::string rest =
        concat("got a traced array of type ", to_string(array->type()), " for argument '", name, "' of ", function_,
               ".\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions.",
               origin_line(*array));
    if (is_shape) throw TypeError(concat("Shapes must be 1D sequences of concrete values of integer type, ", rest));
    throw ConcretizationTypeError(
        concat("Abstract tracer value encountered where concrete value is expected. An integer is needed, ", rest));
  }
  if (array && array->ndim() == 0 && (is_integer(array->dtype()) || is_bool(array->dtype())))
    return array->item<int64_t>();
  const std::string got = array ? to_string(array->type()) : value.type_name();
  if (is_shape) {
    throw TypeError(concat(function_, ": Shapes must be 1D sequences of concrete values of integer type, got ", got,
                           " in argument '", name, "'"));
  }
  throw TypeError(concat(function_, ": argument '", name, "' must be an integer, got ", got,
                         ", which cannot be interpreted as an integer"));
}

int64_t Arguments::integer(std::string_view name) const { return integer_of(name, (*this)[name]); }

std::optional<int64_t> Arguments::optional_integer(std::string_view name) const {
  if (!given(name)) return std::nullopt;
  return integer(name);
}

bool Arguments::flag(std::string_view name) const {
  const Value& value = (*this)[name];
  if (const bool* truth = value.get_if<bool>()) return *truth;
  if (const int64_t* integer = value.get_if<int64_t>()) return *integer != 0;
  if (value.is_none()) return false;
  if (const Array* array = value.array()) return static_cast<bool>(*array);
  refuse(name, "True or False");
}

double Arguments::real(std::string_view name) const {
  const Value& value = (*this)[name];
  if (const double* real = value.get_if<double>()) return *real;
  if (const int64_t* integer = value.get_if<int64_t>()) return static_cast<double>(*integer);
  if (const bool* truth = value.get_if<bool>()) return *truth;
  if (const Array* array = value.array()) return array->item<double>();
  refuse(name, "a real number");
}

std::optional<double> Arguments::optional_real(std::string_view name) const {
  if (!given(name)) return std::nullopt;
  return real(name);
}

std::string Arguments::text(std::string_view name) const {
  const Value& value = (*this)[name];
  if (value.is_none()) return {};
  if (const std::string* text = value.get_if<std::string>()) return *text;
  refuse(name, "a string");
}

Ints Arguments::ints(std::string_view name) const {
  const Value& value = (*this)[name];
  if (const Sequence* sequence = value.sequence()) {
    Ints result;
    for (const Value& item : sequence->items) result.push_back(integer_of(name, item));
    return result;
  }
  if (const Array* array = value.array(); array && array->ndim() == 1) {
    if (array->size() == 0) return {};  // of any type: numpy makes an empty list a float array
    if (!is_integer(array->dtype())) refuse(name, "integers");
    return array->to_vector<int64_t>();
  }
  return {integer(name)};
}

std::optional<Ints> Arguments::optional_ints(std::string_view name) const {
  if (!given(name)) return std::nullopt;
  return ints(name);
}

std::vector<std::pair<int64_t, int64_t>> Arguments::pairs(std::string_view name) const {
  const Sequence* sequence = (*this)[name].sequence();
  std::vector<std::pair<int64_t, int64_t>> result;
  if (const Array* array = (*this)[name].array();
      array && array->ndim() == 2 && array->shape(1) == 2 && is_integer(array->dtype())) {
    const Ints numbers = array->to_vector<int64_t>();
    for (std::size_t i = 0; i < numbers.size(); i += 2) result.emplace_back(numbers[i], numbers[i + 1]);
    return result;
  }
  if (!sequence) refuse(name, "a sequence of pairs of integers");
  for (const Value& item : sequence->items) {
    const Sequence* pair = item.sequence();
    if (!pair || pair->items.size() != 2) refuse(name, "a sequence of pairs of integers");
    result.emplace_back(integer_of(name, pair->items[0]), integer_of(name, pair->items[1]));
  }
  return result;
}

jax::numpy::Axis Arguments::axis(std::string_view name) const {
  const Value& value = (*this)[name];
  if (value.is_none()) return std::nullopt;
  if (value.sequence()) return ints(name);
  return integer(name);
}

std::optional<DType> Arguments::optional_dtype(std::string_view name) const {
  if (!given(name)) return std::nullopt;
  return dtype(name);
}

DType Arguments::dtype(std::string_view name) const {
  std::optional<DType> dtype = dtype_of((*this)[name]);
  if (!dtype && (*this)[name].get_if<std::string>()) {
    throw TypeError(concat(function_, ": data type '", *(*this)[name].get_if<std::string>(), "' not understood"));
  }
  if (!dtype) refuse(name, "a dtype");
  const DType narrowed = canonical(*dtype);
  if (narrowed != *dtype) {
    if (explicit_x64_dtypes() == ExplicitX64::allow) return *dtype;
    const auto tell = [](const std::string& message) {
      if (explicit_x64_dtypes() == ExplicitX64::error) throw ValueError(message);
      warn(message);
    };
    tell(concat("Explicitly requested dtype ", to_string(*dtype), " requested in ", function_,
                " is not available, and will be truncated to dtype ", to_string(narrowed),
                ". To enable more dtypes, set the jax_enable_x64 configuration option or the JAX_ENABLE_X64 shell "
                "environment variable."));
  }
  return narrowed;
}

Callable Arguments::callable(std::string_view name) const {
  if (const Callable* function = (*this)[name].get_if<Callable>()) return *function;
  refuse(name, "a function");
}

const Values& Arguments::variadic(std::string_view name) const { return (*this)[name].sequence()->items; }

void Arguments::require_absent(std::string_view name) const {
  if (given(name))
    throw NotImplementedError(concat("The '", name, "' argument to jnp.", function_, " is not supported."));
}

namespace {

// NumPy's alternative type names, and their one-letter codes, on machines with a 64-bit long.
struct NumpyName {
  std::string_view name;
  DType dtype;
};
constexpr NumpyName numpy_names[] = {
    {"?", DType::bool_},        {"b1", DType::bool_},       {"b", DType::int8},
    {"i1", DType::int8},        {"byte", DType::int8},      {"B", DType::uint8},
    {"u1", DType::uint8},       {"ubyte", DType::uint8},    {"h", DType::int16},
    {"i2", DType::int16},       {"short", DType::int16},    {"H", DType::uint16},
    {"u2", DType::uint16},      {"ushort", DType::uint16},  {"i", DType::int32},
    {"i4", DType::int32},       {"intc", DType::int32},     {"I", DType::uint32},
    {"u4", DType::uint32},      {"uintc", DType::uint32},   {"l", DType::int64},
    {"q", DType::int64},        {"p", DType::int64},        {"i8", DType::int64},
    {"int_", DType::int64},     {"intp", DType::int64},     {"long", DType::int64},
    {"longlong", DType::int64}, {"L", DType::uint64},       {"Q", DType::uint64},
    {"P", DType::uint64},       {"u8", DType::uint64},      {"uint", DType::uint64},
    {"uintp", DType::uint64},   {"ulong", DType::uint64},   {"ulonglong", DType::uint64},
    {"e", DType::float16},      {"f2", DType::float16},     {"half", DType::float16},
    {"f", DType::float32},      {"f4", DType::float32},     {"single", DType::float32},
    {"d", DType::float64},      {"f8", DType::float64},     {"double", DType::float64},
    {"F", DType::complex64},    {"c8", DType::complex64},   {"csingle", DType::complex64},
    {"D", DType::complex128},   {"c16", DType::complex128}, {"cdouble", DType::complex128},
};

std::optional<DType> from_numpy_name(std::string_view text) {
  // Native byte order (little-endian wherever the library runs), or single bytes.
  if (text.size() > 1 && (text.front() == '<' || text.front() == '=' || text.front() == '|')) text.remove_prefix(1);
  for (const NumpyName& row : numpy_names) {
    if (row.name == text) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace

std::optional<DType> dtype_of(const Value& value) {
  if (const DType* dtype = value.get_if<DType>()) return *dtype;
  const std::string* text = value.get_if<std::string>();
  if (!text) return std::nullopt;
  if (*text == "float") return default_float();
  if (*text == "int") return default_int();
  if (*text == "complex") return default_complex();
  if (std::optional<DType> named = dtype_from_name(*text)) return named;
  return from_numpy_name(*text);
}

}  // namespace capibara::library
