// Windows of an array at dynamic start indices: dynamic_slice, dynamic_update_slice.
#include "lax/call.h"
#include "lax/operators/plain_number.h"
#include "lax/reduce/monoid.h"
#include "lax/shape/shape.h"
#include "lax/sharding/splits.h"
#include "program/trace/stage.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

void require_start_indices(const std::string& op, std::span<const ArrayType> starts, const ArrayType& operand) {
  if (static_cast<int64_t>(starts.size()) != operand.rank()) {
    throw TypeError(concat(op, ": start_indices must have one entry per operand dimension, got ", starts.size(),
                           " for shape ", tuple(operand.shape)));
  }
  for (const ArrayType& start : starts) {
    if (start.rank() != 0) {
      throw TypeError(concat(op, ": start_indices must be scalars, got shape ", tuple(start.shape)));
    }
    if (!is_integer(start.dtype) || start.dtype != starts[0].dtype) {
      std::string names;
      for (const ArrayType& s : starts) names += (names.empty() ? "" : ", ") + to_string(s.dtype);
      throw TypeError(concat("index arguments to ", op, " must be integers of the same type, got ", names));
    }
  }
}

TypeResult dynamic_slice_type(std::span<const ArrayType> types, const Attrs& attrs) {
  if (types.empty()) throw TypeError("dynamic_slice: an operand is needed, got none");
  const ArrayType& x = types[0];
  const Ints& sizes = attrs.ints("slice_sizes");
  require_start_indices("dynamic_slice", types.subspan(1), x);
  require_sizes("dynamic_slice", "slice_sizes", sizes);
  if (sizes.size() != x.shape.size()) {
    throw TypeError(concat("dynamic_slice: slice_sizes must have one entry per operand dimension, got ", tuple(sizes),
                           " for shape ", tuple(x.shape)));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > x.shape[i]) {
      throw TypeError(concat("dynamic_slice: slice_sizes must be less than or equal to the operand shape, got ",
                             tuple(sizes), " for shape ", tuple(x.shape)));
    }
  }
  return Types{x.with_shape(sizes)};
}

// The start indices of a dynamic slice as one index vector per mapped element (or one for all).
struct IndexVectors {
  Array indices;
  int64_t dim;  // 0 or not_mapped
};

IndexVectors join_start_indices(std::span<const Array> starts, std::span<const int64_t> dims, int64_t axis_size) {
  if (starts.empty()) return {lax::zeros(sample_type(DType::int32, {0})), not_mapped};
  bool mapped = std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d != not_mapped; });
  Arrays columns;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (!mapped)
      columns.push_back(lax::broadcast(starts[i], {1}));
    else
      columns.push_back(lax::broadcast_in_dim(starts[i], {axis_size, 1}, dims[i] != not_mapped ? Ints{0} : Ints{}));
  }
  return {lax::concatenate(columns, mapped ? 1 : 0), mapped ? 0 : not_mapped};
}

BatchResult dynamic_slice_batch(const BatchArgs& args) {
  static const Primitive gather = primitive("gather");
  const Ints& sizes = args.attrs.ints("slice_sizes");
  Ints dims = range(static_cast<int64_t>(sizes.size()));
  IndexVectors starts = join_start_indices(args.inputs.subspan(1), args.dims.subspan(1), args.axis.size);
  Attrs attrs{{"dimension_numbers", GatherDimensionNumbers{dims, {}, dims, {}, {}}},
              {"slice_sizes", sizes},
              {"unique_indices", true},
              {"indices_are_sorted", true},
              {"mode", "clip"},
              {"fill_value", Attr()}};
  Array inputs[] = {args.inputs[0], starts.indices};
  int64_t input_dims[] = {args.dims[0], starts.dim};
  return gather->batch({gather, args.axis, inputs, input_dims, attrs});
}

