// Building blocks shared by the rules of many primitives: tangents, batching, broadcasting, argument checks.
#include "lax/rules.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "core/array/element.h"
#include "core/array/format.h"
#include "program/ir/explicit_types.h"

namespace capibara {

namespace lax = jax::lax;

// ---- values -----------------------------------------------------------------------------------------------------

namespace {

std::string array_shapes(std::span<const ArrayType> types) {
  std::string text;
  for (const ArrayType& type : types) {
    if (type.shape.empty()) continue;
    if (!text.empty()) text += ", ";
    text += shape_tuple(type.shape);
  }
  return text;
}

}  // namespace

Array scalar_like(const Array& like, double value) {
  return scalar_of(like.dtype(), value, like.weak_type() && like.ndim() == 0);
}

// Not Array::from_host: a constant of a 64-bit program stays 64-bit whatever the configuration.
Array scalar_of(DType dtype, double value, bool weak_type) {
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(storage_size(dtype)));
  store_as<double>(dtype, buffer.mutable_data(), 0, value);
  ArrayType type;
  type.dtype = dtype;
  type.weak_type = weak_type;
  return Array::from_buffer(std::move(type), std::move(buffer));
}

// ---- batching ---------------------------------------------------------------------------------------------------

Ints shifted(const Ints& dims, int64_t batch_dim) {
  Ints result = dims;
  for (int64_t& dim : result) dim = shifted(dim, batch_dim);
  return result;
}

BatchResult batch_elementwise(const BatchArgs& args) {
  const auto bind_at = [&](std::span<const Array> inputs, int64_t dim) {
    Arrays outputs = capibara::bind(args.primitive, inputs, args.attrs);
    std::vector<int64_t> dims(outputs.size(), dim);
    return BatchResult{std::move(outputs), std::move(dims)};
  };
  const std::size_t count = args.inputs.size();
  const std::size_t first = static_cast<std::size_t>(
      std::find_if(args.dims.begin(), args.dims.end(), [](int64_t d) { return d != not_mapped; }) - args.dims.begin());
  if (first == count) return bind_at(args.inputs, not_mapped);

  const Shape& shape = args.inputs[first].shape();
  const int64_t dim = args.dims[first];
  bool agree = true;
  for (std::size_t i = 0; i < count; ++i) {
    if (args.inputs[i].ndim() > 0 && (args.inputs[i].shape() != shape || args.dims[i] != dim)) agree = false;
  }
  if (agree) return bind_at(args.inputs, dim);

  // Unmapped operands get a dimension of size 1, which the operation itself broadcasts.
  Arrays inputs;
  int64_t rank = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Array& x = args.inputs[i];
    inputs.push_back(x.ndim() > 0 ? batch_at(x, args.dims[i], 1) : x);
    rank = std::max(rank, inputs.back().ndim());
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!args.mapped(i) || inputs[i].ndim() == rank) continue;
    Ints trailing;
    for (int64_t d = inputs[i].ndim(); d < rank; ++d) trailing.push_back(d);
    inputs[i] = lax::expand_dims(inputs[i], trailing);
  }
  return bind_at(inputs, 0);
}

BatchResult batch_leading(const BatchArgs& args) {
  Arrays inputs;
  bool any = false;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) any = any || args.mapped(i);
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    inputs.push_back(any ? batch_at(args.inputs[i], args.dims[i], args.axis) : args.inputs[i]);
  }
  Arrays outputs = capibara::bind(args.primitive, inputs, args.attrs);
  std::vector<int64_t> dims(outputs.size(), any ? 0 : not_mapped);
  return {std::move(outputs), std::move(dims)};
}

// ---- derivatives ------------------------------------------------------------------------------------------------

JvpRule linear_jvp() {
  return [](const JvpArgs& args) {
    JvpResult result;
    result.primals = capibara::bind(args.primitive, args.primals, args.attrs);
    Arrays tangents;
    for (std::size_t i = 0; i < args.primals.size(); ++i) {
      tangents.push_back(instantiate(args.tangents[i], args.primals[i].type()));
    }
    result.tangents = capibara::bind(args.primitive, tangents, args.attrs);
    return result;
  };
}

JvpResult bilinear_jvp(const JvpArgs& args) {
  const Array &x = args.primals[0], &y = args.primals[1];
  Array out = capibara::bind(args.primitive, args.primals, args.attrs)[0], from_x, from_y;
  if (args.tangents[0].defined()) from_x = capibara::bind(args.primitive, Arrays{args.tangents[0], y}, args.attrs)[0];
  if (args.tangents[1].defined()) from_y = capibara::bind(args.primitive, Arrays{x, args.tangents[1]}, args.attrs)[0];
  return {{out}, {add_tangents(from_x, from_y)}};
}

