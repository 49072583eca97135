// gather: windows of an operand at positions held in an index array.
#include <algorithm>

#include "core/array/element.h"
#include "lax/index/index_map.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/splits.h"

namespace capibara {

namespace lax = jax::lax;

Array gather_fill_value(const Attr& fill_value, DType dtype) {
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(storage_size(dtype)));
  std::byte* out = buffer.mutable_data();
  if (is_key(dtype)) {
    std::fill_n(out, storage_size(dtype), std::byte{0xff});
  } else if (const double* real = fill_value.get_if<double>()) {
    convert_elements(DType::float64, real, dtype, out, 1);
  } else if (const int64_t* integer = fill_value.get_if<int64_t>()) {
    convert_elements(DType::int64, integer, dtype, out, 1);
  } else if (const bool* truth = fill_value.get_if<bool>()) {
    convert_elements(DType::bool_, truth, dtype, out, 1);
  } else if (const Array* value = fill_value.get_if<Array>()) {
    convert_elements(value->dtype(), value->raw_data(), dtype, out, 1);
  } else {
    throw TypeError("gather: fill_value must be a number where the mode is fill_or_drop");
  }
  return Array::from_buffer(sample_type(dtype, {}), std::move(buffer));
}

namespace {

const GatherDimensionNumbers& gather_dims(const Attrs& attrs) {
  return attrs.get<GatherDimensionNumbers>("dimension_numbers");
}

TypeResult gather_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("gather", types, 2);
  const ArrayType& x = types[0];
  const ArrayType& indices = types[1];
  const GatherDimensionNumbers& dims = gather_dims(attrs);
  const Ints& sizes = attrs.ints("slice_sizes");
  mode_of(attrs);
  if (!is_integer(indices.dtype)) {
    throw ValueError(concat("gather: indices must have an integer type, got ", to_string(indices)));
  }
  if (indices.rank() == 0) throw TypeError("gather: indices must have rank 1 or more, got a scalar");
  int64_t rank = static_cast<int64_t>(dims.offset_dims.size()) + indices.rank() - 1;
  const auto outside = std::find_if(dims.offset_dims.begin(), dims.offset_dims.end(),
                                    [&](int64_t dim) { return dim < 0 || dim >= rank; });
  if (outside != dims.offset_dims.end()) {
    throw TypeError(concat("Offset dimension ", outside - dims.offset_dims.begin(),
                           " in gather op is out of bounds; got ", *outside, ", but should have been in [0, ", rank,
                           ")"));
  }
  require_sorted_unique("gather", "offset_dims", dims.offset_dims, rank);
  require_index_map("gather", "start_index_map", dims.start_index_map, x, indices);
  require_sorted_unique("gather", "collapsed_slice_dims", dims.collapsed_slice_dims, x.rank());
  require_sorted_unique("gather", "operand_batching_dims", dims.operand_batching_dims, x.rank());
  require_disjoint("gather", "collapsed_slice_dims", dims.collapsed_slice_dims, "operand_batching_dims",
                   dims.operand_batching_dims);
  require_disjoint("gather", "start_index_map", dims.start_index_map, "operand_batching_dims",
                   dims.operand_batching_dims);
  require_batching_dims("gather", x, indices, dims.operand_batching_dims, dims.start_indices_batching_dims);
  if (static_cast<int64_t>(sizes.size()) != x.rank()) {
    throw TypeError(concat("gather: Gather op must have one slice size for every input dimension; got slice_sizes ",
                           tuple(sizes), " for shape ", tuple(x.shape)));
  }
  if (sizes.size() != dims.offset_dims.size() + dims.collapsed_slice_dims.size() + dims.operand_batching_dims.size()) {
    throw TypeError(concat("All components of the offset index in a gather op must either be a offset dimension or ",
                           "explicitly collapsed/batching; got slice_sizes ", tuple(sizes), ", offset_dims ",
                           tuple(dims.offset_dims), ", collapsed_slice_dims ", tuple(dims.collapsed_slice_dims),
                           ", operand_batching_dims ", tuple(dims.operand_batching_dims)));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || (indices.size() != 0 && sizes[i] > x.shape[i])) {
      throw TypeError(concat("Slice size at index ", i, " in gather op is out of range, must be within [0, ",
                             x.shape[i], "], got ", sizes[i], "."));
    }
  }
  const auto require_bound = [&](const Ints& reduced, const char* what, int64_t least) {
    for (std::size_t i = 0; i < reduced.size(); ++i) {
      const int64_t bound = at(sizes, reduced[i]);
      if (bound >= least && bound <= 1) continue;
      throw TypeError(concat("gather: Gather op can only ", what, ", but bound is ", bound, " for index ", reduced[i],
                             " at position ", i, "."));
    }
  };
  require_bound(dims.collapsed_slice_dims, "collapse slice dims with bound 1", 1);
  require_bound(dims.operand_batching_dims, "have operand batching dims with bound 0/1", 0);
  Shape shape;
  std::size_t next_batch = 0, next_size = 0;
  for (int64_t i = 0; i < rank; ++i) {
    if (!contains(dims.offset_dims, i)) {
      shape.push_back(indices.shape[next_batch++]);
      continue;
    }
    while (contains(dims.collapsed_slice_dims, static_cast<int64_t>(next_size)) ||
           contains(dims.operand_batching_dims, static_cast<int64_t>(next_size))) {
      ++next_size;
    }
    shape.push_back(sizes[next_size++]);
  }
  return Types{x.with_shape(shape)};
}

