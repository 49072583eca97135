// Primitives that pad, join and split arrays: pad, concatenate, split, stack, unstack.
#include "lax/operators/plain_number.h"
#include "lax/shape/shape.h"
#include "lax/sharding/splits.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

// ---- pad ---------------------------------------------------------------------------------------------------------

std::vector<lax::PadDim> pad_config(const Attrs& attrs) {
  std::vector<lax::PadDim> config;
  for (const Attr& entry : attrs.list("padding_config")) {
    const Ints* dim = entry.get_if<Ints>();
    if (!dim || dim->size() != 3) throw TypeError("pad: padding_config must hold (low, high, interior) triples");
    config.push_back({(*dim)[0], (*dim)[1], (*dim)[2]});
  }
  return config;
}

std::string config_text(const std::vector<lax::PadDim>& config) {
  std::string out;
  for (const lax::PadDim& dim : config) out += (out.empty() ? "" : ", ") + tuple({dim.low, dim.high, dim.interior});
  return "(" + out + ")";
}

TypeResult pad_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("pad", types, 2);
  std::vector<lax::PadDim> config = pad_config(attrs);
  const ArrayType& x = types[0];
  if (x.dtype != types[1].dtype) {
    throw TypeError(concat("pad: operand and padding_value must have the same dtype, got ", to_string(x.dtype), " and ",
                           to_string(types[1].dtype)));
  }
  if (types[1].rank() != 0) {
    throw ValueError(concat("pad: padding_value must be a scalar, got shape ", tuple(types[1].shape)));
  }
  if (static_cast<int64_t>(config.size()) != x.rank()) {
    throw ValueError(concat("pad: padding_config must have one entry per operand dimension, got ", config_text(config),
                            " for shape ", tuple(x.shape)));
  }
  Shape shape;
  for (std::size_t i = 0; i < config.size(); ++i) {
    const auto& [low, high, interior] = config[i];
    if (interior < 0)
      throw ValueError(
          concat("pad: interior padding in padding_config must be nonnegative, got ", config_text(config)));
    int64_t dilated = x.shape[i] == 0 ? 0 : 1 + (x.shape[i] - 1) * (interior + 1);
    shape.push_back(low + high + dilated);
    if (shape.back() < 0) {
      throw ValueError(concat("pad: Dimension size after padding is not at least 0: got size ", shape.back(),
                              " of dimension ", i, " for padding_config ", config_text(config), " for shape ",
                              tuple(x.shape)));
    }
  }
  ArrayType out = x.with_shape(shape);
  out.weak_type = all_weak(types);
  return Types{out};
}

Arrays pad_transpose(const TransposeArgs& args) {
  const Array& ct = args.cotangents[0];
  if (!ct.defined()) return {Array(), Array()};
  std::vector<lax::PadDim> config = pad_config(args.attrs);
  // The operand's cotangent is needed for the padding value's too: the rest of the cotangent is padding.
  std::vector<lax::PadDim> remove;
  Ints strides;
  for (const lax::PadDim& dim : config) {
    remove.push_back({-dim.low, -dim.high, 0});
    strides.push_back(dim.interior + 1);
  }
  Array unpadded = lax::pad(ct, scalar_of(ct.dtype(), 0), remove);
  Array operand_ct = lax::slice(unpadded, Ints(config.size(), 0), unpadded.shape(), strides);
  Arrays out{Array(), Array()};
  if (args.linear(0)) out[0] = operand_ct;
  if (args.linear(1)) {
    auto total = [&](const Array& x) { return lax::reduce_sum(x, {.axes = range(x.ndim())}); };
    Array everything = total(ct);
    out[1] = lax::sub(everything, total(operand_ct));
  }
  return out;
}

