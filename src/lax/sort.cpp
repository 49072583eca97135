// Sorting by keys or by a comparator region, and the greatest elements of each row.
#include "lax/sort.h"
#include "lax/families.h"
#include "lax/monoid.h"
#include "lax/rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "program/derive.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

const std::vector<DType> ordered_dtypes = {DType::bool_,   DType::int4,     DType::int8,    DType::int16,   DType::int32,
                                           DType::int64,  DType::uint8,    DType::uint16,  DType::uint32,  DType::uint64,
                                           DType::bfloat16, DType::float16, DType::float32, DType::float64};

// Zeros become +0 and NaNs one NaN, so that the total order treats them as equal.
Array canonical_float(const Array& x) {
  Array zero = scalar_like(x, 0);
  Array result = lax::select(lax::eq(x, zero), zero, x);
  Array nan = scalar_like(x, std::numeric_limits<double>::quiet_NaN());
  return lax::select(lax::ne(x, x), nan, result);
}

void append_keys(const Array& x, Arrays& keys) {
  if (is_complex(x.dtype())) {
    keys.push_back(canonical_float(lax::real(x)));
    keys.push_back(canonical_float(lax::imag(x)));
  } else {
    keys.push_back(is_floating(x.dtype()) ? canonical_float(x) : x);
  }
}

TypeResult sort_types(const std::string& op, std::span<const ArrayType> types, const Attrs& attrs) {
  if (types.empty()) throw TypeError(concat(op, ": at least one operand is needed"));
  for (const ArrayType& type : types) {
    if (type.shape != types[0].shape) {
      throw TypeError(concat(op, ": operands must have equal shapes, got ", to_string(types[0]), " and ", to_string(type)));
    }
  }
  int64_t dimension = attrs.integer("dimension");
  if (dimension < 0 || dimension >= types[0].rank()) {
    throw ValueError(concat(op, ": dimension ", dimension, " is out of range for ", to_string(types[0]),
                            " (argument 'dimension')"));
  }
  return Types(types.begin(), types.end());
}

// Where an index along `axis` picks one element of every row, as gather's dimension numbers.
GatherDimensionNumbers along_axis(int64_t rank, int64_t axis) {
  GatherDimensionNumbers numbers;
  numbers.collapsed_slice_dims = {axis};
  numbers.start_index_map = {axis};
  for (int64_t d = 0; d < rank; ++d) {
    if (d == axis) continue;
    numbers.operand_batching_dims.push_back(d);
    numbers.start_indices_batching_dims.push_back(d);
  }
  return numbers;
}

BatchResult batch_sort(const BatchArgs& args) {
  std::size_t first = 0;
  while (!args.mapped(first)) ++first;
  int64_t batch_dim = args.dims[first];
  Arrays inputs;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    inputs.push_back(batch_at(args.inputs[i], args.dims[i], args.axis.size, batch_dim));
  }
  int64_t dimension = shifted(args.attrs.integer("dimension"), batch_dim);
  Arrays outputs = capibara::bind(args.primitive, inputs, args.attrs.with("dimension", dimension));
  std::vector<int64_t> dims(outputs.size(), batch_dim);
  return {std::move(outputs), std::move(dims)};
}

// Sorts positions along, then reads each tangent in that order.
JvpResult sort_jvp(const JvpArgs& args, const Attrs& attrs_with_positions) {
  const Shape& shape = args.primals[0].shape();
  auto rank = static_cast<int64_t>(shape.size());
  int64_t dimension = args.attrs.integer("dimension");
  bool large = std::any_of(shape.begin(), shape.end(), [](int64_t d) { return d > std::numeric_limits<uint32_t>::max(); });
  Arrays operands(args.primals.begin(), args.primals.end());
  operands.push_back(lax::broadcasted_iota(large ? DType::uint64 : DType::uint32, shape, dimension));
  Arrays sorted = capibara::bind(args.primitive, operands, attrs_with_positions);
  Array positions = lax::expand_dims(sorted.back(), {rank});
  sorted.pop_back();
  Arrays tangents;
  for (const Array& tangent : args.tangents) {
    tangents.push_back(!tangent.defined() ? Array()
                                          : lax::gather(tangent, positions, along_axis(rank, dimension), Ints(shape.size(), 1),
                                                        {.mode = lax::GatherScatterMode::promise_in_bounds}));
  }
  return {std::move(sorted), std::move(tangents)};
}

