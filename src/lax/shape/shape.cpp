// New shapes for the elements of one array: broadcast_in_dim, reshape, squeeze; and the list of the family.
#include "lax/shape/shape.h"
#include "lax/sharding/out_sharding.h"
#include "lax/sharding/splits.h"
#include "program/ir/explicit_types.h"

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
    throw TypeError(
        concat("broadcast_in_dim target broadcast shape must have equal or higher rank to the operand shape; ",
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
                 "dimensions in the target broadcast shape; got operand shape ", tuple(x.shape), ", output shape ",
                 tuple(shape), ", broadcast_dimensions ", tuple(dims)));
    }
  }
  return Types{x.with_shape(shape)};
}

Sharding without_dims(const Sharding& sharding, const Ints& dims) {
  if (!sharding.is_explicit()) return {};
  PartitionSpec spec = sharding.spec();
  spec.dims.clear();
  for (int64_t d : other_dims(static_cast<int64_t>(sharding.spec().dims.size()), dims))
    spec.dims.push_back(sharding.spec().dims[static_cast<std::size_t>(d)]);
  return Sharding::explicit_over(sharding.mesh(), std::move(spec), sharding.varying());
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
  // If dimensions are kept in another order, the sharding follows from the operand.
  const Sharding wanted = std::is_sorted(kept.begin(), kept.end())
                              ? without_dims(cotangent_sharding(args.types[0].sharding), unit_dims)
                              : Sharding();
  Array out = summed.empty() ? ct : lax::reduce_sum(ct, {.axes = summed}, wanted);
  // The kept dimensions are in ascending order; broadcast_dimensions may list them in another.
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
  return {{lax::broadcast_in_dim(x, shape, prepended(0, plus(args.attrs.ints("broadcast_dimensions"), 1)),
                                 batched_sharding(args, x, 0))},
          {0}};
}

PrimitiveRecord broadcast_in_dim_record() {
  PrimitiveRecord r;
  r.name = "broadcast_in_dim";
  r.factors = broadcast_in_dim_factors;
  r.splits = broadcast_in_dim_splits;
  r.localise = result_shape_as("shape");
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
  const Sharding wanted = cotangent_sharding(args.types[0].sharding);
  if (!dimensions) return {lax::reshape(ct, shape, {}, wanted)};
  Shape permuted;
  for (int64_t d : *dimensions) permuted.push_back(at(shape, d));
  return {lax::transpose(lax::reshape(ct, permuted), inverse_permutation(*dimensions))};
}

BatchResult reshape_batch(const BatchArgs& args) {
  Array x = move_axis(args.inputs[0], args.dims[0], 0);
  const Ints* dimensions = args.attrs["dimensions"].get_if<Ints>();
  return {{lax::reshape(x, prepended(x.shape(0), args.attrs.ints("new_sizes")),
                        dimensions ? prepended(0, plus(*dimensions, 1)) : Ints{}, batched_sharding(args, x, 0))},
          {0}};
}

PrimitiveRecord reshape_record() {
  PrimitiveRecord r;
  r.name = "reshape";
  r.factors = reshape_factors;
  r.splits = reshape_splits;
  r.localise = result_shape_as("new_sizes");
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
  r.factors = squeeze_factors;
  r.splits = squeeze_splits;
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

}  // namespace

Family resize_records() {
  Family family;
  family.push_back(broadcast_in_dim_record());
  family.push_back(reshape_record());
  family.push_back(squeeze_record());
  return family;
}

Family shape_family() {
  Family family;
  for (Family (*part)() : {resize_records, order_records, join_records, creation_records}) {
    for (PrimitiveRecord& record : part()) family.push_back(std::move(record));
  }
  return family;
}

}  // namespace capibara