PrimitiveRecord dynamic_slice_record() {
  PrimitiveRecord r;
  r.name = "dynamic_slice";
  r.factors = dynamic_slice_factors;
  r.splits = resized_splits("dynamic_slice");
  r.localise = result_shape_as("slice_sizes");
  r.traits.moves = Moves::index;
  r.doc = "A window of fixed size at a computed position, moved so that it fits.";
  r.dtypes = array_dtypes();
  r.type = dynamic_slice_type;
  r.jvp = [](const JvpArgs& args) -> JvpResult {
    Array tangent;
    if (args.tangents[0].defined()) {
      Arrays inputs(args.primals.begin(), args.primals.end());
      inputs[0] = args.tangents[0];
      tangent = capibara::bind(args.primitive, inputs, args.attrs)[0];
    }
    return {capibara::bind(args.primitive, args.primals, args.attrs), {tangent}};
  };
  r.transpose = [](const TransposeArgs& args) -> Arrays {
    Arrays out(args.inputs.size());
    if (!args.cotangents[0].defined()) return out;
    static const Primitive update = primitive("dynamic_update_slice");
    Arrays inputs{lax::zeros(args.types[0].strong()), args.cotangents[0]};
    inputs.insert(inputs.end(), args.inputs.begin() + 1, args.inputs.end());
    out[0] = capibara::bind(update, inputs)[0];
    return out;
  };
  r.batch = dynamic_slice_batch;
  r.stablehlo = "stablehlo.dynamic_slice";
  r.samples = [](DType d) {
    ArrayType i = sample_type(DType::int32, {});
    auto attrs = [](Ints sizes) { return Attrs{{"slice_sizes", sizes}}; };
    return std::vector<Sample>{{{sample_type(d, {5}), i}, attrs({2}), -2, 2, true},
                               {{sample_type(d, {3, 4}), i, i}, attrs({2, 3}), -2, 2, true},
                               {{sample_type(d, {2, 3, 2}), i, i, i}, attrs({1, 3, 1}), -2, 2, true},
                               {{sample_type(d, {})}, attrs({}), -2, 2, true},
                               {{sample_type(d, {3, 2}), i, i}, attrs({0, 2}), -2, 2, true}};
  };
  return r;
}

TypeResult dynamic_update_slice_type(std::span<const ArrayType> types, const Attrs&) {
  if (types.size() < 2) throw TypeError("dynamic_update_slice: an operand and an update are needed");
  const ArrayType& x = types[0];
  const ArrayType& update = types[1];
  require_same_dtypes("dynamic_update_slice", types.subspan(0, 2));
  if (update.rank() != x.rank()) {
    throw TypeError(concat("dynamic_update_slice: update must have the rank of the operand, got update shape ",
                           tuple(update.shape), " for operand shape ", tuple(x.shape)));
  }
  require_start_indices("dynamic_update_slice", types.subspan(2), x);
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    if (update.shape[i] > x.shape[i]) {
      throw TypeError(concat("dynamic_update_slice: update shape must not exceed the operand shape, got update shape ",
                             tuple(update.shape), " for operand shape ", tuple(x.shape)));
    }
  }
  ArrayType out = x;
  out.weak_type = all_weak(types);
  return Types{out};
}

BatchResult dynamic_update_slice_batch(const BatchArgs& args) {
  static const Primitive scatter = primitive("scatter");
  Ints dims = range(args.inputs[1].ndim() - (args.mapped(1) ? 1 : 0));
  IndexVectors starts = join_start_indices(args.inputs.subspan(2), args.dims.subspan(2), args.axis.size);
  Attrs attrs{{"dimension_numbers", ScatterDimensionNumbers{dims, {}, dims, {}, {}}},
              {"indices_are_sorted", true},
              {"unique_indices", true},
              {"mode", "clip"},
              {"update_jaxpr", Attr()},
              {"update_consts", Attr::List{}}};
  Array inputs[] = {args.inputs[0], starts.indices, args.inputs[1]};
  int64_t input_dims[] = {args.dims[0], starts.dim, args.dims[1]};
  return scatter->batch({scatter, args.axis, inputs, input_dims, attrs});
}

