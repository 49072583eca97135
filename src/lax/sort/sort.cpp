// Sorting by keys or by a comparator region.
#include "lax/sort/sort.h"
#include "lax/families.h"
#include "lax/reduce/monoid.h"
#include "lax/rules.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/splits.h"

#include <algorithm>
#include <limits>

#include "program/ir/build.h"

namespace capibara {

namespace lax = jax::lax;

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

namespace {

// Zeros become +0 and all NaNs the same NaN, so that the total order treats them as equal.
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
      throw TypeError(
          concat(op, ": operands must have equal shapes, got ", to_string(types[0]), " and ", to_string(type)));
    }
  }
  int64_t dimension = attrs.integer("dimension");
  if (dimension < 0 || dimension >= types[0].rank()) {
    throw ValueError(
        concat(op, ": dimension ", dimension, " is out of range for ", to_string(types[0]), " (argument 'dimension')"));
  }
  return Types(types.begin(), types.end());
}

BatchResult batch_sort(const BatchArgs& args) {
  std::size_t first = 0;
  while (!args.mapped(first)) ++first;
  int64_t batch_dim = args.dims[first];
  Arrays inputs;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    inputs.push_back(batch_at(args.inputs[i], args.dims[i], args.axis, batch_dim));
  }
  int64_t dimension = shifted(args.attrs.integer("dimension"), batch_dim);
  Arrays outputs = capibara::bind(args.primitive, inputs, args.attrs.with("dimension", dimension));
  std::vector<int64_t> dims(outputs.size(), batch_dim);
  return {std::move(outputs), std::move(dims)};
}

// Sorts positions along with the operands, then reads each tangent in that order.
JvpResult sort_jvp(const JvpArgs& args, const Attrs& attrs_with_positions) {
  const Shape& shape = args.primals[0].shape();
  auto rank = static_cast<int64_t>(shape.size());
  int64_t dimension = args.attrs.integer("dimension");
  bool large =
      std::any_of(shape.begin(), shape.end(), [](int64_t d) { return d > std::numeric_limits<uint32_t>::max(); });
  Arrays operands(args.primals.begin(), args.primals.end());
  operands.push_back(lax::broadcasted_iota(large ? DType::uint64 : DType::uint32, shape, dimension));
  Arrays sorted = capibara::bind(args.primitive, operands, attrs_with_positions);
  Array positions = lax::expand_dims(sorted.back(), {rank});
  sorted.pop_back();
  Arrays tangents;
  for (const Array& tangent : args.tangents) {
    tangents.push_back(!tangent.defined()
                           ? Array()
                           : lax::gather(tangent, positions, along_axis(rank, dimension), Ints(shape.size(), 1),
                                         {.mode = lax::GatherScatterMode::promise_in_bounds}));
  }
  return {std::move(sorted), std::move(tangents)};
}

PrimitiveRecord sort_record() {
  PrimitiveRecord record;
  record.name = "sort";
  record.factors = factors_but("dimension");
  record.splits = sort_splits;
  record.traits.combines = Combines::order;
  record.traits.multiple_results = true;
  record.traits.element_nanoseconds = 30;
  record.doc = "Sorts operands together along a dimension by the first num_keys of them; NaN goes last.";
  record.dtypes = sortable_dtypes;
  record.dtypes.insert(record.dtypes.end(), {DType::complex64, DType::complex128});
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    int64_t keys = attrs.integer("num_keys");
    if (keys < 1 || keys > static_cast<int64_t>(types.size())) {
      throw ValueError(
          concat("sort: num_keys must be between 1 and the number of operands, ", types.size(), ", got ", keys));
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
  record.factors = factors_but("dimension");
  record.splits = sort_splits;
  record.traits.combines = Combines::order;
  record.traits.region = true;
  record.traits.element_nanoseconds = 30;
  record.doc = "Sorts operands together along a dimension by a region that says whether one element precedes another.";
  record.stablehlo = "stablehlo.sort";
  record.dtypes = sortable_dtypes;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    TypeResult result = sort_types("sort_general", types, attrs);
    const Program& comparator = attrs.program("comparator");
    Types inputs = comparator.input_types(), outputs = comparator.output_types();
    bool fits =
        inputs.size() == 2 * types.size() && outputs.size() == 1 && outputs[0].rank() == 0 && is_bool(outputs[0].dtype);
    for (std::size_t i = 0; fits && i < inputs.size(); ++i) {
      fits = inputs[i].rank() == 0 && inputs[i].dtype == types[i / 2].dtype;
    }
    if (!fits) {
      throw TypeError(
          concat("sort_general: the comparator must take two scalars of each operand's dtype and return one "
                 "bool, got ",
                 inputs.size(), " arguments and ", outputs.size(), " results for ", types.size(), " operands"));
    }
    return result;
  };
  record.jvp = [](const JvpArgs& args) {
    // Positions are carried along; the comparator ignores them.
    const Program& comparator = args.attrs.program("comparator");
    Types types = comparator.input_types();
    types.push_back(scalar_type(DType::uint32));
    types.push_back(scalar_type(DType::uint32));
    auto ignore_positions = [&](std::span<const Array> xs) {
      return evaluate_program(comparator, xs.subspan(0, xs.size() - 2));
    };
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

namespace capibara::jax::lax {

int64_t normalised_axis(const std::string& op, int64_t axis, const Array& x, const char* argument) {
  if (axis < -x.ndim() || axis >= x.ndim()) {
    throw ValueError(
        concat(op, ": axis ", axis, " is out of range for ", to_string(x.type()), " (argument '", argument, "')"));
  }
  return axis < 0 ? axis + x.ndim() : axis;
}

Array sort(const Array& x, const SortOptions& options) {
  if (options.num_keys != 1) {
    throw ValueError(concat("sort: num_keys=", options.num_keys, " must equal 1 for a single operand."));
  }
  return sort(Arrays{x}, options)[0];
}

Arrays sort(const Arrays& operands, const SortOptions& options) {
  static const Primitive p = primitive("sort");
  if (operands.empty()) throw TypeError("sort: requires at least one operand");
  if (options.num_keys < 1 || options.num_keys > static_cast<int64_t>(operands.size())) {
    throw ValueError(concat("sort: num_keys=", options.num_keys, " must be between 1 and the number of operands, ",
                            operands.size()));
  }
  int64_t dimension = normalised_axis("sort", options.dimension, operands[0], "dimension");
  return capibara::bind(p, operands,
                        {{"dimension", dimension}, {"is_stable", options.is_stable}, {"num_keys", options.num_keys}});
}

std::pair<Array, Array> sort_key_val(const Array& keys, const Array& values, const SortOptions& options) {
  SortOptions by_first = options;
  by_first.num_keys = 1;
  Arrays sorted = sort(Arrays{keys, values}, by_first);
  return {sorted[0], sorted[1]};
}

}  // namespace capibara::jax::lax