// The options of the equation, for building a related gather.
lax::GatherOptions options_of(const Attrs& attrs) {
  lax::GatherOptions options;
  options.unique_indices = attrs.boolean("unique_indices");
  options.indices_are_sorted = attrs.boolean("indices_are_sorted");
  options.mode = mode_of(attrs);
  return options;
}

JvpResult gather_jvp(const JvpArgs& args) {
  Arrays out = capibara::bind(args.primitive, args.primals, args.attrs);
  Array tangent;
  if (args.tangents[0].defined()) {
    lax::GatherOptions options = options_of(args.attrs);
    options.fill_value = Array(0);
    tangent = lax::gather(args.tangents[0], args.primals[1], gather_dims(args.attrs), args.attrs.ints("slice_sizes"),
                          options);
  }
  return {std::move(out), {tangent}};
}

Arrays gather_transpose(const TransposeArgs& args) {
  const Array& ct = args.cotangents[0];
  if (!ct.defined()) return {Array(), Array()};
  Array zeros = lax::zeros(cotangent_type(args.types[0]).strong());
  const GatherDimensionNumbers& dims = gather_dims(args.attrs);
  lax::GatherOptions options = options_of(args.attrs);
  return {lax::scatter_add(zeros, args.inputs[1], ct,
                           {dims.offset_dims, dims.collapsed_slice_dims, dims.start_index_map,
                            dims.operand_batching_dims, dims.start_indices_batching_dims},
                           {.indices_are_sorted = options.indices_are_sorted,
                            .unique_indices = options.unique_indices,
                            .mode = options.mode}),
          Array()};
}

BatchResult gather_batch(const BatchArgs& args) {
  GatherDimensionNumbers dims = gather_dims(args.attrs);
  Ints sizes = args.attrs.ints("slice_sizes");
  Array x = args.inputs[0], indices = args.inputs[1];
  Attrs attrs = args.attrs;
  auto bind_with = [&]() -> BatchResult {
    attrs = attrs.with("dimension_numbers", dims).with("slice_sizes", sizes);
    return {{bind1(args.primitive, {x, indices}, attrs)}, {0}};
  };
  if (args.mapped(0)) {
    x = move_axis(x, args.dims[0], 0);
    dims.collapsed_slice_dims = plus(dims.collapsed_slice_dims, 1);
    dims.operand_batching_dims = plus(dims.operand_batching_dims, 1);
    dims.start_index_map = plus(dims.start_index_map, 1);
  }
  dims.offset_dims = plus(dims.offset_dims, 1);
  if (!args.mapped(1)) {  // the mapped axis is a whole dimension of every window
    dims.offset_dims = prepended(0, dims.offset_dims);
    sizes = prepended(x.shape(0), sizes);
    return bind_with();
  }
  indices = move_axis(indices, args.dims[1], 0);
  dims.start_indices_batching_dims = plus(dims.start_indices_batching_dims, 1);
  if (!args.mapped(0)) {  // more windows of the same operand: order and uniqueness are lost
    attrs = attrs.with("unique_indices", false).with("indices_are_sorted", false);
    return bind_with();
  }
  dims.operand_batching_dims = prepended(0, dims.operand_batching_dims);
  dims.start_indices_batching_dims = prepended(0, dims.start_indices_batching_dims);
  sizes = prepended(x.shape(0) == 0 ? 0 : 1, sizes);
  return bind_with();
}

