// Primitives that rearrange the elements of one array: broadcast_in_dim, reshape, squeeze, transpose, rev, tile.
#include "lax/shape.h"

namespace capibara {

namespace lax = jax::lax;

std::string shapes_text(std::span<const ArrayType> types) {
  std::string out;
  for (const ArrayType& type : types) out += (out.empty() ? "" : ", ") + tuple(type.shape);
  return out;
}

void require_sizes(const std::string& op, const char* argument, const Ints& sizes) {
  for (int64_t size : sizes) {
    if (size < 0) throw TypeError(concat(op, ": ", argument, " must not be negative, got ", tuple(sizes)));
  }
}

const std::vector<DType>& number_dtypes() {
  static const std::vector<DType> list{DType::int8,     DType::int16,   DType::int32,   DType::int64,
                                       DType::uint8,    DType::uint16,  DType::uint32,  DType::uint64,
                                       DType::bfloat16, DType::float16, DType::float32, DType::float64};
  return list;
}

const std::vector<DType>& array_dtypes() {
  static const std::vector<DType> list = [] {
    std::vector<DType> all{DType::bool_, DType::int4, DType::uint4, DType::float8_e4m3fn, DType::float8_e5m2};
    for (DType number : number_dtypes()) all.push_back(number);
    all.push_back(DType::complex64);
    all.push_back(DType::complex128);
    return all;
  }();
  return list;
}

namespace {

// ---- broadcast_in_dim --------------------------------------------------------------------------------------------

TypeResult broadcast_in_dim_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("broadcast_in_dim", types, 1);
  const Ints& shape = attrs.ints("shape");
  const Ints& dims = attrs.ints("broadcast_dimensions");
  const ArrayType& x = types[0];
  require_sizes("broadcast_in_dim", "shape", shape);
  int64_t rank = static_cast<int64_t>(shape.size());
  if (x.rank() > rank) {
    throw TypeError(concat("broadcast_in_dim target broadcast shape must have equal or higher rank to the operand shape; ",
                           "got operand shape ", tuple(x.shape), " and target shape ", tuple(shape)));
  }
  if (static_cast<int64_t>(dims.size()) != x.rank()) {
    throw TypeError(concat("broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; got ",
                           tuple(dims), " for an operand of shape ", tuple(x.shape)));
  }
  if (has_duplicates(dims)) {
    throw TypeError(concat("broadcast_in_dim broadcast_dimensions must not contain duplicates; got ", tuple(dims)));
  }
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= rank) {
      throw TypeError(concat("broadcast_in_dim broadcast_dimensions must be a subset of output dimensions; got ",
                             tuple(dims), " for output shape ", tuple(shape)));
    }
    if (x.shape[i] != 1 && x.shape[i] != at(shape, dims[i])) {
      throw TypeError(
          concat("broadcast_in_dim operand dimension sizes must either be 1, or be equal to their corresponding ",
                 "dimensions in the target broadcast shape; got operand shape ",
                 tuple(x.shape), ", output shape ", tuple(shape), ", broadcast_dimensions ", tuple(dims)));
    }
  }
  return Types{x.with_shape(shape)};
}

Arrays broadcast_in_dim_transpose(const TransposeArgs& args) {
  const Array& ct = args.cotangents[0];
  if (!ct.defined() || !args.linear(0)) return {Array()};
  const Ints& dims = args.attrs.ints("broadcast_dimensions");
  Ints unit_dims, kept;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (args.types[0].shape[i] == 1)
      unit_dims.push_back(static_cast<int64_t>(i));
    else
      kept.push_back(dims[i]);
  }
  Ints summed = other_dims(ct.ndim(), kept);
  Array out = summed.empty() ? ct : lax::reduce_sum(ct, {.axes = summed});
  // The kept dimensions come out ascending; broadcast_dimensions may name them in another order.
  Ints sorted = kept;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != kept) {
    Ints permutation;
    for (int64_t dim : kept) permutation.push_back(std::find(sorted.begin(), sorted.end(), dim) - sorted.begin());
    out = lax::transpose(out, permutation);
  }
  return {lax::expand_dims(out, unit_dims)};
}

BatchResult broadcast_in_dim_batch(const BatchArgs& args) {
  Array x = move_axis(args.inputs[0], args.dims[0], 0);
  Shape shape = prepended(x.shape(0), args.attrs.ints("shape"));
  return {{lax::broadcast_in_dim(x, shape, prepended(0, plus(args.attrs.ints("broadcast_dimensions"), 1)))}, {0}};
}