PrimitiveRecord sort_record() {
  PrimitiveRecord record;
  record.name = "sort";
  record.traits.combines = Combines::order;
  record.traits.multiple_results = true;
  record.traits.element_nanoseconds = 30;
  record.doc = "Sorts operands together along a dimension by the first num_keys of them; NaN goes last.";
  record.dtypes = ordered_dtypes;
  record.dtypes.insert(record.dtypes.end(), {DType::complex64, DType::complex128});
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    int64_t keys = attrs.integer("num_keys");
    if (keys < 1 || keys > static_cast<int64_t>(types.size())) {
      throw ValueError(concat("sort: num_keys must be between 1 and the number of operands, ", types.size(), ", got ", keys));
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(keys); ++i) {
      if (!is_numeric(types[i].dtype) && !is_bool(types[i].dtype)) {
        throw TypeError(concat("sort: key ", i, " must hold numbers or booleans, got ", to_string(types[i])));
      }
    }
    return sort_types("sort", types, attrs);
  };
  record.jvp = [](const JvpArgs& args) { return sort_jvp(args, args.attrs); };
  record.batch = batch_sort;
  record.lower = [](std::span<const Array> inputs, const Attrs& attrs) -> Arrays {
    static const Primitive general = primitive("sort_general");
    Types types;
    for (const Array& x : inputs) types.push_back(x.type());
    return capibara::bind(general, inputs,
                          {{"comparator", sort_comparator(types, attrs.integer("num_keys"))},
                           {"dimension", attrs["dimension"]},
                           {"is_stable", attrs["is_stable"]}});
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    auto add = [&](Shape shape, int64_t dimension, std::size_t operands, int64_t keys, bool stable) {
      Sample s;
      s.inputs.assign(operands, scalar_type(dtype).with_shape(std::move(shape)));
      s.attrs = {{"dimension", dimension}, {"is_stable", stable}, {"num_keys", keys}};
      samples.push_back(std::move(s));
    };
    add({7}, 0, 1, 1, true);
    add({2, 5}, 1, 1, 1, false);
    add({5, 2}, 0, 2, 1, true);
    add({3, 2, 4}, 2, 3, 2, true);
    add({0, 3}, 0, 1, 1, true);
    add({1}, 0, 1, 1, true);
    return samples;
  };
  return record;
}

PrimitiveRecord sort_general_record() {
  PrimitiveRecord record;
  record.name = "sort_general";
  record.traits.combines = Combines::order;
  record.traits.region = true;
  record.traits.element_nanoseconds = 30;
  record.doc = "Sorts operands together along a dimension by a region that tells whether one element goes before another.";
  record.stablehlo = "stablehlo.sort";
  record.dtypes = ordered_dtypes;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    TypeResult result = sort_types("sort_general", types, attrs);
    const Program& comparator = attrs.program("comparator");
    Types inputs = comparator.input_types(), outputs = comparator.output_types();
    bool fits = inputs.size() == 2 * types.size() && outputs.size() == 1 && outputs[0].rank() == 0 && is_bool(outputs[0].dtype);
    for (std::size_t i = 0; fits && i < inputs.size(); ++i) {
      fits = inputs[i].rank() == 0 && inputs[i].dtype == types[i / 2].dtype;
    }
    if (!fits) {
      throw TypeError(concat("sort_general: the comparator must take two scalars of each operand's dtype and return one "
                             "bool, got ", inputs.size(), " arguments and ", outputs.size(), " results for ", types.size(),
                             " operands"));
    }
    return result;
  };
  record.jvp = [](const JvpArgs& args) {
    // Positions ride along; the comparator ignores them.
    const Program& comparator = args.attrs.program("comparator");
    Types types = comparator.input_types();
    types.push_back(scalar_type(DType::uint32));
    types.push_back(scalar_type(DType::uint32));
    auto ignore_positions = [&](std::span<const Array> xs) { return evaluate_program(comparator, xs.subspan(0, xs.size() - 2)); };
    return sort_jvp(args, args.attrs.with("comparator", stage_region("sort_general", ignore_positions, types)));
  };
  record.batch = batch_sort;
  record.samples = [](DType dtype) {
    ArrayType scalar = scalar_type(dtype);
    auto descending = [](std::span<const Array> a) { return Arrays{lax::gt(a[0], a[1])}; };
    Sample s;
    s.inputs = {scalar.with_shape({2, 6}), scalar.with_shape({2, 6})};
    s.attrs = {{"comparator", stage_region("sort_general", descending, {scalar, scalar, scalar, scalar})},
               {"dimension", 1},
               {"is_stable", true}};
    return std::vector<Sample>{s};
  };
  return record;
}

