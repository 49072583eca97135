// Primitives that cut out or replace one window: slice, dynamic_slice, dynamic_update_slice.
#include "lax/shape.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

// ---- slice -------------------------------------------------------------------------------------------------------

const Ints* strides_of(const Attrs& attrs) { return attrs["strides"].get_if<Ints>(); }

TypeResult slice_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("slice", types, 1);
  const ArrayType& x = types[0];
  const Ints& start = attrs.ints("start_indices");
  const Ints& limit = attrs.ints("limit_indices");
  const Ints* strides = strides_of(attrs);
  if (start.size() != x.shape.size() || limit.size() != x.shape.size() ||
      (strides && strides->size() != x.shape.size())) {
    throw TypeError(concat(
        "slice: start_indices, limit_indices and strides must have one entry per operand dimension, got ", tuple(start),
        ", ", tuple(limit), ", ", strides ? tuple(*strides) : "None", " for shape ", tuple(x.shape)));
  }
  Shape shape;
  for (std::size_t i = 0; i < start.size(); ++i) {
    if (start[i] < 0) throw TypeError(concat("slice: start_indices must not be negative, got ", tuple(start)));
    if (limit[i] > x.shape[i]) {
      throw TypeError(concat("slice: limit_indices must be less than or equal to the operand shape, got ", tuple(limit),
                             " for shape ", tuple(x.shape)));
    }
    if (limit[i] < start[i]) {
      throw TypeError(concat("slice: limit_indices must be greater than or equal to start_indices, got start_indices ",
                             tuple(start), " and limit_indices ", tuple(limit)));
    }
    int64_t stride = strides ? (*strides)[i] : 1;
    if (stride <= 0) throw TypeError(concat("slice: strides must be positive, got ", tuple(*strides)));
    shape.push_back((limit[i] - start[i] + stride - 1) / stride);
  }
  return Types{x.with_shape(shape)};
}

Arrays slice_transpose(const TransposeArgs& args) {
  const Array& ct = args.cotangents[0];
  if (!ct.defined()) return {Array()};
  const Ints& start = args.attrs.ints("start_indices");
  const Ints& limit = args.attrs.ints("limit_indices");
  const Ints* strides = strides_of(args.attrs);
  bool strided = strides && std::any_of(strides->begin(), strides->end(), [](int64_t s) { return s != 1; });
  std::vector<lax::PadDim> config;
  for (std::size_t i = 0; i < start.size(); ++i) {
    int64_t stride = strided ? (*strides)[i] : 1;
    int64_t count = ct.shape()[i];
    int64_t end = strided ? start[i] + (count == 0 ? 0 : 1 + (count - 1) * stride) : limit[i];
    config.push_back({start[i], args.types[0].shape[i] - end, stride - 1});
  }
  return {lax::pad(ct, scalar_of(ct.dtype(), 0), config)};
}

PrimitiveRecord slice_record() {
  PrimitiveRecord r;
  r.name = "slice";
  r.traits.moves = Moves::index;
  r.traits.free_to_recompute = true;
  r.doc = "The elements from start to limit (exclusive) by stride in each dimension.";
  r.dtypes = array_dtypes();
  r.type = slice_type;
  r.jvp = linear_jvp();
  r.transpose = slice_transpose;
  r.batch = [](const BatchArgs& args) -> BatchResult {
    int64_t dim = args.dims[0];
    const Ints* strides = strides_of(args.attrs);
    return {{lax::slice(args.inputs[0], inserted(args.attrs.ints("start_indices"), dim, 0),
                        inserted(args.attrs.ints("limit_indices"), dim, args.axis.size),
                        strides ? inserted(*strides, dim, 1) : Ints{})},
            {dim}};
  };
  r.stablehlo = "stablehlo.slice";
  // In the subset a slice without steps has no strides.
  r.lower = [](std::span<const Array> in, const Attrs& attrs) -> Arrays {
    const Ints* strides = strides_of(attrs);
    if (!strides || std::any_of(strides->begin(), strides->end(), [](int64_t s) { return s != 1; })) return {};
    static const Primitive self = primitive("slice");
    return {bind1(self, {in[0]}, attrs.with("strides", Attr()))};
  };
  r.samples = [](DType d) {
    auto attrs = [](Ints start, Ints limit, Attr strides = Attr()) {
      return Attrs{{"start_indices", start}, {"limit_indices", limit}, {"strides", strides}};
    };
    return std::vector<Sample>{{{sample_type(d, {5})}, attrs({1}, {4})},
                               {{sample_type(d, {7})}, attrs({1}, {7}, Ints{3})},
                               {{sample_type(d, {3, 4})}, attrs({0, 1}, {2, 4}, Ints{1, 2})},
                               {{sample_type(d, {2, 3, 4})}, attrs({1, 0, 2}, {2, 3, 3})},
                               {{sample_type(d, {})}, attrs({}, {})},
                               {{sample_type(d, {3, 2})}, attrs({2, 0}, {2, 2})}};
  };
  return r;
}

// ---- dynamic slices ----------------------------------------------------------------------------------------------

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
    Array zeros = lax::zeros(sample_type(ct.dtype(), window));
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

Family slice_records() {
  Family family;
  family.push_back(slice_record());
  family.push_back(dynamic_slice_record());
  family.push_back(dynamic_update_slice_record());
  return family;
}

}  // namespace capibara