// Mode fill_or_drop as a clamping gather whose windows out of bounds are masked.
Array masked_gather(const Array& x, const Array& indices, const Attrs& attrs, const ArrayType& out_type) {
  static const Primitive self = primitive("gather");
  const GatherDimensionNumbers& dims = gather_dims(attrs);
  const Ints& sizes = attrs.ints("slice_sizes");
  bool large = std::any_of(x.shape().begin(), x.shape().end(), [](int64_t d) { return d > INT32_MAX; });
  DType index_dtype = large ? DType::int64 : DType::int32;
  Array positions = lax::convert_element_type(indices, index_dtype);
  int64_t batch_rank = indices.ndim() - 1;
  Ints upper;
  for (int64_t dim : dims.start_index_map) upper.push_back(x.shape(dim) - at(sizes, dim));
  Buffer buffer = Buffer::allocate(upper.size() * static_cast<std::size_t>(storage_size(index_dtype)));
  convert_elements(DType::int64, upper.data(), index_dtype, buffer.mutable_data(), static_cast<int64_t>(upper.size()));
  Array bound = Array::from_buffer(sample_type(index_dtype, {static_cast<int64_t>(upper.size())}), buffer);
  bound = lax::broadcast_in_dim(bound, indices.shape(), {batch_rank});
  Array zero = lax::broadcast_in_dim(scalar_of(index_dtype, 0), indices.shape(), {});
  Array is_at_least = lax::ge(positions, zero);
  Array inside = lax::bitwise_and(is_at_least, lax::le(positions, bound));
  inside = lax::reduce_and(inside, {.axes = {batch_rank}});
  Array windows =
      bind1(self, {x, positions}, attrs.with("mode", "clip").with("fill_value", Attr()).with("unique_indices", false));
  Array fill = lax::broadcast(gather_fill_value(attrs["fill_value"], x.dtype()), out_type.shape);
  Ints batch_dims = other_dims(out_type.rank(), dims.offset_dims);
  return lax::select(lax::broadcast_in_dim(inside, out_type.shape, batch_dims), windows, fill);
}

// In the subset a gather clamps, as StableHLO's does, and has no uniqueness.
Arrays gather_lower(std::span<const Array> in, const Attrs& attrs) {
  static const Primitive self = primitive("gather");
  ArrayType types[] = {in[0].type(), in[1].type()};
  ArrayType out = gather_type(types, attrs).types[0];
  if (out.size() == 0) return {lax::zeros(out.strong())};
  if (mode_of(attrs) == lax::GatherScatterMode::fill_or_drop) return {masked_gather(in[0], in[1], attrs, out)};
  if (mode_of(attrs) == lax::GatherScatterMode::clip && !attrs.boolean("unique_indices")) return {};
  return {bind1(self, {in[0], in[1]}, attrs.with("mode", "clip").with("unique_indices", false))};
}

std::vector<Sample> gather_samples(DType d) {
  auto sample = [d](Shape x, Shape indices, GatherDimensionNumbers dims, Ints sizes, const char* mode,
                    Attr fill = Attr()) {
    return Sample{{sample_type(d, x), sample_type(DType::int32, indices)},
                  {{"dimension_numbers", dims},
                   {"slice_sizes", sizes},
                   {"unique_indices", false},
                   {"indices_are_sorted", false},
                   {"mode", mode},
                   {"fill_value", fill}},
                  -2,
                  2,
                  true};
  };
  return {sample({4}, {3, 1}, {{}, {0}, {0}, {}, {}}, {1}, "clip"),
          sample({4}, {1}, {{}, {0}, {0}, {}, {}}, {1}, "clip"),
          sample({4, 3}, {2, 1}, {{1}, {0}, {0}, {}, {}}, {1, 3}, "fill_or_drop", 0),
          sample({4, 3}, {2, 2, 2}, {{2}, {0}, {1, 0}, {}, {}}, {1, 2}, "clip"),
          sample({3, 4, 2}, {2, 2}, {{0, 2}, {0}, {0, 1}, {}, {}}, {1, 2, 2}, "fill_or_drop", 1),
          sample({2, 4}, {2, 3, 1}, {{}, {1}, {1}, {0}, {0}}, {1, 1}, "clip"),
          sample({3}, {0, 1}, {{}, {0}, {0}, {}, {}}, {1}, "clip")};
}

}  // namespace