PrimitiveRecord broadcast_in_dim_record() {
  PrimitiveRecord r;
  r.name = "broadcast_in_dim";
  r.traits.moves = Moves::index;
  r.traits.free_to_recompute = true;
  r.traits.expands = true;
  r.traits.only_order = true;
  r.doc = "Repeats an array along new or size-1 dimensions.";
  r.dtypes = array_dtypes();
  r.type = broadcast_in_dim_type;
  r.jvp = linear_jvp();
  r.transpose = broadcast_in_dim_transpose;
  r.batch = broadcast_in_dim_batch;
  r.stablehlo = "stablehlo.broadcast_in_dim";
  r.samples = [](DType d) {
    auto attrs = [](Ints shape, Ints dims) {
      return Attrs{{"shape", shape}, {"broadcast_dimensions", dims}, {"sharding", Attr()}};
    };
    return std::vector<Sample>{{{sample_type(d, {})}, attrs({2, 3}, {})},
                               {{sample_type(d, {3})}, attrs({2, 3}, {1})},
                               {{sample_type(d, {2, 1})}, attrs({2, 4, 3}, {0, 2})},
                               {{sample_type(d, {1, 3})}, attrs({5, 3}, {0, 1})},
                               {{sample_type(d, {2, 3})}, attrs({3, 2}, {1, 0})},
                               {{sample_type(d, {1})}, attrs({0}, {0})}};
  };
  return r;
}

// ---- reshape -----------------------------------------------------------------------------------------------------

TypeResult reshape_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("reshape", types, 1);
  const Ints& sizes = attrs.ints("new_sizes");
  require_sizes("reshape", "new_sizes", sizes);
  if (const Ints* dimensions = attrs["dimensions"].get_if<Ints>()) {
    Ints sorted = *dimensions;
    std::sort(sorted.begin(), sorted.end());
    if (sorted != range(types[0].rank())) {
      throw TypeError(concat("reshape: dimensions must be a permutation of the operand's dimensions, got ",
                             tuple(*dimensions), " for shape ", tuple(types[0].shape)));
    }
  }
  if (element_count(sizes) != types[0].size()) {
    throw TypeError(concat("reshape total size must be unchanged: new_sizes ", tuple(sizes), " (size ",
                           element_count(sizes), ") for shape ", tuple(types[0].shape), " (size ", types[0].size(),
                           ")"));
  }
  return Types{types[0].with_shape(sizes)};
}

Arrays reshape_transpose(const TransposeArgs& args) {
  const Array& ct = args.cotangents[0];
  if (!ct.defined()) return {Array()};
  const Shape& shape = args.types[0].shape;
  const Ints* dimensions = args.attrs["dimensions"].get_if<Ints>();
  if (!dimensions) return {lax::reshape(ct, shape)};
  Shape permuted;
  for (int64_t d : *dimensions) permuted.push_back(at(shape, d));
  return {lax::transpose(lax::reshape(ct, permuted), inverse_permutation(*dimensions))};
}

BatchResult reshape_batch(const BatchArgs& args) {
  Array x = move_axis(args.inputs[0], args.dims[0], 0);
  const Ints* dimensions = args.attrs["dimensions"].get_if<Ints>();
  return {{lax::reshape(x, prepended(x.shape(0), args.attrs.ints("new_sizes")),
                        dimensions ? prepended(0, plus(*dimensions, 1)) : Ints{})},
          {0}};
}

PrimitiveRecord reshape_record() {
  PrimitiveRecord r;
  r.name = "reshape";
  r.traits.moves = Moves::index;
  r.traits.free_to_recompute = true;
  r.doc = "The same elements in row-major order under another shape.";
  r.dtypes = array_dtypes();
  r.type = reshape_type;
  r.jvp = linear_jvp();
  r.transpose = reshape_transpose;
  r.batch = reshape_batch;
  r.stablehlo = "stablehlo.reshape";
  // StableHLO's reshape cannot permute first.
  r.lower = [](std::span<const Array> in, const Attrs& attrs) -> Arrays {
    const Ints* dimensions = attrs["dimensions"].get_if<Ints>();
    if (!dimensions) return {};
    static const Primitive self = primitive("reshape");
    return {bind1(self, {lax::transpose(in[0], *dimensions)}, attrs.with("dimensions", Attr()))};
  };
  r.samples = [](DType d) {
    auto attrs = [](Ints sizes, Attr dimensions = Attr()) {
      return Attrs{{"new_sizes", sizes}, {"dimensions", dimensions}, {"sharding", Attr()}};
    };
    return std::vector<Sample>{{{sample_type(d, {2, 3})}, attrs({6})},
                               {{sample_type(d, {6})}, attrs({3, 1, 2})},
                               {{sample_type(d, {2, 3})}, attrs({6}, Ints{1, 0})},
                               {{sample_type(d, {})}, attrs({1, 1})},
                               {{sample_type(d, {1})}, attrs({})},
                               {{sample_type(d, {0, 3})}, attrs({3, 0})}};
  };
  return r;
}

// ---- squeeze -----------------------------------------------------------------------------------------------------

