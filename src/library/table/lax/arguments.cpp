// Readers for arguments that only jax.lax has.
#include "library/table/lax/arguments.h"

#include <algorithm>

namespace capibara::library {

namespace lax = jax::lax;

namespace {

[[noreturn]] void refuse(const Arguments& arguments, std::string_view name, const char* expected) {
  throw TypeError(concat("lax.", arguments.function(), ": argument '", name, "' must be ", expected, ", got ",
                         arguments[name].type_name()));
}

std::optional<Ints> integers_of(const Value& value) {
  if (const int64_t* one = value.get_if<int64_t>()) return Ints{*one};
  if (const Array* array = value.array()) {
    if (array->ndim() > 1 || !is_integer(array->dtype())) return std::nullopt;
    return array->to_vector<int64_t>();
  }
  const Sequence* sequence = value.sequence();
  if (!sequence) return std::nullopt;
  Ints result;
  for (const Value& item : sequence->items) {
    std::optional<Ints> one = item.sequence() ? std::nullopt : integers_of(item);
    if (!one || one->size() != 1) return std::nullopt;
    result.push_back((*one)[0]);
  }
  return result;
}

std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

}  // namespace

void require_same_dtypes(const Arguments& arguments, std::initializer_list<Array> operands) {
  bool same = true;
  std::string dtypes;
  for (const Array& x : operands) {
    if (is_key(x.dtype())) return;
    same = same && x.dtype() == operands.begin()->dtype();
    dtypes += concat(dtypes.empty() ? "" : ", ", dtype_name(x.dtype()));
  }
  if (same) return;
  for (const Array& x : operands) {
    if (x.dtype() != DType::float0) continue;
    throw TypeError(concat("lax.", arguments.function(),
                           " was called with a float0 array; float0s do not support any operations by design: ",
                           "they mark derivatives that do not exist."));
  }
  throw TypeError(
      concat("lax.", arguments.function(), " requires arguments to have the same dtypes, got ", dtypes, "."));
}

Ints integer_sequence(const Arguments& arguments, std::string_view name) {
  const Value& value = arguments[name];
  const Array* array = value.array();
  if (!value.sequence() && !(array && array->ndim() == 1)) refuse(arguments, name, "a sequence of integers");
  return arguments.ints(name);
}

Ints optional_integer_sequence(const Arguments& arguments, std::string_view name) {
  return arguments.given(name) ? integer_sequence(arguments, name) : Ints{};
}

int64_t indexed_axis(const Arguments& arguments, std::string_view name, const Array& x) {
  const int64_t axis = arguments.integer(name);
  if (axis >= -x.ndim() && axis < x.ndim()) return axis < 0 ? axis + x.ndim() : axis;
  throw IndexError(
      concat("lax.", arguments.function(), ": ", name, " ", axis, " is out of range for ", to_string(x.type())));
}

std::string precision_text(const Arguments& arguments, std::string_view name) {
  const Value& value = arguments[name];
  if (value.is_none()) return {};
  if (const std::string* text = value.get_if<std::string>()) return *text;
  const Sequence* pair = value.sequence();
  std::string texts[2];
  bool fits = pair && pair->items.size() == 2;
  for (std::size_t i = 0; fits && i < 2; ++i) {
    const std::string* text = pair->items[i].get_if<std::string>();
    fits = text != nullptr;
    if (fits) texts[i] = *text;
  }
  if (fits) return texts[0] + "," + texts[1];
  throw ValueError(concat("lax.", arguments.function(), ": ", name,
                          " must be None, a precision, a pair of them or a dot algorithm, got ", value.type_name()));
}

PaddingArgument padding_argument(const Arguments& arguments, std::string_view name) {
  const Value& value = arguments[name];
  if (const std::string* mode = value.get_if<std::string>()) return {*mode, std::nullopt};
  lax::Padding pairs;
  bool fits = value.sequence() != nullptr;
  if (const Array* array = value.array(); array && array->ndim() == 2 && array->shape(1) == 2) {
    const Ints flat = array->to_vector<int64_t>();
    for (std::size_t i = 0; i < flat.size(); i += 2) pairs.emplace_back(flat[i], flat[i + 1]);
    return {{}, pairs};
  }
  for (std::size_t i = 0; fits && i < value.sequence()->items.size(); ++i) {
    const std::optional<Ints> pair = integers_of(value.sequence()->items[i]);
    fits = pair && pair->size() == 2;
    if (fits) pairs.emplace_back((*pair)[0], (*pair)[1]);
  }
  if (fits) return {{}, pairs};
  throw ValueError(concat("lax.", arguments.function(), ": ", name,
                          " must be a string or a sequence of (low, high) pairs, got ", value.type_name()));
}

std::optional<lax::GatherScatterMode> gather_scatter_mode(const Arguments& arguments, std::string_view name) {
  static const std::pair<const char*, lax::GatherScatterMode> modes[] = {
      {"clip", lax::GatherScatterMode::clip},
      {"fill", lax::GatherScatterMode::fill_or_drop},
      {"drop", lax::GatherScatterMode::fill_or_drop},
      {"fill_or_drop", lax::GatherScatterMode::fill_or_drop},
      {"promise_in_bounds", lax::GatherScatterMode::promise_in_bounds},
      {"one_hot", lax::GatherScatterMode::one_hot},
  };
  if (!arguments.given(name)) return std::nullopt;
  const std::string* text = arguments[name].get_if<std::string>();
  for (const auto& [known, mode] : modes) {
    if (text && lower_case(*text) == known) return mode;
  }
  throw ValueError(concat("lax.", arguments.function(), ": unknown gather mode \"",
                          text ? *text : arguments[name].type_name(), "\""));
}

std::vector<Ints> integer_tuples(const Arguments& arguments, std::string_view name, std::size_t least,
                                 std::size_t most) {
  const Sequence* sequence = arguments[name].sequence();
  if (!sequence || sequence->items.size() < least || sequence->items.size() > most) {
    refuse(arguments, name, "dimension numbers: a tuple of tuples of integers");
  }
  std::vector<Ints> result;
  for (const Value& item : sequence->items) {
    std::optional<Ints> ints = item.is_none() ? Ints{} : integers_of(item);
    if (!ints) refuse(arguments, name, "dimension numbers: a tuple of tuples of integers");
    result.push_back(*ints);
  }
  result.resize(most);
  return result;
}

DotDimensionNumbers dot_dimension_numbers(const std::string& function, const Value& value) {
  const Sequence* pair = value.sequence();
  std::vector<Ints> parts;
  for (std::size_t i = 0; pair && pair->items.size() == 2 && i < 2; ++i) {
    const Sequence* sides = pair->items[i].sequence();
    for (std::size_t j = 0; sides && sides->items.size() == 2 && j < 2; ++j) {
      if (std::optional<Ints> dims = integers_of(sides->items[j])) parts.push_back(*dims);
    }
  }
  if (parts.size() == 4) return {parts[0], parts[1], parts[2], parts[3]};
  throw TypeError(concat("lax.", function,
                         ": argument 'dimension_numbers' must be ((lhs_contract, rhs_contract), "
                         "(lhs_batch, rhs_batch)), got ",
                         value.type_name()));
}

ConvDimensionNumbers conv_dimension_numbers(const Arguments& arguments, std::string_view name, int64_t lhs_rank,
                                            int64_t rhs_rank) {
  const Value& value = arguments[name];
  const Sequence* sequence = value.sequence();
  if (sequence && sequence->items.size() == 3 && !sequence->items[0].get_if<std::string>()) {
    const std::vector<Ints> specs = integer_tuples(arguments, name, 3, 3);
    return {specs[0], specs[1], specs[2]};
  }
  if (lhs_rank != rhs_rank) {
    throw TypeError(concat("lax.", arguments.function(), ": convolution requires lhs and rhs ndim to be equal, got ",
                           lhs_rank, " and ", rhs_rank, "."));
  }
  if (value.is_none()) {
    Ints order;
    for (int64_t i = 0; i < lhs_rank; ++i) order.push_back(i);
    return {order, order, order};
  }
  if (!sequence || sequence->items.size() != 3) refuse(arguments, name, "None or a triple of strings");
  std::string texts[3];
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string* text = sequence->items[i].get_if<std::string>();
    if (!text) refuse(arguments, name, "None or a triple of strings");
    if (static_cast<int64_t>(text->size()) != lhs_rank) {
      throw TypeError(concat("lax.", arguments.function(), ": ", name, "[", i, "] must have one letter for each of ",
                             lhs_rank, " dimensions, got '", *text, "'."));
    }
    texts[i] = *text;
  }
  return lax::conv_dimension_numbers(texts[0], texts[1], texts[2]);
}

