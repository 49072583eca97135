// scatter and its combining forms: windows of an operand, at positions held in an index array, replaced or combined.
#include "lax/index/scatter.h"
#include "lax/index/index_map.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/splits.h"
#include "program/ir/handles.h"
#include "program/trace/stage.h"
#include "program/trace/trace.h"

#include <map>
#include <mutex>

namespace capibara {

namespace lax = jax::lax;

Program update_region(const std::string& op, DType dtype) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, DType>, Program> cache;
  {
    std::lock_guard lock(mutex);
    auto found = cache.find({op, dtype});
    if (found != cache.end()) return found->second;
  }
  FlatFunction function = [&](std::span<const Array> in) -> Arrays {
    if (op == "add") return {lax::add(in[0], in[1])};
    if (op == "sub") return {lax::sub(in[0], in[1])};
    if (op == "mul") return {lax::mul(in[0], in[1])};
    if (op == "min") return {lax::min(in[0], in[1])};
    if (op == "max") return {lax::max(in[0], in[1])};
    return {in[1]};
  };
  ArrayType types[] = {sample_type(dtype, {}), sample_type(dtype, {})};
  Program region = stage(function, types, "").program;
  std::lock_guard lock(mutex);
  return cache.try_emplace({op, dtype}, region).first->second;  // the first one wins: equal regions are one object
}

namespace {

// ---- types -------------------------------------------------------------------------------------------------------

void check_one_operand(const ArrayType& x, const ArrayType& indices, const ArrayType& updates,
                       const ScatterDimensionNumbers& dims) {
  require_same_dtypes("scatter", std::vector<ArrayType>{x, updates});
  int64_t rank = indices.rank() - 1 + static_cast<int64_t>(dims.update_window_dims.size());
  if (updates.rank() != rank) {
    throw TypeError(concat("scatter: Updates tensor must be of rank ", rank, "; got ", updates.rank(), "."));
  }
  require_sorted_unique("scatter", "update_window_dims", dims.update_window_dims, rank);
  require_sorted_unique("scatter", "inserted_window_dims", dims.inserted_window_dims, x.rank());
  require_sorted_unique("scatter", "operand_batching_dims", dims.operand_batching_dims, x.rank());
  require_disjoint("scatter", "inserted_window_dims", dims.inserted_window_dims, "operand_batching_dims",
                   dims.operand_batching_dims);
  require_disjoint("scatter", "scatter_dims_to_operand_dims", dims.scatter_dims_to_operand_dims,
                   "operand_batching_dims", dims.operand_batching_dims);
  require_batching_dims("scatter", x, indices, dims.operand_batching_dims, dims.scatter_indices_batching_dims);
  std::size_t window_rank =
      dims.update_window_dims.size() + dims.inserted_window_dims.size() + dims.operand_batching_dims.size();
  if (window_rank != x.shape.size()) {
    throw TypeError(concat("scatter: Scatter op has window of size ", window_rank, "; doesn't match operand of rank ",
                           x.rank(), ". Got update_window_dims ", tuple(dims.update_window_dims),
                           ", inserted_window_dims ", tuple(dims.inserted_window_dims), ", operand_batching_dims ",
                           tuple(dims.operand_batching_dims), " for ", to_string(x)));
  }
  require_index_map("scatter", "scatter_dims_to_operand_dims", dims.scatter_dims_to_operand_dims, x, indices);
  Ints sizes = window_sizes(dims, x.rank(), updates.shape);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    bool window = !contains(dims.inserted_window_dims, static_cast<int64_t>(i)) &&
                  !contains(dims.operand_batching_dims, static_cast<int64_t>(i));
    if (window && sizes[i] > x.shape[i]) {
      throw TypeError(
          concat("scatter: Bounds of the window dimensions of updates must not exceed the bounds of the corresponding ",
                 "dimensions of operand; got window ", tuple(sizes), " for ", to_string(x)));
    }
  }
  std::size_t next = 0;
  for (int64_t dim : other_dims(rank, dims.update_window_dims)) {
    if (at(updates.shape, dim) != indices.shape[next++]) {
      throw TypeError(
          concat("scatter: Bounds of the scatter dimensions of updates must be the same as the bounds of the ",
                 "corresponding dimensions of scatter indices; got updates ", to_string(updates), " and indices ",
                 to_string(indices)));
    }
  }
}

// Operands, indices, updates: as many updates as operands. JAX has one operand, StableHLO any number.
TypeResult scatter_type(std::span<const ArrayType> types, const Attrs& attrs) {
  if (types.size() < 3 || types.size() % 2 == 0) {
    throw TypeError(concat("scatter: expected operands, indices and as many updates, got ", types.size(), " inputs"));
  }
  std::size_t count = types.size() / 2;
  const ArrayType& indices = types[count];
  mode_of(attrs);
  if (!is_integer(indices.dtype)) {
    throw ValueError(concat("scatter: indices must have an integer type, got ", to_string(indices)));
  }
  if (indices.rank() == 0) throw TypeError("scatter: indices must have rank 1 or more, got a scalar");
  for (std::size_t i = 0; i < count; ++i)
    check_one_operand(types[i], indices, types[count + 1 + i], scatter_dims(attrs));
  bool region = !attrs["update_jaxpr"].is_none();
  if (region) {
    const Program& update = attrs.program("update_jaxpr");
    if (update.invars().size() != 2 * count || update.outputs().size() != count) {
      throw TypeError(concat("scatter: update_jaxpr must take ", 2 * count, " scalars and return ", count));
    }
  } else if (count != 1) {
    throw TypeError("scatter: several operands need an update_jaxpr");
  }
  return Types(types.begin(), types.begin() + static_cast<std::ptrdiff_t>(count));
}