TypeResult squeeze_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("squeeze", types, 1);
  const Ints& dims = attrs.ints("dimensions");
  const ArrayType& x = types[0];
  if (has_duplicates(dims)) throw ValueError(concat("squeeze: dimensions are not unique, got ", tuple(dims)));
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= x.rank()) {
      throw ValueError(concat("squeeze: axis ", dim, " is out of bounds for array of dimension ", x.rank()));
    }
    if (at(x.shape, dim) != 1) {
      throw ValueError(
          concat("squeeze: cannot select an axis to squeeze out which has size not equal to one, got shape ",
                 tuple(x.shape), " and dimensions ", tuple(dims)));
    }
  }
  Shape shape;
  for (int64_t i : other_dims(x.rank(), dims)) shape.push_back(at(x.shape, i));
  return Types{x.with_shape(shape)};
}

PrimitiveRecord squeeze_record() {
  PrimitiveRecord r;
  r.name = "squeeze";
  r.traits.moves = Moves::index;
  r.traits.free_to_recompute = true;
  r.doc = "Removes dimensions of size 1.";
  r.dtypes = array_dtypes();
  r.type = squeeze_type;
  r.jvp = linear_jvp();
  r.transpose = [](const TransposeArgs& args) -> Arrays {
    if (!args.cotangents[0].defined()) return {Array()};
    return {lax::expand_dims(args.cotangents[0], args.attrs.ints("dimensions"))};
  };
  r.batch = [](const BatchArgs& args) -> BatchResult {
    Array x = move_axis(args.inputs[0], args.dims[0], 0);
    return {{lax::squeeze(x, plus(args.attrs.ints("dimensions"), 1))}, {0}};
  };
  r.lower = [](std::span<const Array> in, const Attrs& attrs) -> Arrays {
    Shape shape;
    for (int64_t i : other_dims(in[0].ndim(), attrs.ints("dimensions"))) shape.push_back(in[0].shape(i));
    return {lax::reshape(in[0], shape)};
  };
  r.samples = [](DType d) {
    return std::vector<Sample>{{{sample_type(d, {1, 3})}, {{"dimensions", Ints{0}}}},
                               {{sample_type(d, {2, 1, 3, 1})}, {{"dimensions", Ints{1, 3}}}},
                               {{sample_type(d, {1})}, {{"dimensions", Ints{0}}}},
                               {{sample_type(d, {0, 1})}, {{"dimensions", Ints{1}}}}};
  };
  return r;
}

// ---- transpose ---------------------------------------------------------------------------------------------------

TypeResult transpose_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("transpose", types, 1);
  const Ints& permutation = attrs.ints("permutation");
  Ints sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != range(types[0].rank())) {
    throw TypeError(concat("transpose: permutation must be a permutation of the operand's dimensions, got ",
                           tuple(permutation), " for shape ", tuple(types[0].shape)));
  }
  Shape shape;
  for (int64_t dim : permutation) shape.push_back(at(types[0].shape, dim));
  return Types{types[0].with_shape(shape)};
}

PrimitiveRecord transpose_record() {
  PrimitiveRecord r;
  r.name = "transpose";
  r.traits.moves = Moves::index;
  r.doc = "Permutes the dimensions: output dimension i is operand dimension permutation[i].";
  r.dtypes = array_dtypes();
  r.type = transpose_type;
  r.jvp = linear_jvp();
  r.transpose = [](const TransposeArgs& args) -> Arrays {
    if (!args.cotangents[0].defined()) return {Array()};
    return {lax::transpose(args.cotangents[0], inverse_permutation(args.attrs.ints("permutation")))};
  };
  r.batch = [](const BatchArgs& args) -> BatchResult {
    int64_t dim = args.dims[0];
    return {{lax::transpose(args.inputs[0], prepended(dim, shifted(args.attrs.ints("permutation"), dim)))}, {0}};
  };
  r.stablehlo = "stablehlo.transpose";
  r.samples = [](DType d) {
    return std::vector<Sample>{{{sample_type(d, {2, 3})}, {{"permutation", Ints{1, 0}}}},
                               {{sample_type(d, {2, 3, 4})}, {{"permutation", Ints{2, 0, 1}}}},
                               {{sample_type(d, {})}, {{"permutation", Ints{}}}},
                               {{sample_type(d, {3, 0})}, {{"permutation", Ints{1, 0}}}}};
  };
  return r;
}

// ---- rev ---------------------------------------------------------------------------------------------------------

TypeResult rev_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("rev", types, 1);
  const Ints& dims = attrs.ints("dimensions");
  if (has_duplicates(dims)) throw TypeError(concat("rev: dimensions must be unique, got ", tuple(dims)));
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= types[0].rank()) {
      throw TypeError(concat("rev: dimensions must be in [0, ", types[0].rank(), "), got ", tuple(dims), " for shape ",
                             tuple(types[0].shape)));
    }
  }
  return Types{types[0]};
}

