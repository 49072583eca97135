// Dynamic sizes: the values of them that are known while a text is read.
#include "compiler/stablehlo/open_sizes.h"

#include <algorithm>
#include <map>

#include <capibara/error.h>
#include <capibara/lax.h>

#include "compiler/stablehlo/read_body.h"

namespace capibara::stablehlo {

namespace {

namespace lax = jax::lax;

constexpr int64_t known_limit = 64;  // elements: a larger array is not a shape

bool any_open(const std::vector<Value>& values) {
  return std::ranges::any_of(values, [](const Value& value) { return has_open_sizes(value.type); });
}

bool any_open(const Block& block);

bool any_open(const Operation& operation) {
  if (any_open(operation.operands) || any_open(operation.results)) return true;
  return std::ranges::any_of(operation.regions, [](const Region& region) {
    return std::ranges::any_of(region.blocks, [](const Block& b) { return any_open(b); });
  });
}

bool any_open(const Block& block) {
  return std::ranges::any_of(block.operations, [](const Operation& operation) { return any_open(operation); });
}

// The operand that contains the result's shape.
std::optional<std::size_t> shape_operand(std::string_view operation) {
  static const std::map<std::string_view, std::size_t> operands = {{"stablehlo.dynamic_iota", 0},
                                                                   {"stablehlo.dynamic_reshape", 1},
                                                                   {"stablehlo.dynamic_broadcast_in_dim", 1},
                                                                   {"stablehlo.rng", 2}};
  const auto it = operands.find(operation);
  return it == operands.end() ? std::nullopt : std::optional(it->second);
}

// True if the operation's rule takes the shape of the result from its declared type.
bool needs_result_shape(std::string_view operation) {
  static constexpr std::string_view names[] = {
      "stablehlo.broadcast_in_dim", "stablehlo.broadcast",         "stablehlo.reshape",    "stablehlo.iota",
      "stablehlo.constant",         "stablehlo.rng_bit_generator", "stablehlo.custom_call"};
  return std::ranges::find(names, operation) != std::end(names);
}

Type resized(const Type& type, const Ints& sizes) { return Type::tensor(sizes, type.element(), type.encoding()); }

bool is_window(const Operation& operation) {
  const Attribute target = operation.attributes.find("call_target_name");
  const auto* name = target.as<String>();
  return name && name->value == "stablehlo.dynamic_reduce_window";
}

Ints broadcast_shape(std::span<const NdArray> operands) {
  Ints shape;
  for (const NdArray& operand : operands) {
    const Shape& own = operand.shape();
    if (own.size() > shape.size()) shape.insert(shape.begin(), own.size() - shape.size(), 1);
    for (std::size_t i = 0; i < own.size(); ++i) {
      int64_t& size = shape[shape.size() - own.size() + i];
      if (size == 1) size = own[i];
    }
  }
  return shape;
}

// jax passes a custom call the shapes of its results as its last operands.
void take_result_shapes(Operation& operation, Arrays& operands) {
  const std::optional<Ints> indices = integers_of(operation.attributes.find("indices_of_shape_operands"));
  if (!indices) return;
  if (indices->size() != operation.results.size() || operation.operands.size() != operands.size())
    fail(operation, concat("expected the shapes of ", operation.results.size(), " results, got ", indices->size()));
  for (std::size_t i = 0; i < indices->size(); ++i) {
    const auto at = static_cast<std::size_t>((*indices)[i]);
    operation.results[i].type = resized(operation.results[i].type, constant_integers(operation, operands, at));
  }
  Arrays rest;
  std::vector<Value> values;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (std::ranges::find(*indices, static_cast<int64_t>(i)) != indices->end()) continue;
    rest.push_back(operands[i]);
    values.push_back(operation.operands[i]);
  }
  operands = std::move(rest);
  operation.operands = std::move(values);
  std::vector<Dictionary::Entry> entries;
  for (const Dictionary::Entry& entry : operation.attributes) {
    if (entry.first != "indices_of_shape_operands") entries.push_back(entry);
  }
  operation.attributes = Dictionary(std::move(entries));
}

}  // namespace

bool has_open_sizes(const Type& type) {
  if (type.is_tuple()) return std::ranges::any_of(type.elements(), [](const Type& t) { return has_open_sizes(t); });
  return type.is_tensor() && type.is_ranked() && !type.has_static_shape();
}

bool has_open_sizes(const Module& module) {
  return std::ranges::any_of(module.functions, [](const Function& function) {
    return any_open(function.body) ||
           std::ranges::any_of(function.arguments, [](const auto& a) { return has_open_sizes(a.type); }) ||
           std::ranges::any_of(function.results, [](const auto& r) { return has_open_sizes(r.type); });
  });
}

bool is_known(const NdArray& array) {
  return !array.is_tracer() && (is_integer(array.dtype()) || is_bool(array.dtype())) && array.size() <= known_limit;
}

std::string call_key(std::span<const NdArray> operands) {
  std::string key;
  for (const NdArray& operand : operands) {
    key += type_text(operand.type());
    if (is_known(operand)) {
      key += "=";
      for (const int64_t value : operand.to_vector<int64_t>()) key += std::to_string(value) + ",";
    }
    key += ";";
  }
  return key;
}