PrimitiveRecord top_k_record() {
  PrimitiveRecord record;
  record.name = "top_k";
  record.traits.multiple_results = true;
  record.traits.element_nanoseconds = 5;
  record.doc = "The k greatest elements along an axis in descending order, and their positions; the first of equals first.";
  record.stablehlo = "chlo.top_k";
  record.dtypes = ordered_dtypes;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count("top_k", types, 1);
    int64_t k = attrs.integer("k"), axis = attrs.integer("axis");
    if (is_complex(types[0].dtype)) throw ValueError("top_k is not compatible with complex inputs.");
    if (!is_numeric(types[0].dtype) && !is_bool(types[0].dtype)) throw TypeError(concat("top_k: the operand must hold numbers, got ", to_string(types[0])));
    if (k < 0) throw ValueError(concat("k argument to top_k must be nonnegative, got ", k));
    if (types[0].rank() == 0) throw TypeError(concat("top_k operand must have >= 1 dimension, got ", to_string(types[0])));
    if (axis < 0 || axis >= types[0].rank()) {
      throw ValueError(concat("top_k: axis ", axis, " is out of range for ", to_string(types[0]), " (argument 'axis')"));
    }
    Shape shape = types[0].shape;
    int64_t& size = shape[static_cast<std::size_t>(axis)];
    if (size < k) {
      throw ValueError(concat("k argument to top_k must be no larger than size along axis; got k=", k, " for ",
                              to_string(types[0]), " and axis ", axis));
    }
    if (size > std::numeric_limits<int32_t>::max()) {
      throw ValueError(concat("top_k returns int32 indices, which will overflow for array dimensions larger than ",
                              std::numeric_limits<int32_t>::max(), ", got ", to_string(types[0])));
    }
    size = k;
    ArrayType values = types[0].with_shape(shape);
    return Types{values, values.with_dtype(DType::int32)};
  };
  record.jvp = [](const JvpArgs& args) -> JvpResult {
    Arrays out = capibara::bind(args.primitive, args.primals, args.attrs);
    if (!args.tangents[0].defined()) return {out, {Array(), Array()}};
    Shape index_shape = out[1].shape();
    auto rank = static_cast<int64_t>(index_shape.size());
    index_shape.push_back(1);
    Array tangent = lax::gather(args.tangents[0], lax::reshape(out[1], index_shape),
                                along_axis(rank, args.attrs.integer("axis")), Ints(static_cast<std::size_t>(rank), 1),
                                {.mode = lax::GatherScatterMode::promise_in_bounds});
    return {out, {tangent, Array()}};
  };
  record.batch = [](const BatchArgs& args) -> BatchResult {
    int64_t axis = shifted(args.attrs.integer("axis"), args.dims[0]);
    return {capibara::bind(args.primitive, args.inputs, args.attrs.with("axis", axis)), {args.dims[0], args.dims[0]}};
  };
  // The operation works on the last axis.
  record.lower = [](std::span<const Array> inputs, const Attrs& attrs) -> Arrays {
    static const Primitive top_k = primitive("top_k");
    int64_t axis = attrs.integer("axis"), last = inputs[0].ndim() - 1;
    if (axis == last) return {};
    Ints swapped(static_cast<std::size_t>(last + 1));
    std::iota(swapped.begin(), swapped.end(), int64_t{0});
    std::swap(swapped[static_cast<std::size_t>(axis)], swapped.back());
    Arrays out = capibara::bind(top_k, Arrays{lax::transpose(inputs[0], swapped)}, attrs.with("axis", last));
    return {lax::transpose(out[0], swapped), lax::transpose(out[1], swapped)};
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    auto add = [&](Shape shape, int64_t k, int64_t axis) {
      Sample s;
      s.inputs = {scalar_type(dtype).with_shape(std::move(shape))};
      s.attrs = {{"k", k}, {"axis", axis}};
      samples.push_back(std::move(s));
    };
    add({6}, 3, 0);
    add({2, 5}, 5, 1);
    add({4, 2, 3}, 2, 0);
    add({2, 3}, 0, 1);
    add({0, 3}, 1, 1);
    return samples;
  };
  return record;
}