PrimitiveRecord rev_record() {
  PrimitiveRecord r;
  r.name = "rev";
  r.traits.moves = Moves::index;
  r.traits.free_to_recompute = true;
  r.doc = "Reverses the order of elements along dimensions.";
  r.dtypes = array_dtypes();
  r.type = rev_type;
  r.jvp = linear_jvp();
  r.transpose = [](const TransposeArgs& args) -> Arrays {
    if (!args.cotangents[0].defined()) return {Array()};
    return {lax::rev(args.cotangents[0], args.attrs.ints("dimensions"))};
  };
  r.batch = [](const BatchArgs& args) -> BatchResult {
    int64_t dim = args.dims[0];
    return {{lax::rev(args.inputs[0], shifted(args.attrs.ints("dimensions"), dim))}, {dim}};
  };
  r.stablehlo = "stablehlo.reverse";
  r.samples = [](DType d) {
    return std::vector<Sample>{{{sample_type(d, {4})}, {{"dimensions", Ints{0}}}},
                               {{sample_type(d, {2, 3})}, {{"dimensions", Ints{1, 0}}}},
                               {{sample_type(d, {2, 3, 2})}, {{"dimensions", Ints{1}}}},
                               {{sample_type(d, {})}, {{"dimensions", Ints{}}}},
                               {{sample_type(d, {0, 2})}, {{"dimensions", Ints{0}}}}};
  };
  return r;
}

// ---- tile --------------------------------------------------------------------------------------------------------

// reps and sizes in turn: the shape in which each repetition has its own dimension.
Shape interleaved(const Ints& reps, const Shape& shape) {
  Shape out;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    out.push_back(reps[i]);
    out.push_back(shape[i]);
  }
  return out;
}

TypeResult tile_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("tile", types, 1);
  const Ints& reps = attrs.ints("reps");
  if (static_cast<int64_t>(reps.size()) != types[0].rank()) {
    throw TypeError(concat("tile: reps must have one entry per operand dimension, got ", tuple(reps), " for shape ",
                           tuple(types[0].shape)));
  }
  require_sizes("tile", "reps", reps);
  Shape shape = types[0].shape;
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] *= reps[i];
  return Types{types[0].with_shape(shape)};
}

PrimitiveRecord tile_record() {
  PrimitiveRecord r;
  r.name = "tile";
  r.traits.moves = Moves::several;
  r.doc = "Repeats a whole array along each dimension.";
  r.dtypes = array_dtypes();
  r.type = tile_type;
  r.jvp = linear_jvp();
  r.transpose = [](const TransposeArgs& args) -> Arrays {
    if (!args.cotangents[0].defined() || !args.linear(0)) return {Array()};
    Array split = lax::reshape(args.cotangents[0], interleaved(args.attrs.ints("reps"), args.types[0].shape));
    Ints axes;
    for (int64_t i = 0; i < args.types[0].rank(); ++i) axes.push_back(2 * i);
    return {lax::reduce_sum(split, {.axes = axes})};
  };
  r.batch = [](const BatchArgs& args) -> BatchResult {
    int64_t dim = args.dims[0];
    return {{lax::tile(args.inputs[0], inserted(args.attrs.ints("reps"), dim, 1))}, {dim}};
  };
  r.lower = [](std::span<const Array> in, const Attrs& attrs) -> Arrays {
    const Ints& reps = attrs.ints("reps");
    const Shape& shape = in[0].shape();
    Array split = lax::reshape(in[0], interleaved(Ints(shape.size(), 1), shape));
    Array repeated = lax::broadcast_in_dim(split, interleaved(reps, shape), range(split.ndim()));
    Shape out = shape;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] *= reps[i];
    return {lax::reshape(repeated, out)};
  };
  r.samples = [](DType d) {
    return std::vector<Sample>{{{sample_type(d, {3})}, {{"reps", Ints{2}}}},
                               {{sample_type(d, {2, 3})}, {{"reps", Ints{2, 3}}}},
                               {{sample_type(d, {2, 1, 2})}, {{"reps", Ints{1, 3, 0}}}},
                               {{sample_type(d, {})}, {{"reps", Ints{}}}}};
  };
  return r;
}

}  // namespace

Family rearrange_records() {
  Family family;
  family.push_back(broadcast_in_dim_record());
  family.push_back(reshape_record());
  family.push_back(squeeze_record());
  family.push_back(transpose_record());
  family.push_back(rev_record());
  family.push_back(tile_record());
  return family;
}

Family shape_family() {
  Family family = rearrange_records();
  for (PrimitiveRecord& record : join_records()) family.push_back(std::move(record));
  return family;
}

}  // namespace capibara
