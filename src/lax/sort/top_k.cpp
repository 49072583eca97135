// The largest elements of each row, exactly and approximately.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "lax/call.h"
#include "lax/reduce/monoid.h"
#include "lax/rules.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/splits.h"
#include "lax/sort/sort.h"
#include "program/trace/stage.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

// The number of candidates that XLA's partial reduction keeps for a recall target; the tile is a TPU vector's width.
int64_t approximate_output_size(int64_t size, int64_t rank, int64_t k, double recall_target, int64_t size_override) {
  int64_t tile = rank == 1 ? 1024 : 128;
  if (size <= tile) return size;
  if (k == 1) return tile;
  double wanted =
      recall_target >= 1.0 ? static_cast<double>(size) : (1.0 - static_cast<double>(k)) / std::log(recall_target);
  int64_t candidates = std::max(static_cast<int64_t>(wanted), tile);
  int64_t logical = size_override >= 0 ? size_override : size;
  int64_t reduction = 0;
  for (int64_t ratio = logical / candidates; ratio > 1; ratio /= 2) ++reduction;
  if (reduction == 0) return size;
  int64_t tiles = (size + tile - 1) / tile, max_reduction = 0;
  while ((int64_t{1} << max_reduction) < size / tile) ++max_reduction;
  reduction = std::min(reduction, max_reduction);
  int64_t group = int64_t{1} << reduction;
  return (tiles + group - 1) / group * tile;
}

}  // namespace

PrimitiveRecord top_k_record() {
  PrimitiveRecord record;
  record.name = "top_k";
  record.factors = factors_but("axis");
  record.splits = top_k_splits;
  record.traits.multiple_results = true;
  record.traits.element_nanoseconds = 5;
  record.doc =
      "The k largest elements along an axis in descending order, and their positions; the first of equals first.";
  record.stablehlo = "chlo.top_k";
  record.dtypes = sortable_dtypes;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count("top_k", types, 1);
    int64_t k = attrs.integer("k"), axis = attrs.integer("axis");
    if (is_complex(types[0].dtype)) throw ValueError("top_k is not compatible with complex inputs.");
    if (!is_numeric(types[0].dtype) && !is_bool(types[0].dtype))
      throw TypeError(concat("top_k: the operand must hold numbers, got ", to_string(types[0])));
    if (k < 0) throw ValueError(concat("k argument to top_k must be nonnegative, got ", k));
    if (types[0].rank() == 0)
      throw TypeError(concat("top_k operand must have >= 1 dimension, got ", to_string(types[0])));
    if (axis < 0 || axis >= types[0].rank()) {
      throw ValueError(
          concat("top_k: axis ", axis, " is out of range for ", to_string(types[0]), " (argument 'axis')"));
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
    Array tangent =
        lax::gather(args.tangents[0], lax::reshape(out[1], index_shape), along_axis(rank, args.attrs.integer("axis")),
                    Ints(static_cast<std::size_t>(rank), 1), {.mode = lax::GatherScatterMode::promise_in_bounds});
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

PrimitiveRecord approx_top_k_record() {
  PrimitiveRecord record;
  record.name = "approx_top_k";
  record.factors = factors_but("reduction_dimension");
  record.traits.multiple_results = true;
  record.doc =
      "The k largest or smallest elements along a dimension; a backend may miss some to be faster, this one does not.";
  record.dtypes = float_dtypes;
  auto dimension_of = [](const Attrs& attrs, int64_t rank) {
    int64_t dimension = attrs.integer("reduction_dimension");
    return dimension < 0 ? dimension + rank : dimension;
  };
  record.type = [dimension_of](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count("approx_top_k", types, 1);
    int64_t k = attrs.integer("k");
    if (k <= 0) throw ValueError(concat("approx_top_k: k must be positive, got ", k));
    if (types[0].rank() == 0)
      throw TypeError(concat("approx_top_k operand must have >= 1 dimension, got ", to_string(types[0])));
    int64_t dimension = dimension_of(attrs, types[0].rank());
    if (dimension < 0 || dimension >= types[0].rank()) {
      throw ValueError(concat("approx_top_k: reduction_dimension ", attrs.integer("reduction_dimension"),
                              " is out of range for ", to_string(types[0])));
    }
    Shape shape = types[0].shape;
    int64_t& size = shape[static_cast<std::size_t>(dimension)];
    if (size < k)
      throw ValueError(
          concat("approx_top_k: k must not exceed the size of the reduction dimension, ", size, ", got ", k));
    if (!is_floating(types[0].dtype))
      throw ValueError(concat("approx_top_k: operand must be a floating type, got ", to_string(types[0])));
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
      return {lax::gather(x, lax::reshape(wrapped, shape), along_axis(rank, axis),
                          Ints(static_cast<std::size_t>(rank), 1), {.mode = lax::GatherScatterMode::fill_or_drop})};
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
      s.attrs = {{"k", 2},
                 {"reduction_dimension", -1},
                 {"recall_target", 0.95},
                 {"is_max_k", greatest},
                 {"reduction_input_size_override", -1},
                 {"aggregate_to_topk", true}};
      samples.push_back(s);
    }
    return samples;
  };
  return record;
}

}  // namespace capibara

namespace capibara::jax::lax {

namespace {

Arrays approx_top_k(const Array& x, int64_t k, bool greatest, const ApproxTopKOptions& options) {
  static const Primitive p = primitive("approx_top_k");
  return capibara::bind(p, Arrays{x},
                        {{"k", k},
                         {"reduction_dimension", options.reduction_dimension},
                         {"recall_target", options.recall_target},
                         {"is_max_k", greatest},
                         {"reduction_input_size_override", options.reduction_input_size_override},
                         {"aggregate_to_topk", options.aggregate_to_topk}});
}

}  // namespace

std::pair<Array, Array> top_k(const Array& x, int64_t k, int64_t axis) {
  static const Primitive p = primitive("top_k");
  if (k < 0) throw ValueError(concat("k argument to top_k must be nonnegative, got ", k));
  if (x.ndim() == 0) throw TypeError(concat("top_k operand must have >= 1 dimension, got ", to_string(x.type())));
  Arrays out = capibara::bind(p, Arrays{x}, {{"k", k}, {"axis", normalised_axis("top_k", axis, x, "axis")}});
  return {out[0], out[1]};
}

std::pair<Array, Array> approx_max_k(const Array& x, int64_t k, const ApproxTopKOptions& options) {
  Arrays out = approx_top_k(x, k, true, options);
  return {out[0], out[1]};
}

std::pair<Array, Array> approx_min_k(const Array& x, int64_t k, const ApproxTopKOptions& options) {
  Arrays out = approx_top_k(x, k, false, options);
  return {out[0], out[1]};
}

}  // namespace capibara::jax::lax
