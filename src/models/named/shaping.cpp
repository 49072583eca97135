// Shapes and parts of tensors: reshaping, joining, indexing, conversions between tensors, lists and numbers.
#include "models/named/catalog.h"

#include <capibara/numpy.h>
#include <capibara/primitive.h>

namespace capibara::models {

namespace jnp = jax::numpy;

namespace {

Arrays arrays_of(const Operands& c) {
  Arrays arrays;
  const Value& input = c["input"];
  if (input.is_list()) {
    for (const Value& entry : input.list()) arrays.push_back(to_array(entry, c.dtype()));
  } else if (input.given()) {
    Array stacked = c.array("input");  // the rows of a single array
    for (int64_t i = 0; i < stacked.shape(0); ++i) arrays.push_back(stacked[Index(i)]);
  }
  for (std::size_t i = 1; c[concat("input", i)].given(); ++i) arrays.push_back(c.array(concat("input", i)));
  return arrays;
}

Value joined(const Operands& c) {
  jnp::ConcatenateOptions options;
  const Value& axis = c["axis"];
  if (axis.is_none())
    options.axis = std::nullopt;
  else
    options.axis = axis.integer();
  return jnp::concatenate(arrays_of(c), options);
}

std::string numbered_inputs(const Arguments& a) {
  std::string keys;
  for (int64_t i = 1; i <= a["n"].integer(); ++i) keys += (keys.empty() ? "input" : ", input") + concat(i);
  return keys + " -> output";
}

// With n, the inputs are separate keys; without it, one list.
std::string concat_keys(const Arguments& a) {
  if (!a.given("n")) return "input, axis=0 -> output[?]";
  std::string keys;
  for (int64_t i = 1; i <= a["n"].integer(); ++i) keys += concat("input", i, "[?], ");
  return keys + "axis=0 -> output[?]";
}

Value as_list(const Operands& c) {
  List list;
  for (std::size_t i = 0; i < c.size(); ++i) list.push_back(c.at(i));
  return list;
}

Value joined_lists(const Operands& c) {
  List list;
  for (std::size_t i = 0; i < c.size(); ++i) {
    if (!c.at(i).is_list()) {
      list.push_back(c.at(i));
      continue;
    }
    for (const Value& entry : c.at(i).list()) list.push_back(entry);
  }
  return list;
}

Index index_entry(const Value& value, DType dtype) {
  if (value.is<Slice>()) return value.slice();
  if (value.is<Ellipsis>()) return ellipsis;
  if (value.is_none()) return newaxis;
  if (value.is_number()) return value.integer();
  return to_array(value, dtype);
}

// An element or slice of a plain list.
Value list_part(const List& list, const Value& index) {
  int64_t size = static_cast<int64_t>(list.size());
  if (index.is_number()) {
    int64_t position = index.integer() < 0 ? index.integer() + size : index.integer();
    if (position < 0 || position >= size) {
      throw IndexError(concat("index ", index.integer(), " is out of range for a list of ", size));
    }
    return list[static_cast<std::size_t>(position)];
  }
  Slice slice = index.slice();
  int64_t step = slice.step.value_or(1);
  if (step == 0) throw ValueError("the step of a slice cannot be 0");
  auto bound = [&](const std::optional<int64_t>& end, int64_t otherwise) {
    if (!end) return otherwise;
    int64_t value = *end < 0 ? *end + size : *end;
    return std::min(std::max<int64_t>(value, step < 0 ? -1 : 0), size - (step < 0 ? 1 : 0));
  };
  int64_t start = bound(slice.start, step > 0 ? 0 : size - 1), stop = bound(slice.stop, step > 0 ? size : -1);
  List part;
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) part.push_back(list[static_cast<std::size_t>(i)]);
  return part;
}

Value indexed(const Operands& c) {
  const Value &input = c["input"], &index = c["index"];
  if (input.is_list()) return list_part(input.list(), index);
  Array array = c.array("input");
  std::vector<Index> entries;
  if (index.is_list()) {
    for (const Value& entry : index.list()) entries.push_back(index_entry(entry, c.dtype()));
  } else {
    entries.push_back(index_entry(index, c.dtype()));
  }
  return IndexUpdate(array, entries).get();
}

std::optional<int64_t> end_of(const Value& value) {
  if (!value.given() || value.is_none()) return std::nullopt;
  return value.integer();
}

Value sizes(const Operands& c) {
  if (c.at(0).is_list()) return List{static_cast<int64_t>(c.at(0).list().size())};
  return Value(c.array(0).shape());
}

Value size_of(const Operands& c) {
  Array input = c.array("input");
  const Value& dim = c["dim"];
  if (dim.is_none()) return input.size();
  if (!dim.is_list()) return input.shape(dim.integer());
  List list;
  for (int64_t axis : dim.integers()) list.push_back(input.shape(axis));
  return list;
}

Value flattened_dims(const Operands& c) {
  Array input = c.array("input");
  int64_t rank = input.ndim(), start = c["start_dim"].integer(), end = c["end_dim"].integer();
  if (start < 0) start += rank;
  if (end < 0) end += rank;
  if (rank == 0) return input.reshape({1});
  if (start < 0 || end >= rank || start > end) {
    throw ValueError(concat("Flatten: start_dim ", c["start_dim"].integer(), " and end_dim ", c["end_dim"].integer(),
                            " name no range of dimensions of ", capibara::to_string(input.type())));
  }
  Shape shape(input.shape().begin(), input.shape().begin() + start);
  shape.push_back(-1);
  shape.insert(shape.end(), input.shape().begin() + end + 1, input.shape().end());
  return input.reshape(shape);
}

Value transposed(const Operands& c) {
  Array input = c.array("input");
  const Value& axes = c["axes"];
  if (axes.is_none() || (axes.is_list() && axes.list().empty())) return jnp::transpose(input);
  return jnp::transpose(input, Ints(axes.integers()));
}

Value nested_list(const Array& array) {
  if (array.ndim() == 0) {
    if (is_floating(array.dtype())) return array.item<double>();
    if (array.dtype() == DType::bool_) return array.item<bool>();
    return array.item<int64_t>();
  }
  List list;
  for (int64_t i = 0; i < array.shape(0); ++i) list.push_back(nested_list(array[Index(i)]));
  return list;
}

Value to_tensor(const Operands& c) {
  const Value& input = c["input"];
  Array array;
  bool arrays = false;
  if (input.is_list()) {
    for (const Value& entry : input.list()) arrays = arrays || entry.is_array();
  }
  if (arrays) {
    Arrays parts;
    for (const Value& entry : input.list()) parts.push_back(to_array(entry, c.dtype()));
    array = jnp::stack(parts);
  } else {
    array = c.array("input");
  }
  if (!c["dtype"].given() || c["dtype"].is_none()) return array;
  return array.astype(c["dtype"].dtype());
}

Value padded(const Operands& c) {
  jnp::PadWidths widths;
  for (const Value& entry : c["pad_width"].list()) {
    if (entry.is_list())
      widths.emplace_back(entry.list().at(0).integer(), entry.list().at(1).integer());
    else
      widths.emplace_back(entry.integer(), entry.integer());
  }
  return jnp::pad(c.array("input"), widths);
}

Value split_parts(const Operands& c) {
  Array input = c.array("input");
  int64_t axis = c["axis"].integer();
  const Value& split = c["split_size"];
  Arrays parts =
      split.is_list() ? jnp::split(input, Ints(split.integers()), axis) : jnp::split(input, split.integer(), axis);
  return jnp::stack(parts);
}

ShapeRule reshape_rule() {
  return [](RuleScope& scope) {
    const Value& shape = scope.value("shape");
    if (!shape.is_list() && !shape.is_number()) return;
    std::vector<int64_t> sizes;
    for (const Value& size : shape.is_list() ? shape.list() : List{shape}) {
      if (!size.is_number()) return;
      sizes.push_back(size.integer());
    }
    std::optional<std::vector<DimId>> output = scope.dims("output");
    if (output && output->size() == sizes.size()) {
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] >= 0) scope.equate((*output)[i], scope.known(sizes[i]), "output");
      }
      return;
    }
    std::vector<DimId> dims;
    for (int64_t size : sizes) dims.push_back(size < 0 ? scope.fresh() : scope.known(size));
    scope.set("output", dims);
  };
}

}  // namespace