// How many candidates XLA's partial reduction keeps for a recall target; the tile is the width of a TPU vector.
int64_t approximate_output_size(int64_t size, int64_t rank, int64_t k, double recall_target, int64_t size_override) {
  int64_t tile = rank == 1 ? 1024 : 128;
  if (size <= tile) return size;
  if (k == 1) return tile;
  double wanted = recall_target >= 1.0 ? static_cast<double>(size) : (1.0 - static_cast<double>(k)) / std::log(recall_target);
  int64_t candidates = std::max(static_cast<int64_t>(wanted), tile);
  int64_t logical = size_override >= 0 ? size_override : size;
  int64_t reduction = 0;
  for (int64_t ratio = logical / candidates; ratio > 1; ratio /= 2) ++reduction;
  if (reduction == 0) return size;
  int64_t tiles = (size + tile - 1) / tile, most = 0;
  while ((int64_t{1} << most) < size / tile) ++most;
  reduction = std::min(reduction, most);
  int64_t group = int64_t{1} << reduction;
  return (tiles + group - 1) / group * tile;
}

PrimitiveRecord approx_top_k_record() {
  PrimitiveRecord record;
  record.name = "approx_top_k";
  record.traits.multiple_results = true;
  record.doc = "The k greatest or least elements along a dimension; a backend may miss some to be faster, this one does not.";
  record.dtypes = float_dtypes;
  auto dimension_of = [](const Attrs& attrs, int64_t rank) {
    int64_t dimension = attrs.integer("reduction_dimension");
    return dimension < 0 ? dimension + rank : dimension;
  };
  record.type = [dimension_of](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count("approx_top_k", types, 1);
    int64_t k = attrs.integer("k");
    if (k <= 0) throw ValueError(concat("approx_top_k: k must be positive, got ", k));
    if (types[0].rank() == 0) throw TypeError(concat("approx_top_k operand must have >= 1 dimension, got ", to_string(types[0])));
    int64_t dimension = dimension_of(attrs, types[0].rank());
    if (dimension < 0 || dimension >= types[0].rank()) {
      throw ValueError(concat("approx_top_k: reduction_dimension ", attrs.integer("reduction_dimension"),
                              " is out of range for ", to_string(types[0])));
    }
    Shape shape = types[0].shape;
    int64_t& size = shape[static_cast<std::size_t>(dimension)];
    if (size < k) throw ValueError(concat("approx_top_k: k must not exceed the size of the reduction dimension, ", size, ", got ", k));
    if (!is_floating(types[0].dtype)) throw ValueError(concat("approx_top_k: operand must be a floating type, got ", to_string(types[0])));
    size = attrs.boolean("aggregate_to_topk")
               ? k
               : approximate_output_size(size, types[0].rank(), k, attrs.real("recall_target"),
                                         attrs.integer("reduction_input_size_override"));
    ArrayType values = types[0].with_shape(shape);
    return Types{values, values.with_dtype(DType::int32)};
  };
  record.jvp = [dimension_of](const JvpArgs& args) -> JvpResult {
    Arrays out = capibara::bind(args.primitive, args.primals, args.attrs);
    if (!args.tangents[0].defined()) return {out, {Array(), Array()}};
    int64_t rank = out[1].ndim(), axis = dimension_of(args.attrs, rank);
    auto take_along_axis = [&](std::span<const Array> xs) -> Arrays {
      const Array &x = xs[0], &positions = xs[1];
      int64_t size = x.shape(axis);
      Array is_less = lax::lt(positions, exact_scalar(positions.dtype(), 0));
      Array wrapped = lax::select(is_less, lax::add(positions, exact_scalar(positions.dtype(), size)), positions);
      Shape shape = wrapped.shape();
      shape.push_back(1);
      return {lax::gather(x, lax::reshape(wrapped, shape), along_axis(rank, axis), Ints(static_cast<std::size_t>(rank), 1),
                          {.mode = lax::GatherScatterMode::fill_or_drop})};
    };
    Types types = {args.tangents[0].type(), out[1].type()};
    Program program = stage(take_along_axis, types, "take_along_axis").program;
    Array tangent = call_program(program, Arrays{args.tangents[0], out[1]}, "take_along_axis")[0];
    return {out, {tangent, Array()}};
  };
  record.batch = [dimension_of](const BatchArgs& args) -> BatchResult {
    int64_t dimension = shifted(dimension_of(args.attrs, args.inputs[0].ndim() - 1), args.dims[0]);
    return {capibara::bind(args.primitive, args.inputs, args.attrs.with("reduction_dimension", dimension)),
            {args.dims[0], args.dims[0]}};
  };
  record.lower = [dimension_of, type = record.type](std::span<const Array> inputs, const Attrs& attrs) -> Arrays {
    const Array& x = inputs[0];
    int64_t axis = dimension_of(attrs, x.ndim());
    int64_t k = type(std::vector<ArrayType>{x.type()}, attrs).types[0].shape[static_cast<std::size_t>(axis)];
    bool greatest = attrs.boolean("is_max_k");
    auto [values, positions] = lax::top_k(greatest ? x : lax::neg(x), k, axis);
    return {greatest ? values : lax::neg(values), positions};
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (bool greatest : {true, false}) {
      Sample s;
      s.inputs = {scalar_type(dtype).with_shape({3, 6})};
      s.attrs = {{"k", 2},        {"reduction_dimension", -1}, {"recall_target", 0.95},
                 {"is_max_k", greatest}, {"reduction_input_size_override", -1}, {"aggregate_to_topk", true}};
      samples.push_back(s);
    }
    return samples;
  };
  return record;
}

}  // namespace

Program sort_comparator(std::span<const ArrayType> operands, int64_t num_keys) {
  Types types;
  for (const ArrayType& type : operands) types.insert(types.end(), 2, scalar_type(type.dtype));
  auto less = [num_keys](std::span<const Array> args) -> Arrays {
    Arrays left, right;
    for (std::size_t i = 0; i < static_cast<std::size_t>(num_keys); ++i) {
      append_keys(args[2 * i], left);
      append_keys(args[2 * i + 1], right);
    }
    Array before;
    for (std::size_t i = left.size(); i-- > 0;) {
      if (!before.defined()) {
        before = lax::lt_to(left[i], right[i]);
      } else {
        Array first = lax::lt_to(left[i], right[i]);
        before = lax::bitwise_or(first, lax::bitwise_and(lax::eq_to(left[i], right[i]), before));
      }
    }
    return {before};
  };
  return stage_region("sort", less, types);
}

Family sort_family() { return {sort_record(), sort_general_record(), top_k_record(), approx_top_k_record()}; }

}  // namespace capibara