BatchResult pad_batch(const BatchArgs& args) {
  Array x = args.inputs[0];
  int64_t dim = args.dims[0];
  if (dim == not_mapped) {
    dim = 0;
    x = lax::broadcast(x, {args.axis.size});
  }
  std::vector<lax::PadDim> config = pad_config(args.attrs);
  config.insert(config.begin() + dim, lax::PadDim{});
  if (!args.mapped(1)) return {{lax::pad(x, args.inputs[1], config)}, {dim}};
  // One padding value per row: pad with zero, and select by a mask that is padded identically.
  Array padded = lax::pad(x, scalar_of(x.dtype(), 0), config);
  Array mask = lax::pad(lax::full(x.shape(), Array(true)), Array(false), config);
  Array values = lax::broadcast_in_dim(args.inputs[1], padded.shape(), {dim});
  return {{lax::select(mask, padded, values)}, {dim}};
}

PrimitiveRecord pad_record() {
  PrimitiveRecord r{.name = "pad", .factors = pad_factors, .splits = resized_splits("padding")};
  r.traits.moves = Moves::pieces;
  r.traits.nan_checked = true;
  r.doc = "Adds a value around and between elements; negative edges cut elements away.";
  r.dtypes = array_dtypes();
  r.type = pad_type;
  r.jvp = linear_jvp();
  r.transpose = pad_transpose;
  r.batch = pad_batch;
  r.stablehlo = "stablehlo.pad";
  r.samples = [](DType d) {
    auto attrs = [](std::vector<Ints> config) {
      return Attrs{{"padding_config", Attr::List(config.begin(), config.end())}};
    };
    ArrayType value = sample_type(d, {});
    return std::vector<Sample>{{{sample_type(d, {3}), value}, attrs({{1, 2, 0}})},
                               {{sample_type(d, {3}), value}, attrs({{0, 0, 2}})},
                               {{sample_type(d, {2, 3}), value}, attrs({{-1, 1, 0}, {1, -2, 1}})},
                               {{sample_type(d, {4, 2}), value}, attrs({{-1, -2, 0}, {0, 0, 0}})},
                               {{sample_type(d, {}), value}, attrs({})},
                               {{sample_type(d, {0, 2}), value}, attrs({{1, 1, 3}, {0, 1, 0}})}};
  };
  return r;
}

// ---- concatenate -------------------------------------------------------------------------------------------------

TypeResult concatenate_type(std::span<const ArrayType> types, const Attrs& attrs) {
  if (types.empty()) throw TypeError("concatenate: at least one operand is needed, got none");
  require_same_dtypes("concatenate", types);
  int64_t dimension = attrs.integer("dimension");
  const ArrayType& first = types[0];
  if (dimension < 0 || dimension >= first.rank()) {
    throw TypeError(concat("concatenate: dimension ", dimension, " is out of range for shapes ", shapes_text(types)));
  }
  Shape shape = first.shape;
  auto d = static_cast<std::size_t>(dimension);
  shape[d] = 0;
  for (const ArrayType& type : types) {
    if (type.rank() != first.rank()) {
      throw TypeError(concat("concatenate: operands must have the same rank, got shapes ", shapes_text(types)));
    }
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (i != d && type.shape[i] != shape[i]) {
        throw TypeError(concat("concatenate: operands may differ only in dimension ", dimension, ", got shapes ",
                               shapes_text(types)));
      }
    }
    shape[d] += type.shape[d];
  }
  ArrayType out = first.with_shape(shape);
  out.weak_type = all_weak(types);
  return Types{out};
}

Arrays concatenate_transpose(const TransposeArgs& args) {
  Arrays out(args.inputs.size());
  const Array& ct = args.cotangents[0];
  if (!ct.defined()) return out;
  int64_t dimension = args.attrs.integer("dimension");
  Ints sizes;
  for (const ArrayType& type : args.types) sizes.push_back(at(type.shape, dimension));
  Arrays parts = lax::split(ct, sizes, dimension);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (args.linear(i)) out[i] = parts[i];
  }
  return out;
}

Arrays all_at_front(const BatchArgs& args) {
  Arrays operands;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    operands.push_back(batch_at(args.inputs[i], args.dims[i], args.axis, 0));
  }
  return operands;
}