PrimitiveRecord dynamic_update_slice_record() {
  PrimitiveRecord r;
  r.name = "dynamic_update_slice";
  r.factors = dynamic_update_slice_factors;
  r.splits = dynamic_update_slice_splits;
  r.traits.moves = Moves::pieces;
  r.doc = "The operand with a window at a computed position replaced; the window is moved so that it fits.";
  r.dtypes = array_dtypes();
  r.type = dynamic_update_slice_type;
  r.jvp = [](const JvpArgs& args) -> JvpResult {
    Arrays out = capibara::bind(args.primitive, args.primals, args.attrs);
    Array tangent;
    if (args.tangents[0].defined() || args.tangents[1].defined()) {
      Arrays inputs(args.primals.begin(), args.primals.end());
      for (std::size_t i : {0, 1}) inputs[i] = instantiate(args.tangents[i], args.primals[i].type());
      tangent = capibara::bind(args.primitive, inputs, args.attrs)[0];
    }
    return {std::move(out), {tangent}};
  };
  r.transpose = [](const TransposeArgs& args) -> Arrays {
    static const Primitive slice = primitive("dynamic_slice");
    const Array& ct = args.cotangents[0];
    Arrays out(args.inputs.size());
    if (!ct.defined()) return out;
    const Shape& window = args.types[1].shape;
    std::span<const Array> starts = args.inputs.subspan(2);
    Array zeros = lax::zeros(cotangent_type(args.types[1]).strong());
    if (args.linear(0)) {
      Arrays inputs{ct, zeros};
      inputs.insert(inputs.end(), starts.begin(), starts.end());
      out[0] = capibara::bind(args.primitive, inputs)[0];
    }
    if (args.linear(1)) {
      Arrays inputs{ct};
      inputs.insert(inputs.end(), starts.begin(), starts.end());
      out[1] = capibara::bind(slice, inputs, {{"slice_sizes", window}})[0];
    }
    return out;
  };
  r.batch = dynamic_update_slice_batch;
  r.stablehlo = "stablehlo.dynamic_update_slice";
  r.samples = [](DType d) {
    ArrayType i = sample_type(DType::int32, {});
    return std::vector<Sample>{{{sample_type(d, {5}), sample_type(d, {2}), i}, {}, -2, 2, true},
                               {{sample_type(d, {3, 4}), sample_type(d, {2, 1}), i, i}, {}, -2, 2, true},
                               {{sample_type(d, {2, 3, 2}), sample_type(d, {2, 3, 2}), i, i, i}, {}, -2, 2, true},
                               {{sample_type(d, {}), sample_type(d, {})}, {}, -2, 2, true},
                               {{sample_type(d, {3}), sample_type(d, {0}), i}, {}, -2, 2, true}};
  };
  return r;
}

}  // namespace

Family dynamic_slice_records() {
  Family family;
  family.push_back(dynamic_slice_record());
  family.push_back(dynamic_update_slice_record());
  return family;
}

}  // namespace capibara

namespace capibara::jax::lax {

namespace {

int64_t position_of(const Array& number) { return number.item<int64_t>(); }

// Start indices with negative ones counted from the end. A plain number is adjusted here, others by operations.
Arrays normalized_starts(const char* op, const Array& x, const Arrays& starts,
                         const std::vector<bool>& allow_negative) {
  if (static_cast<int64_t>(starts.size()) != x.ndim()) {
    throw ValueError(concat(op, ": start_indices must have one entry per operand dimension, got ", starts.size(),
                            " for ", to_string(x.type())));
  }
  // Plain numbers take the dtype of the computed indices next to them.
  DType dtype = DType::int32;
  for (const Array& start : starts) {
    if (is_plain_number(start) && is_integer(start.dtype())) dtype = start.dtype();
  }
  for (const Array& start : starts) {
    if (!is_plain_number(start) && is_integer(start.dtype())) dtype = start.dtype();
  }
  Arrays out;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const Array& start = starts[i];
    int64_t size = x.shape()[i];
    if (is_plain_number(start) && is_integer(start.dtype())) {
      int64_t position = position_of(start);
      if (position < 0 && !allow_negative[i]) {
        throw ValueError(concat(op, ": index ", position, " is out of bounds for dimension ", i, " of size ", size,
                                " if allow_negative_indices=False"));
      }
      out.push_back(exact_scalar(dtype, position < 0 ? position + size : position));
    } else if (allow_negative[i] && !start.is_tracer() && is_integer(start.dtype())) {
      int64_t position = position_of(start);
      out.push_back(exact_scalar(start.dtype(), position < 0 ? position + size : position));
    } else if (!allow_negative[i] || is_unsigned(start.dtype()) || !is_integer(start.dtype())) {
      out.push_back(start);
    } else {
      Array is_negative = lt(start, exact_scalar(start.dtype(), 0));
      Array from_end = add(start, exact_scalar(start.dtype(), size));
      out.push_back(select(is_negative, from_end, start));
    }
  }
  return out;
}

std::vector<bool> for_all(const Array& x, bool value) {
  return std::vector<bool>(static_cast<std::size_t>(x.ndim()), value);
}

Array bind_dynamic_slice(const Array& x, const Arrays& starts, const Ints& sizes) {
  static const Primitive p = primitive("dynamic_slice");
  Arrays inputs{x};
  inputs.insert(inputs.end(), starts.begin(), starts.end());
  return capibara::bind(p, inputs, {{"slice_sizes", sizes}})[0];
}

Array bind_dynamic_update_slice(const Array& x, const Array& update, const Arrays& starts) {
  static const Primitive p = primitive("dynamic_update_slice");
  Array value = is_plain_number(update) ? array_as(update, x.dtype(), x.weak_type()) : update;
  Arrays inputs{x, value};
  inputs.insert(inputs.end(), starts.begin(), starts.end());
  return capibara::bind(p, inputs)[0];
}

// Zeros everywhere but at `axis`, of the dtype of the one computed index.
Arrays starts_at(const Array& x, const Array& start, int64_t axis) {
  Array zero = is_plain_number(start) ? Array(0) : exact_scalar(start.dtype(), 0);
  Arrays starts(static_cast<std::size_t>(x.ndim()), zero);
  starts[static_cast<std::size_t>(axis)] = start;
  return starts;
}

std::vector<bool> only_axis(const Array& x, int64_t axis, bool allow) {
  std::vector<bool> allowed = for_all(x, false);
  allowed[static_cast<std::size_t>(axis)] = allow;
  return allowed;
}

// A call of a nested program, where JAX's own function is jitted.
Array call_nested(const char* name, const FlatFunction& function, const Arrays& inputs) {
  Types types;
  for (const Array& input : inputs) types.push_back(input.type());
  Staged staged = stage(function, types, name);
  Arrays arguments = staged.captured;
  arguments.insert(arguments.end(), inputs.begin(), inputs.end());
  return call_program(staged.program, arguments, name)[0];
}

}  // namespace