JvpRule elementwise_jvp(std::vector<Derivative> derivatives) {
  return [derivatives = std::move(derivatives)](const JvpArgs& args) {
    JvpResult result;
    result.primals = capibara::bind(args.primitive, args.primals, args.attrs);
    Arrays terms;
    for (std::size_t i = 0; i < args.tangents.size() && i < derivatives.size(); ++i) {
      if (!derivatives[i] || !args.tangents[i].defined()) continue;
      terms.push_back(derivatives[i](args.tangents[i], result.primals[0], args.primals, args.attrs));
    }
    Array sum;
    for (const Array& term : terms) sum = add_tangents(sum, term);
    result.tangents = {sum};
    return result;
  };
}

JvpRule zero_jvp() {
  return [](const JvpArgs& args) {
    JvpResult result;
    result.primals = capibara::bind(args.primitive, args.primals, args.attrs);
    result.tangents.resize(result.primals.size());
    return result;
  };
}

Array unbroadcast(const Array& cotangent, const ArrayType& to) {
  if (!cotangent.defined()) return cotangent;
  const Sharding wanted = cotangent_sharding(to.sharding);
  const bool keeps = !wanted.is_explicit() || wanted == cotangent.type().sharding;
  if (cotangent.shape() == to.shape && keeps) return cotangent;
  Ints dims;
  for (int64_t i = 0; i < cotangent.ndim(); ++i) {
    if (to.shape.empty() || cotangent.shape()[static_cast<std::size_t>(i)] != to.shape[static_cast<std::size_t>(i)]) {
      dims.push_back(i);
    }
  }
  Array sum = dims.empty() ? cotangent : lax::reduce_sum(cotangent, {.axes = dims});
  return to.shape.empty() ? sum : lax::reshape(sum, to.shape, {}, wanted);
}

// ---- types ------------------------------------------------------------------------------------------------------

Shape broadcast_operand_shapes(const std::string& op, std::span<const ArrayType> types) {
  const ArrayType* first = nullptr;
  std::set<int64_t> ranks;
  for (const ArrayType& type : types) {
    if (type.shape.empty()) continue;
    if (!first) first = &type;
    ranks.insert(type.rank());
  }
  if (!first) return {};
  if (ranks.size() > 1) {
    throw TypeError(concat(op, ": arrays must have the same number of dimensions, got ", array_shapes(types),
                           "; reshape or broadcast_in_dim one of them"));
  }
  Shape shape = first->shape;
  for (const ArrayType& type : types) {
    if (type.shape.empty()) continue;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1)
        shape[i] = type.shape[i];
      else if (type.shape[i] != 1 && type.shape[i] != shape[i]) {
        throw TypeError(concat(op, " got incompatible shapes for broadcasting: ", array_shapes(types), "."));
      }
    }
  }
  return shape;
}

void require_same_dtypes(const std::string& op, std::span<const ArrayType> types) {
  const auto differs = [&](const ArrayType& type) { return type.dtype != types[0].dtype; };
  if (std::none_of(types.begin(), types.end(), differs)) return;
  std::string names;
  for (const ArrayType& type : types) names += (names.empty() ? "" : ", ") + to_string(type.dtype);

  static constexpr std::array<std::pair<std::string_view, std::string_view>, 12> promoting = {{
      {"add", "add"},
      {"atan2", "arctan2"},
      {"concatenate", "concatenate"},
      {"div", "divide"},
      {"eq", "equal"},
      {"max", "maximum"},
      {"min", "minimum"},
      {"mul", "multiply"},
      {"ne", "not_equal"},
      {"nextafter", "nextafter"},
      {"pow", "float_power"},
      {"sub", "subtract"},
  }};
  std::string hint;
  for (const auto& [name, equivalent] : promoting) {
    if (name == op) {
      hint = concat(" (Tip: jnp.", equivalent, " is a similar function that does automatic type promotion on inputs).");
    }
  }
  throw TypeError(concat("lax.", op, " requires arguments to have the same dtypes, got ", names, ".", hint));
}

void require_rank(const std::string& op, const std::string& argument, const ArrayType& type, int64_t rank) {
  if (type.rank() == rank) return;
  throw TypeError(concat(op, ": argument '", argument, "' must have rank ", rank, ", got ", to_string(type)));
}

void require_count(const std::string& op, std::span<const ArrayType> types, std::size_t count) {
  if (types.size() == count) return;
  throw TypeError(concat(op, ": expected ", count, count == 1 ? " operand" : " operands", ", got ", types.size()));
}

int64_t checked_axis(const std::string& op, int64_t axis, const ArrayType& type, const char* argument) {
  if (axis < -type.rank() || axis >= type.rank()) {
    throw ValueError(
        concat(op, ": axis ", axis, " is out of bounds for ", to_string(type), " (argument '", argument, "')"));
  }
  return axis < 0 ? axis + type.rank() : axis;
}

}  // namespace capibara