PrimitiveRecord concatenate_record() {
  PrimitiveRecord r{.name = "concatenate", .factors = factors_but("dimension"), .splits = concatenate_splits};
  r.traits.moves = Moves::pieces;
  r.doc = "Joins arrays along an existing dimension.";
  r.dtypes = array_dtypes();
  r.type = concatenate_type;
  r.jvp = linear_jvp();
  r.transpose = concatenate_transpose;
  r.batch = [](const BatchArgs& args) -> BatchResult {
    return {{lax::concatenate(all_at_front(args), args.attrs.integer("dimension") + 1)}, {0}};
  };
  r.stablehlo = "stablehlo.concatenate";
  r.samples = [](DType d) {
    return std::vector<Sample>{
        {{sample_type(d, {2}), sample_type(d, {3})}, {{"dimension", 0}}},
        {{sample_type(d, {2, 3}), sample_type(d, {2, 1}), sample_type(d, {2, 0})}, {{"dimension", 1}}},
        {{sample_type(d, {1, 2, 2}), sample_type(d, {3, 2, 2})}, {{"dimension", 0}}},
        {{sample_type(d, {4})}, {{"dimension", 0}}},
        {{sample_type(d, {0, 2}), sample_type(d, {0, 3})}, {{"dimension", 1}}}};
  };
  return r;
}

// ---- split -------------------------------------------------------------------------------------------------------

TypeResult split_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("split", types, 1);
  const Ints& sizes = attrs.ints("sizes");
  int64_t axis = attrs.integer("axis");
  if (axis < 0 || axis >= types[0].rank()) {
    throw ValueError(concat("split: axis ", axis, " is out of bounds for shape ", tuple(types[0].shape)));
  }
  for (int64_t size : sizes) {
    if (size < 0) throw ValueError(concat("Sizes passed to split must be nonnegative, got ", tuple(sizes)));
  }
  int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (total != at(types[0].shape, axis)) {
    throw ValueError(concat("split: Sum of sizes ", total, " must be equal to dimension ", axis,
                            " of the operand shape ", tuple(types[0].shape)));
  }
  Types out;
  for (int64_t size : sizes) {
    Shape shape = types[0].shape;
    shape[static_cast<std::size_t>(axis)] = size;
    out.push_back(types[0].with_shape(shape));
  }
  return out;
}

Arrays split_lower(std::span<const Array> in, const Attrs& attrs) {
  auto axis = static_cast<std::size_t>(attrs.integer("axis"));
  Ints start(in[0].shape().size(), 0), limit = in[0].shape();
  Arrays out;
  for (int64_t size : attrs.ints("sizes")) {
    limit[axis] = start[axis] + size;
    out.push_back(lax::slice(in[0], start, limit));
    start[axis] = limit[axis];
  }
  return out;
}

PrimitiveRecord split_record() {
  PrimitiveRecord r{.name = "split", .factors = factors_but("axis"), .splits = resized_splits("split")};
  r.traits.moves = Moves::several;
  r.traits.multiple_results = true;
  r.doc = "Divides an array along a dimension into parts of given sizes.";
  r.dtypes = array_dtypes();
  r.type = split_type;
  r.jvp = linear_jvp();
  r.transpose = [](const TransposeArgs& args) -> Arrays {
    int64_t axis = args.attrs.integer("axis");
    const Ints& sizes = args.attrs.ints("sizes");
    if (std::none_of(args.cotangents.begin(), args.cotangents.end(), [](const Array& ct) { return ct.defined(); }))
      return {Array()};
    Arrays parts;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      Shape shape = args.types[0].shape;
      shape[static_cast<std::size_t>(axis)] = sizes[i];
      parts.push_back(args.cotangents[i].defined() ? args.cotangents[i]
                                                   : lax::zeros(cotangent_type(args.types[0].with_shape(shape))));
    }
    return {lax::concatenate(parts, axis)};
  };
  r.batch = [](const BatchArgs& args) -> BatchResult {
    int64_t dim = args.dims[0];
    const Ints& sizes = args.attrs.ints("sizes");
    return {lax::split(args.inputs[0], sizes, shifted(args.attrs.integer("axis"), dim)),
            std::vector<int64_t>(sizes.size(), dim)};
  };
  r.lower = split_lower;
  r.samples = [](DType d) {
    return std::vector<Sample>{{{sample_type(d, {5})}, {{"axis", 0}, {"sizes", Ints{2, 3}}}},
                               {{sample_type(d, {2, 4})}, {{"axis", 1}, {"sizes", Ints{1, 0, 3}}}},
                               {{sample_type(d, {3, 2, 2})}, {{"axis", 0}, {"sizes", Ints{3}}}},
                               {{sample_type(d, {0, 2})}, {{"axis", 1}, {"sizes", Ints{1, 1}}}}};
  };
  return r;
}