Family gather_records() {
  PrimitiveRecord r;
  r.name = "gather";
  r.factors = gather_factors;
  r.splits = gather_splits;
  r.localise = localise_gather;
  r.traits.element_nanoseconds = 3;
  r.doc = "Windows of an operand at the positions held in an index array.";
  r.dtypes = array_dtypes();
  r.type = gather_type;
  r.jvp = gather_jvp;
  r.transpose = gather_transpose;
  r.batch = gather_batch;
  r.stablehlo = "stablehlo.gather";
  r.lower = gather_lower;
  r.samples = gather_samples;
  r.print_attr = print_index_attribute;
  Family family;
  family.push_back(std::move(r));
  return family;
}

}  // namespace capibara

namespace capibara::jax::lax {

namespace {

// The fill value for "out of bounds" if the caller gave none.
Attr default_fill(DType dtype) {
  if (is_inexact(dtype)) return std::numeric_limits<double>::quiet_NaN();
  if (is_signed(dtype)) return iinfo(dtype).min;
  if (is_key(dtype)) return int64_t{UINT32_MAX};
  if (is_bool(dtype)) return true;
  uint64_t greatest = iinfo(dtype).max;
  if (greatest <= INT64_MAX) return static_cast<int64_t>(greatest);
  // The largest uint64 does not fit int64: keep it as an array.
  Buffer buffer = Buffer::allocate(sizeof greatest);
  std::copy_n(reinterpret_cast<const std::byte*>(&greatest), sizeof greatest, buffer.mutable_data());
  return Array::from_buffer(sample_type(DType::uint64, {}), std::move(buffer));
}

Attr fill_attribute(const Array& value) {
  if (value.is_tracer()) {
    throw ConcretizationTypeError("gather: fill_value must be a concrete number, got a traced array");
  }
  if (value.ndim() != 0) throw ValueError("gather: fill_value must be a scalar");
  if (is_bool(value.dtype())) return value.item<bool>();
  if (is_floating(value.dtype())) return value.item<double>();
  if (is_integer(value.dtype()) && value.dtype() != DType::uint64) return value.item<int64_t>();
  return value;
}

}  // namespace

Array gather(const Array& x, const Array& start_indices, const GatherDimensionNumbers& dimension_numbers,
             const Ints& slice_sizes, const GatherOptions& options) {
  static const Primitive p = primitive("gather");
  GatherScatterMode mode = options.mode.value_or(GatherScatterMode::promise_in_bounds);
  Attr fill;
  if (mode == GatherScatterMode::fill_or_drop) {
    fill = options.fill_value ? fill_attribute(*options.fill_value) : default_fill(x.dtype());
  }
  return bind1(p, {x, start_indices},
               {{"dimension_numbers", dimension_numbers},
                {"slice_sizes", slice_sizes},
                {"unique_indices", options.unique_indices},
                {"indices_are_sorted", options.indices_are_sorted},
                {"mode", mode_name(mode)},
                {"fill_value", fill}});
}

Array index_take(const Array& x, const Arrays& indices, const Ints& axes) {
  Arrays columns;
  for (const Array& index : indices) columns.push_back(expand_dims(index, {1}));
  Array vectors = concatenate(columns, 1);
  std::vector<int32_t> sizes;
  Ints slice_sizes = x.shape();
  for (int64_t axis : axes) {
    sizes.push_back(static_cast<int32_t>(x.shape(axis)));
    slice_sizes[static_cast<std::size_t>(axis)] = 1;
  }
  vectors =
      vectors % convert_element_type(expand_dims(array<int32_t>(sizes), range(vectors.ndim() - 1)), vectors.dtype());
  Ints offset_dims = range(x.ndim() - vectors.shape(1) + 1, 1);
  return gather(x, vectors, {offset_dims, axes, axes, {}, {}}, slice_sizes);
}

}  // namespace capibara::jax::lax