// ---- batching ----------------------------------------------------------------------------------------------------

BatchResult scatter_batch(const BatchArgs& args) {
  ScatterDimensionNumbers dims = scatter_dims(args.attrs);
  std::size_t count = args.inputs.size() / 2;
  Arrays inputs(args.inputs.begin(), args.inputs.end());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i != count || args.mapped(count)) inputs[i] = batch_at(inputs[i], args.dims[i], args.axis, 0);
  }
  dims.inserted_window_dims = plus(dims.inserted_window_dims, 1);
  dims.update_window_dims = plus(dims.update_window_dims, 1);
  dims.operand_batching_dims = plus(dims.operand_batching_dims, 1);
  dims.scatter_dims_to_operand_dims = plus(dims.scatter_dims_to_operand_dims, 1);
  if (args.mapped(count)) {
    dims.operand_batching_dims = prepended(0, dims.operand_batching_dims);
    dims.scatter_indices_batching_dims = prepended(0, plus(dims.scatter_indices_batching_dims, 1));
  } else {  // the mapped axis is a whole dimension of every window
    dims.update_window_dims = prepended(0, dims.update_window_dims);
  }
  Arrays out = capibara::bind(args.primitive, inputs, args.attrs.with("dimension_numbers", dims));
  std::vector<int64_t> out_dims(out.size(), 0);
  return {std::move(out), std::move(out_dims)};
}

// ---- records -----------------------------------------------------------------------------------------------------

// StableHLO's form: a region always, indices out of bounds dropped.
Arrays lower_to_scatter(std::span<const Array> in, const Attrs& attrs) {
  static const Primitive scatter = primitive("scatter");
  std::size_t count = in.size() / 2;
  Arrays inputs(in.begin(), in.end());
  if (mode_of(attrs) == lax::GatherScatterMode::clip) {
    const ScatterDimensionNumbers& dims = scatter_dims(attrs);
    Ints sizes = window_sizes(dims, in[0].ndim(), in[count + 1].shape());
    Ints upper;
    for (int64_t dim : dims.scatter_dims_to_operand_dims) upper.push_back(in[0].shape(dim) - at(sizes, dim));
    inputs[count] = clamped_indices(in[count], upper);
  }
  Attrs lowered = attrs.with("mode", "fill_or_drop");
  if (attrs["update_jaxpr"].is_none()) lowered = lowered.with("update_jaxpr", update_region("replace", in[0].dtype()));
  return capibara::bind(scatter, inputs, lowered);
}

Arrays lower_scatter(std::span<const Array> in, const Attrs& attrs) {
  bool region = !attrs["update_jaxpr"].is_none();
  if (region && mode_of(attrs) == lax::GatherScatterMode::fill_or_drop) return {};
  // Keys have no scalar program of their own: they are lowered word by word first.
  if (!region && is_key(in[0].dtype())) return {};
  return lower_to_scatter(in, attrs);
}

SampleMaker scatter_samples(std::string op) {
  return [op](DType d) -> std::vector<Sample> {
    auto sample = [&](Shape x, Shape indices, Shape updates, ScatterDimensionNumbers dims, const char* mode,
                      bool unique = true) {
      return Sample{{sample_type(d, x), sample_type(DType::int32, indices), sample_type(d, updates)},
                    {{"dimension_numbers", dims},
                     {"indices_are_sorted", false},
                     {"unique_indices", unique},
                     {"mode", mode},
                     {"update_jaxpr", op.empty() ? Attr() : Attr(update_region(op, d))},
                     {"update_consts", Attr::List{}}},
                    -2,
                    2,
                    true};
    };
    std::vector<Sample> samples{sample({4}, {1}, {}, {{}, {0}, {0}, {}, {}}, "fill_or_drop"),
                                sample({4, 3}, {1}, {2, 3}, {{0, 1}, {}, {0}, {}, {}}, "clip"),
                                sample({3, 4, 2}, {2}, {2, 2}, {{0, 1}, {0}, {0, 1}, {}, {}}, "fill_or_drop"),
                                sample({2, 4}, {2, 1, 1}, {2, 1}, {{}, {1}, {1}, {0}, {0}}, "fill_or_drop"),
                                sample({3}, {0, 1}, {0}, {{}, {0}, {0}, {}, {}}, "fill_or_drop")};
    // Products have derivatives only where updates do not overlap.
    if (op != "mul") samples.push_back(sample({3, 2}, {4, 1}, {4, 2}, {{1}, {0}, {0}, {}, {}}, "fill_or_drop", false));
    return samples;
  };
}