// ---- stack and unstack -------------------------------------------------------------------------------------------

TypeResult stack_type(std::span<const ArrayType> types, const Attrs& attrs) {
  if (types.empty()) throw ValueError("stack: at least one operand is needed, got none");
  require_same_dtypes("stack", types);
  for (const ArrayType& type : types) {
    if (type.shape != types[0].shape) {
      throw ValueError(concat("stack: all operands must have the same shape, got ", shapes_text(types)));
    }
  }
  int64_t axis = attrs.integer("axis");
  if (axis < 0 || axis > types[0].rank()) {
    throw ValueError(concat("stack: axis ", axis, " is out of range for operands of shape ", tuple(types[0].shape)));
  }
  ArrayType out = types[0].with_shape(inserted(types[0].shape, axis, static_cast<int64_t>(types.size())));
  out.weak_type = all_weak(types);
  return Types{out};
}

BatchResult stack_batch(const BatchArgs& args) {
  int64_t axis = args.attrs.integer("axis");
  int64_t dim = args.dims[0];
  bool aligned = std::all_of(args.dims.begin(), args.dims.end(), [&](int64_t d) { return d == dim; });
  if (!aligned) return {{lax::stack(all_at_front(args), axis + 1)}, {0}};
  Arrays operands(args.inputs.begin(), args.inputs.end());
  if (axis <= dim) return {{lax::stack(operands, axis)}, {dim + 1}};
  return {{lax::stack(operands, axis + 1)}, {dim}};
}

PrimitiveRecord stack_record() {
  PrimitiveRecord r;
  r.name = "stack";
  r.splits = stack_splits;
  r.traits.moves = Moves::several;
  r.doc = "Joins arrays of one shape along a new dimension.";
  r.dtypes = array_dtypes();
  r.type = stack_type;
  r.jvp = linear_jvp();
  r.transpose = [](const TransposeArgs& args) -> Arrays {
    Arrays out(args.inputs.size());
    if (!args.cotangents[0].defined()) return out;
    Arrays parts = lax::unstack(args.cotangents[0], args.attrs.integer("axis"));
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (args.linear(i)) out[i] = parts[i];
    }
    return out;
  };
  r.batch = stack_batch;
  r.lower = [](std::span<const Array> in, const Attrs& attrs) -> Arrays {
    int64_t axis = attrs.integer("axis");
    Arrays expanded;
    for (const Array& x : in) expanded.push_back(lax::expand_dims(x, {axis}));
    return {lax::concatenate(expanded, axis)};
  };
  r.samples = [](DType d) {
    return std::vector<Sample>{{{sample_type(d, {}), sample_type(d, {})}, {{"axis", 0}}},
                               {{sample_type(d, {3}), sample_type(d, {3})}, {{"axis", 1}}},
                               {{sample_type(d, {2, 3}), sample_type(d, {2, 3})}, {{"axis", 1}}},
                               {{sample_type(d, {0, 2})}, {{"axis", 0}}}};
  };
  return r;
}

TypeResult unstack_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("unstack", types, 1);
  int64_t axis = attrs.integer("axis");
  if (types[0].rank() == 0) throw ValueError("unstack: an array with rank > 0 is needed, got a scalar");
  if (axis < 0 || axis >= types[0].rank()) {
    throw ValueError(concat("unstack: axis ", axis, " is out of range for shape ", tuple(types[0].shape)));
  }
  Shape shape = types[0].shape;
  shape.erase(shape.begin() + axis);
  return Types(static_cast<std::size_t>(at(types[0].shape, axis)), types[0].with_shape(shape));
}