lax::AxisNames axis_names(const Arguments& arguments, std::string_view name) {
  const Value& value = arguments[name];
  if (const std::string* one = value.get_if<std::string>()) return {*one};
  const Sequence* sequence = value.sequence();
  if (!sequence) refuse(arguments, name, "the name of an axis or a tuple of names");
  lax::AxisNames names;
  for (const Value& item : sequence->items) {
    const std::string* one = item.get_if<std::string>();
    if (!one) refuse(arguments, name, "the name of an axis or a tuple of names");
    names.push_back(*one);
  }
  return names;
}

std::string single_axis_name(const Arguments& arguments) {
  const lax::AxisNames names = axis_names(arguments);
  if (names.size() == 1) return names[0];
  throw NotImplementedError(concat("lax.", arguments.function(), " works over one named axis, got ", names.size()));
}

lax::AxisGroups axis_groups(const Arguments& arguments) {
  lax::AxisGroups groups;
  const Value& value = arguments["axis_index_groups"];
  if (value.is_none()) return groups;
  if (!value.sequence()) refuse(arguments, "axis_index_groups", "a list of lists of integers");
  for (const Value& item : value.sequence()->items) {
    std::optional<Ints> group = integers_of(item);
    if (!group) refuse(arguments, "axis_index_groups", "a list of lists of integers");
    groups.push_back(*group);
  }
  return groups;
}

Value map_leaves(const Value& value, const std::function<Value(const Value&)>& function) {
  const Sequence* sequence = value.sequence();
  if (value.is_none()) return value;
  if (!sequence) return function(value);
  Sequence result = *sequence;
  for (Value& item : result.items) item = map_leaves(item, function);
  return result;
}

Array leaf_array(const Arguments& arguments, const Value& leaf) {
  if (leaf.array() || leaf.is_number()) return array_of(leaf, arguments.function().c_str());
  throw TypeError(
      concat("lax.", arguments.function(), ": argument of type ", leaf.type_name(), " is not a valid JAX type"));
}

}  // namespace capibara::library