PrimitiveRecord scatter_record(const std::string& name, const std::string& op, const char* doc,
                               std::optional<Monoid> monoid, JvpRule jvp, TransposeRule transpose) {
  PrimitiveRecord r;
  r.name = name;
  r.factors = scatter_factors;
  r.splits = scatter_splits;
  r.doc = doc;
  r.traits.combines = Combines::updates;
  r.traits.monoid = monoid;
  r.traits.region = true;
  r.traits.element_nanoseconds = 3;
  r.dtypes = op.empty() ? array_dtypes() : number_dtypes();
  r.type = scatter_type;
  r.jvp = std::move(jvp);
  r.transpose = std::move(transpose);
  r.batch = scatter_batch;
  r.lower = op.empty() ? lower_scatter : lower_to_scatter;
  if (op.empty()) r.stablehlo = "stablehlo.scatter";
  r.samples = scatter_samples(op);
  r.print_attr = print_index_attribute;
  return r;
}

}  // namespace

Family scatter_records() {
  Family family;
  family.push_back(scatter_record("scatter", "", "Replaces windows of an operand, or applies a region to them.", {},
                                  scatter_jvp, scatter_transpose));
  family.push_back(scatter_record("scatter-add", "add", "Adds updates to windows of an operand; repeats accumulate.",
                                  Monoid::add, linear_scatter_jvp, linear_scatter_transpose));
  family.push_back(scatter_record("scatter-sub", "sub",
                                  "Subtracts updates from windows of an operand; repeats accumulate.", {},
                                  linear_scatter_jvp, linear_scatter_transpose));
  family.push_back(scatter_record("scatter-mul", "mul",
                                  "Multiplies windows of an operand by updates; repeats accumulate.", Monoid::mul,
                                  scatter_mul_jvp, scatter_mul_transpose));
  family.push_back(scatter_record("scatter-min", "min", "The lesser of windows of an operand and updates.", Monoid::min,
                                  extremal_jvp, nullptr));
  family.push_back(scatter_record("scatter-max", "max", "The greater of windows of an operand and updates.",
                                  Monoid::max, extremal_jvp, nullptr));
  return family;
}

}  // namespace capibara

namespace capibara::jax::lax {

namespace {

Array bind_scatter(const Primitive& p, Attr region, const Array& x, const Array& indices, const Array& updates,
                   const ScatterDimensionNumbers& dims, const ScatterOptions& options) {
  return bind1(p, {x, indices, updates},
               {{"dimension_numbers", dims},
                {"indices_are_sorted", options.indices_are_sorted},
                {"unique_indices", options.unique_indices},
                {"mode", mode_name(options.mode.value_or(GatherScatterMode::fill_or_drop))},
                {"update_jaxpr", std::move(region)},
                {"update_consts", Attr::List{}}});
}

}  // namespace

Array scatter(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
              const ScatterOptions& options) {
  static const Primitive p = primitive("scatter");
  return bind_scatter(p, Attr(), x, indices, updates, dims, options);
}
Array scatter_add(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options) {
  static const Primitive p = primitive("scatter-add");
  return bind_scatter(p, update_region("add", x.dtype()), x, indices, updates, dims, options);
}
Array scatter_sub(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options) {
  static const Primitive p = primitive("scatter-sub");
  return bind_scatter(p, update_region("sub", x.dtype()), x, indices, updates, dims, options);
}
Array scatter_mul(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options) {
  static const Primitive p = primitive("scatter-mul");
  return bind_scatter(p, update_region("mul", x.dtype()), x, indices, updates, dims, options);
}
Array scatter_min(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options) {
  static const Primitive p = primitive("scatter-min");
  return bind_scatter(p, update_region("min", x.dtype()), x, indices, updates, dims, options);
}
Array scatter_max(const Array& x, const Array& indices, const Array& updates, const ScatterDimensionNumbers& dims,
                  const ScatterOptions& options) {
  static const Primitive p = primitive("scatter-max");
  return bind_scatter(p, update_region("max", x.dtype()), x, indices, updates, dims, options);
}

Array scatter_apply(const Array& x, const Array& indices, const std::function<Array(const Array&)>& function,
                    const ScatterDimensionNumbers& dims, const Shape& update_shape, const ScatterOptions& options) {
  static const Primitive p = primitive("scatter");
  Array unused = full(update_shape, Array(0), x.dtype());
  ArrayType scalar = sample_type(x.dtype(), {});
  ArrayType types[] = {scalar, scalar};
  Staged staged = stage([&](std::span<const Array> in) -> Arrays { return {function(in[0])}; }, types, "scatter_apply");
  if (!staged.captured.empty()) {
    throw NotImplementedError("scatter_apply: the function must not use traced arrays from outside");
  }
  return bind_scatter(p, staged.program, x, indices, unused, dims, options);
}

}  // namespace capibara::jax::lax