PrimitiveRecord unstack_record() {
  PrimitiveRecord r;
  r.name = "unstack";
  r.splits = unstack_splits;
  r.traits.moves = Moves::several;
  r.traits.multiple_results = true;
  r.doc = "Divides an array along a dimension into one array per index, without that dimension.";
  r.dtypes = array_dtypes();
  r.type = unstack_type;
  r.jvp = linear_jvp();
  r.transpose = [](const TransposeArgs& args) -> Arrays {
    if (std::none_of(args.cotangents.begin(), args.cotangents.end(), [](const Array& ct) { return ct.defined(); })) {
      return {Array()};
    }
    ArrayType part = unstack_type(args.types, args.attrs).types[0];
    Arrays parts;
    for (const Array& ct : args.cotangents) parts.push_back(instantiate(ct, part));
    return {lax::stack(parts, args.attrs.integer("axis"))};
  };
  r.batch = [](const BatchArgs& args) -> BatchResult {
    int64_t axis = args.attrs.integer("axis"), dim = args.dims[0];
    bool before = axis < dim;
    Arrays parts = lax::unstack(args.inputs[0], before ? axis : axis + 1);
    std::vector<int64_t> dims(parts.size(), before ? dim - 1 : dim);
    return {std::move(parts), std::move(dims)};
  };
  r.lower = [](std::span<const Array> in, const Attrs& attrs) -> Arrays {
    int64_t axis = attrs.integer("axis");
    Arrays out = split_lower(in, {{"axis", axis}, {"sizes", Ints(static_cast<std::size_t>(in[0].shape(axis)), 1)}});
    Shape shape = in[0].shape();
    shape.erase(shape.begin() + axis);
    for (Array& part : out) part = lax::reshape(part, shape);
    return out;
  };
  r.samples = [](DType d) {
    return std::vector<Sample>{{{sample_type(d, {2})}, {{"axis", 0}}},
                               {{sample_type(d, {2, 3})}, {{"axis", 1}}},
                               {{sample_type(d, {2, 3, 2})}, {{"axis", 0}}},
                               {{sample_type(d, {2, 0})}, {{"axis", 0}}}};
  };
  return r;
}

}  // namespace

Family join_records() {
  Family family;
  family.push_back(pad_record());
  family.push_back(concatenate_record());
  family.push_back(split_record());
  family.push_back(stack_record());
  family.push_back(unstack_record());
  return family;
}

}  // namespace capibara

namespace capibara::jax::lax {

Array pad(const Array& x, const Array& padding_value, const std::vector<PadDim>& config) {
  static const Primitive p = primitive("pad");
  Attr::List list;
  for (const PadDim& dim : config) list.push_back(Ints{dim.low, dim.high, dim.interior});
  Array value = padding_value;
  if (is_plain_number(value) && value.dtype() != x.dtype()) value = number_as(value, x.dtype(), false);
  return bind1(p, {x, value}, {{"padding_config", std::move(list)}});
}

Array concatenate(const Arrays& operands, int64_t dimension) {
  static const Primitive p = primitive("concatenate");
  if (operands.empty()) throw ValueError("concatenate: a non-empty list of arrays is needed");
  if (operands.size() == 1) return operands[0];
  return capibara::bind(p, operands, {{"dimension", dimension}})[0];
}

Arrays split(const Array& x, const Ints& sizes, int64_t axis) {
  static const Primitive p = primitive("split");
  return capibara::bind(p, std::span(&x, 1), {{"sizes", sizes}, {"axis", checked_axis("split", axis, x.type())}});
}

Array stack(const Arrays& operands, int64_t axis) {
  static const Primitive p = primitive("stack");
  if (operands.empty()) throw ValueError("stack: a non-empty list of arrays is needed");
  ArrayType stacked = operands[0].type().with_shape(prepended(1, operands[0].shape()));
  return capibara::bind(p, operands, {{"axis", checked_axis("stack", axis, stacked)}})[0];
}

Arrays unstack(const Array& x, int64_t axis) {
  static const Primitive p = primitive("unstack");
  if (x.ndim() == 0) throw ValueError("unstack: an array with rank > 0 is needed, got a scalar");
  return capibara::bind(p, std::span(&x, 1), {{"axis", checked_axis("unstack", axis, x.type())}});
}

}  // namespace capibara::jax::lax