namespace capibara::jax::lax {

namespace {

bool splits_or_sums(const Sharding& sharding) {
  if (!sharding.is_explicit()) return false;
  const PartitionSpec& spec = sharding.spec();
  return !spec.dims.empty() || !spec.unreduced.empty() || !spec.reduced.empty();
}

}  // namespace

Array broadcast(const Array& x, const Shape& sizes) {
  return broadcast(x, sizes, taken_out_sharding(sizes.size() + x.shape().size()));
}

Array broadcast(const Array& x, const Shape& sizes, const Sharding& out_sharding) {
  if (sizes.empty() && (!splits_or_sums(out_sharding) || out_sharding == x.type().sharding)) return x;
  Shape shape = sizes;
  shape.insert(shape.end(), x.shape().begin(), x.shape().end());
  auto added = static_cast<int64_t>(sizes.size());
  return broadcast_in_dim(x, shape, range(added + x.ndim(), added), out_sharding);
}

Array broadcast_in_dim(const Array& x, const Shape& shape, const Ints& broadcast_dimensions) {
  return broadcast_in_dim(x, shape, broadcast_dimensions, taken_out_sharding(shape.size()));
}

Array broadcast_in_dim(const Array& x, const Shape& shape, const Ints& broadcast_dimensions,
                       const Sharding& out_sharding) {
  static const Primitive p = primitive("broadcast_in_dim");
  const bool keeps = !out_sharding.is_explicit() || out_sharding == x.type().sharding;
  if (keeps && x.shape() == shape && broadcast_dimensions == range(x.ndim())) return x;
  return bind1(
      p, {x},
      {{"shape", shape}, {"broadcast_dimensions", broadcast_dimensions}, {"sharding", sharding_attr(out_sharding)}});
}

Array broadcast_to_rank(const Array& x, int64_t rank) {
  if (x.ndim() > rank) {
    throw ValueError(concat("broadcast_to_rank: ", to_string(x.type()), " has more dimensions than ", rank));
  }
  return broadcast(x, Shape(static_cast<std::size_t>(rank - x.ndim()), 1));
}

Array broadcast_like(const Array& x, const Array& like) {
  const Shape& shape = like.shape();
  if (x.shape() == shape) return x;
  int64_t lead = like.ndim() - x.ndim();
  bool fits = lead >= 0;
  for (int64_t i = 0; fits && i < x.ndim(); ++i) fits = x.shape(i) == 1 || x.shape(i) == at(shape, lead + i);
  if (!fits) {
    throw ValueError(
        concat("broadcast_like: ", to_string(x.type()), " does not broadcast to shape ", shape_tuple(shape)));
  }
  return broadcast_in_dim(x, shape, range(like.ndim(), lead), like.type().sharding);
}

Shape broadcast_shapes(const std::vector<Shape>& shapes) {
  std::size_t rank = 0;
  for (const Shape& shape : shapes) rank = std::max(rank, shape.size());
  Shape out(rank, 1);
  for (const Shape& shape : shapes) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      int64_t& size = out[rank - shape.size() + i];
      if (size == 1) {
        size = shape[i];
      } else if (shape[i] != 1 && shape[i] != size) {
        std::string text;
        for (const Shape& s : shapes) text += (text.empty() ? "" : ", ") + shape_tuple(s);
        throw ValueError(concat("Incompatible shapes for broadcasting: shapes=[", text, "]"));
      }
    }
  }
  return out;
}

Array reshape(const Array& x, const Shape& new_sizes, const Ints& dimensions) {
  return reshape(x, new_sizes, dimensions, taken_out_sharding(new_sizes.size()));
}

Array reshape(const Array& x, const Shape& new_sizes, const Ints& dimensions, const Sharding& out_sharding) {
  static const Primitive p = primitive("reshape");
  bool same_order = dimensions.empty() || dimensions == range(x.ndim());
  const bool keeps = !out_sharding.is_explicit() || out_sharding == x.type().sharding;
  if (x.ndim() > 0 && x.shape() == new_sizes && same_order && keeps) return x;
  return bind1(p, {x},
               {{"new_sizes", new_sizes},
                {"dimensions", same_order ? Attr() : Attr(dimensions)},
                {"sharding", sharding_attr(out_sharding)}});
}

Array squeeze(const Array& x, const Ints& dimensions) {
  static const Primitive p = primitive("squeeze");
  if (dimensions.empty()) return x;
  Ints dims;
  for (int64_t dim : dimensions) dims.push_back(checked_axis("squeeze", dim, x.type(), "dimensions"));
  std::sort(dims.begin(), dims.end());
  return bind1(p, {x}, {{"dimensions", dims}});
}

Array expand_dims(const Array& x, const Ints& dimensions) {
  int64_t rank = x.ndim() + static_cast<int64_t>(dimensions.size());
  Ints dims;
  for (int64_t dim : dimensions) {
    if (dim < -rank || dim >= rank) {
      throw ValueError(concat("expand_dims: axis ", dim, " is out of range for an array of rank ", rank,
                              " (argument 'dimensions')"));
    }
    dims.push_back(dim < 0 ? dim + rank : dim);
  }
  if (has_duplicates(dims))
    throw ValueError(concat("expand_dims: repeated axis in dimensions, got ", tuple(dimensions)));
  std::sort(dims.begin(), dims.end());
  Shape shape = x.shape();
  for (int64_t dim : dims) shape.insert(shape.begin() + dim, 1);
  return broadcast_in_dim(x, shape, other_dims(rank, dims));
}

Array collapse(const Array& x, int64_t start_dimension, int64_t stop_dimension) {
  auto normalised = [&](int64_t dim) { return std::clamp<int64_t>(dim < 0 ? dim + x.ndim() : dim, 0, x.ndim()); };
  int64_t low = normalised(start_dimension), high = normalised(stop_dimension);
  if (high < low) {
    throw ValueError(concat("collapse: invalid dimension range ", start_dimension, ":", stop_dimension, " for shape ",
                            shape_tuple(x.shape())));
  }
  const Shape& from = x.shape();
  Shape shape(from.begin(), from.begin() + low);
  shape.push_back(
      element_count(std::span(from).subspan(static_cast<std::size_t>(low), static_cast<std::size_t>(high - low))));
  shape.insert(shape.end(), from.begin() + high, from.end());
  return reshape(x, shape);
}

}  // namespace capibara::jax::lax