Records shaping_records() {
  return {
      {"Shape", "input", "input[?] -> output", "The sizes of the dimensions.", sizes},
      {"Size", "dim=None, input", "input[?], dim=None -> output", "The number of elements, or the size of dimensions.",
       size_of},
      {"Length", "input", "input -> output", "The length of a list or of the first dimension.",
       [](const Operands& c) -> Value {
         if (c.at(0).is_list()) return static_cast<int64_t>(c.at(0).list().size());
         return c.array(0).shape(0);
       }},
      {"Reshape", "shape, input", "input[?], shape -> output[?]", "The same elements in another shape.",
       [](const Operands& c) -> Value {
         Array input = c.array("input");
         return jnp::reshape(input, Shape(c["shape"].integers()));
       },
       reshape_rule()},
      {"Transpose", "axes=None, input", "input[?], axes=None -> output[?]", "Permuted dimensions.", transposed,
       transpose_rule()},
      {"SwapAxes", "axis1, axis2, input", "input[?], axis1, axis2 -> output[?]", "Two dimensions exchanged.",
       [](const Operands& c) -> Value {
         return jnp::swapaxes(c.array("input"), c["axis1"].integer(), c["axis2"].integer());
       },
       swap_axes_rule()},
      {"Flatten", "start_dim=0, end_dim=-1, input", "input[?], start_dim=0, end_dim=-1 -> output[?]",
       "Several dimensions as one.", flattened_dims, flatten_rule()},
      {"Squeeze", "input", "input[?] -> output[?]", "Without dimensions of size 1.",
       [](const Operands& c) -> Value { return jnp::squeeze(c.array(0)); }},
      {"BroadcastTo", "shape, input", "input[?], shape -> output[?]", "Repeated to a shape.",
       [](const Operands& c) -> Value {
         Array input = c.array("input");
         return jnp::broadcast_to(input, Shape(c["shape"].integers()));
       }},
      {"Concat",
       "input, axis=0, n=None",
       "",
       "Tensors joined along an axis; None: all elements in a row.",
       joined,
       {},
       nullptr,
       concat_keys},
      {"Split", "split_size, axis=0, input", "input[?], split_size, axis=0 -> output[?]", "Equal parts, stacked.",
       split_parts},
      {"Pad", "pad_width, input", "input[?], pad_width -> output[?]", "Zeros around.", padded},
      {"PermuteTensor", "indices, input", "input[N, V...], indices[N]!i -> output[N, V...]", "Rows in another order.",
       [](const Operands& c) -> Value {
         Array input = c.array("input"), indices = c.array("indices");
         return jnp::take(input, indices, {.axis = 0});
       }},
      {"Slice", "start=None, stop=None, step=None", "start=None, stop=None, step=None -> output",
       "A slice, to index with.",
       [](const Operands& c) -> Value {
         return Slice{end_of(c["start"]), end_of(c["stop"]), end_of(c["step"])};
       }},
      {"Indexer", "index, input", "input, index -> output", "input[index].", indexed},
      {"ToTuple", "n", "", "Values as a tuple.", as_list, {}, nullptr, numbered_inputs},
      {"ToList", "n", "", "Values as a list.", as_list, {}, nullptr, numbered_inputs},
      {"PrimitiveUnion", "n=1", "", "Numbers and tuples as one tuple.", joined_lists, {}, nullptr, numbered_inputs},
      {"ToTensor", "input, dtype=None", "input, dtype=None -> output[?]", "Numbers or a list as a tensor.", to_tensor},
      {"TensorToList", "input", "input[?] -> output", "A tensor as nested lists.",
       [](const Operands& c) -> Value { return nested_list(c.array(0)); }},
      {"Item", "input", "input[?] -> output", "The only element as a number.",
       [](const Operands& c) -> Value {
         Array input = c.array(0);
         if (input.is_tracer()) return input.reshape({});
         return nested_list(input.reshape({}));
       }},
      {"Cast", "dtype, input", "input[V...], dtype -> output[V...]", "The elements in another dtype.",
       [](const Operands& c) -> Value { return c.array("input").astype(c["dtype"].dtype()); }},
      {"Dtype", "input", "input[?] -> output", "The dtype.",
       [](const Operands& c) -> Value { return c.array(0).dtype(); }},
      {"Where", "cond, input1, input2", "cond, input1, input2 -> output[?]", "input1 where cond holds, else input2.",
       [](const Operands& c) -> Value {
         Array condition = c.array(0), first = c.array(1), second = c.array(2);
         return jnp::where(condition, first, second);
       }},
  };
}

}  // namespace capibara::models