bool gives_sizes(const Operation& operation, std::span<const NdArray> operands) {
  if (operands.empty() || !operation.regions.empty() || !std::ranges::all_of(operands, is_known)) return false;
  return std::ranges::all_of(operation.results, [](const Value& result) {
    const std::optional<DType> dtype = result.type.is_tensor() ? result.type.dtype() : std::nullopt;
    return dtype && (is_integer(*dtype) || is_bool(*dtype));
  });
}

bool needs_sizes(const Operation& operation) {
  return operation.name == "stablehlo.custom_call" || any_open(operation.results);
}

void close_sizes(Operation& operation, Arrays& operands) {
  if (operation.name == "stablehlo.custom_call") {
    take_result_shapes(operation, operands);
    const Attribute target = operation.attributes.find("call_target_name");
    if (const auto* name = target.as<String>(); name && name->value == "stablehlo.dynamic_top_k") {
      require_operands(operation, operands, 2);
      const Ints k = constant_integers(operation, operands, 1);
      operation.name = "chlo.top_k";
      operation.attributes = Dictionary({{"k", Attribute::of(Integer{k.at(0), Type::scalar("i64")})}});
      operation.operands.resize(1);
      operands.resize(1);
    } else if (name && name->value == "stablehlo.dynamic_rng_bit_generator") {
      require_operands(operation, operands, 2);
      if (operation.results.size() != 2) fail(operation, "expected two results");
      operation.results[1].type = resized(operation.results[1].type, constant_integers(operation, operands, 1));
      operation.name = "stablehlo.rng_bit_generator";
      operation.attributes = Dictionary({{"rng_algorithm", operation.attributes.find("rng_algorithm")}});
      operation.operands.resize(1);
      operands.resize(1);
    }
  }
  if (!any_open(operation.results)) return;
  if (const std::optional<std::size_t> shape = shape_operand(operation.name)) {
    const Ints sizes = constant_integers(operation, operands, *shape);
    for (Value& result : operation.results) result.type = resized(result.type, sizes);
  } else if (operation.name.starts_with("chlo.broadcast_")) {
    for (Value& result : operation.results) result.type = resized(result.type, broadcast_shape(operands));
  } else if (needs_result_shape(operation.name) && !is_window(operation)) {
    throw UnsupportedError(
        concat(place_of(operation), ": the shape of its result is not known: ", operation.results[0].type.text()));
  }
}

Arrays read_shape_assertion(const Operation& operation, const Arrays& operands) {
  if (operands.empty()) fail(operation, "expected a condition");
  if (!is_known(operands[0])) {
    throw UnsupportedError(concat(place_of(operation), ": the condition of a shape assertion must follow from shapes"));
  }
  if (operands[0].item<bool>()) return {};
  std::string message = string_attribute(operation, "error_message");
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const std::string mark = concat("{", i - 1, "}");
    const std::string value = is_known(operands[i]) ? operands[i].to_string() : "?";
    for (std::size_t at = message.find(mark); at != std::string::npos; at = message.find(mark, at + value.size()))
      message.replace(at, mark.size(), value);
  }
  throw ShapeError(message);
}

Arrays read_dynamic_window(BodyReader& body, const Operation& operation, const Arrays& operands) {
  static constexpr const char* names[] = {"window_dimensions", "window_strides", "base_dilations", "window_dilations",
                                          "padding"};
  const std::size_t inputs = 2 * operation.results.size();
  require_operands(operation, operands, inputs + std::size(names));
  const Attribute called = operation.attributes.find("called_computations");
  const auto* functions = called.as<Array>();
  if (!functions || functions->elements.size() != 1) fail(operation, "expected one function that reduces");
  Operation window = operation;
  window.name = "stablehlo.reduce_window";
  std::vector<Dictionary::Entry> attributes;
  for (std::size_t i = 0; i < std::size(names); ++i) {
    const Ints values = constant_integers(operation, operands, inputs + i);
    attributes.emplace_back(names[i], Attribute::of(DenseArray{"i64", values, {}}));
  }
  window.attributes = Dictionary(std::move(attributes));
  Types types;
  for (std::size_t i = 0; i < inputs; ++i) types.push_back(operands[i].type());
  const Attrs attrs = find_row(window)->read({window, types, {}});
  const Program reducer = body.module().program_of(body.module().function_of(operation, functions->elements[0]));
  return bind_named("reduce_window", Arrays(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(inputs)),
                    attrs.with("jaxpr", reducer));
}

Arrays read_slice_at(BodyReader& body, const Operation& operation, const Arrays& operands) {
  const auto refuse = [&] { throw UnsupportedError(concat(place_of(operation), ": a slice must be of known sizes")); };
  const Ints strides = constant_integers(operation, operands, 3);
  if (std::ranges::any_of(strides, [](int64_t stride) { return stride != 1; })) refuse();
  const ValueId starts = operation.operands.at(1).id, ends = operation.operands.at(2).id;
  for (const Operation& other : body.block().operations) {
    if (other.name != "stablehlo.add" || other.results.empty() || other.results[0].id != ends) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      const Arrays& sizes = body.value(other.operands[1 - i].id);
      if (other.operands[i].id != starts || sizes.size() != 1 || !is_known(sizes[0])) continue;
      Arrays inputs = {operands[0]};
      for (int64_t axis = 0; axis < operands[0].ndim(); ++axis)
        inputs.push_back(lax::index_in_dim(operands[1], axis, 0, false));
      return bind_named("dynamic_slice", inputs, {{"slice_sizes", sizes[0].to_vector<int64_t>()}});
    }
  }
  refuse();
  return {};
}

}  // namespace capibara::stablehlo