Array dynamic_slice(const Array& x, const Arrays& start_indices, const Ints& slice_sizes, bool allow_negative_indices) {
  return dynamic_slice(x, start_indices, slice_sizes, for_all(x, allow_negative_indices));
}

Array dynamic_slice(const Array& x, const Arrays& start_indices, const Ints& slice_sizes,
                    const std::vector<bool>& allow_negative_indices) {
  return bind_dynamic_slice(x, normalized_starts("dynamic_slice", x, start_indices, allow_negative_indices),
                            slice_sizes);
}

Array dynamic_slice_in_dim(const Array& x, const Array& start, int64_t slice_size, int64_t axis,
                           bool allow_negative_indices) {
  if (start.ndim() != 0) {
    throw TypeError(concat("dynamic_slice_in_dim: start_index must be a scalar, got ", to_string(start.type())));
  }
  axis = checked_axis("dynamic_slice_in_dim", axis, x.type());
  Ints sizes = x.shape();
  sizes[static_cast<std::size_t>(axis)] = slice_size;
  Arrays starts = normalized_starts("dynamic_slice_in_dim", x, starts_at(x, start, axis),
                                    only_axis(x, axis, allow_negative_indices));
  return bind_dynamic_slice(x, starts, sizes);
}

Array dynamic_index_in_dim(const Array& x, const Array& index, int64_t axis, bool keepdims,
                           bool allow_negative_indices) {
  axis = checked_axis("dynamic_index_in_dim", axis, x.type());
  return call_nested("dynamic_index_in_dim",
                     [&](std::span<const Array> in) -> Arrays {
                       Array window = dynamic_slice_in_dim(in[0], in[1], 1, axis, allow_negative_indices);
                       return {keepdims ? window : squeeze(window, {axis})};
                     },
                     {x, index});
}

Array dynamic_update_slice(const Array& x, const Array& update, const Arrays& start_indices,
                           bool allow_negative_indices) {
  return dynamic_update_slice(x, update, start_indices, for_all(x, allow_negative_indices));
}

Array dynamic_update_slice(const Array& x, const Array& update, const Arrays& start_indices,
                           const std::vector<bool>& allow_negative_indices) {
  return bind_dynamic_update_slice(x, update,
                                   normalized_starts("dynamic_update_slice", x, start_indices, allow_negative_indices));
}

Array dynamic_update_slice_in_dim(const Array& x, const Array& update, const Array& start, int64_t axis,
                                  bool allow_negative_indices) {
  axis = checked_axis("dynamic_update_slice_in_dim", axis, x.type());
  return bind_dynamic_update_slice(x, update,
                                   normalized_starts("dynamic_update_slice_in_dim", x, starts_at(x, start, axis),
                                                     only_axis(x, axis, allow_negative_indices)));
}

Array dynamic_update_index_in_dim(const Array& x, const Array& update, const Array& index, int64_t axis,
                                  bool allow_negative_indices) {
  axis = checked_axis("dynamic_update_index_in_dim", axis, x.type());
  if (update.ndim() != x.ndim() && update.ndim() + 1 != x.ndim()) {
    throw TypeError(concat("dynamic_update_index_in_dim: update must have the operand's rank or one less, got ",
                           to_string(update.type()), " for ", to_string(x.type())));
  }
  return call_nested("dynamic_update_index_in_dim",
                     [&](std::span<const Array> in) -> Arrays {
                       Array window = in[1].ndim() == in[0].ndim() ? in[1] : expand_dims(in[1], {axis});
                       return {dynamic_update_slice_in_dim(in[0], window, in[2], axis, allow_negative_indices)};
                     },
                     {x, update, index});
}

}  // namespace capibara::jax::lax
