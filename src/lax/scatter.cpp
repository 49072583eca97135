// scatter and its combining forms: windows of an operand, at positions held in an index array, replaced or combined.
#include "lax/index_map.h"
#include "program/handles.h"
#include "trace/trace.h"

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

const ScatterDimensionNumbers& dims_of(const Attrs& attrs) {
  return attrs.get<ScatterDimensionNumbers>("dimension_numbers");
}

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
    throw TypeError(concat("scatter: Scatter op has window of size ", window_rank, "; doesn't match operand of rank ", x.rank(),
                           ". Got update_window_dims ", tuple(dims.update_window_dims), ", inserted_window_dims ",
                           tuple(dims.inserted_window_dims), ", operand_batching_dims ",
                           tuple(dims.operand_batching_dims), " for ", to_string(x)));
  }
  require_index_map("scatter", "scatter_dims_to_operand_dims", dims.scatter_dims_to_operand_dims, x, indices);
  Ints sizes = window_sizes(dims, x.rank(), updates.shape);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    bool window = !contains(dims.inserted_window_dims, static_cast<int64_t>(i)) &&
                  !contains(dims.operand_batching_dims, static_cast<int64_t>(i));
    if (window && sizes[i] > x.shape[i]) {
      throw TypeError(concat("scatter: Bounds of the window dimensions of updates must not exceed the bounds of the corresponding ",
                             "dimensions of operand; got window ", tuple(sizes), " for ", to_string(x)));
    }
  }
  std::size_t next = 0;
  for (int64_t dim : other_dims(rank, dims.update_window_dims)) {
    if (at(updates.shape, dim) != indices.shape[next++]) {
      throw TypeError(concat("scatter: Bounds of the scatter dimensions of updates must be the same as the bounds of the ",
                             "corresponding dimensions of scatter indices; got updates ",
                             to_string(updates), " and indices ", to_string(indices)));
    }
  }
}

// Operands, indices, updates: as many updates as operands. JAX knows one operand, StableHLO any number.
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
  for (std::size_t i = 0; i < count; ++i) check_one_operand(types[i], indices, types[count + 1 + i], dims_of(attrs));
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
  ScatterDimensionNumbers dims = dims_of(args.attrs);
  std::size_t count = args.inputs.size() / 2;
  Arrays inputs(args.inputs.begin(), args.inputs.end());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i != count || args.mapped(count)) inputs[i] = batch_at(inputs[i], args.dims[i], args.axis.size, 0);
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

// ---- derivatives -------------------------------------------------------------------------------------------------

// One scatter equation taken apart, and the gather that reads what it writes.
struct Window {
  ScatterDimensionNumbers dims;
  lax::ScatterOptions options;
  Ints sizes;

  Window(const Attrs& attrs, const ArrayType& operand, const ArrayType& updates)
      : dims(dims_of(attrs)), sizes(window_sizes(dims, operand.rank(), updates.shape)) {
    options.indices_are_sorted = attrs.boolean("indices_are_sorted");
    options.unique_indices = attrs.boolean("unique_indices");
    options.mode = mode_of(attrs);
  }
  // Zeros stand out of bounds, where the mode has such; without a mode the windows are taken to be in bounds.
  Array read(const Array& x, const Array& indices, std::optional<lax::GatherScatterMode> mode) const {
    lax::GatherOptions gather;
    gather.mode = mode;
    if (mode) gather.fill_value = Array(0);
    return lax::gather(x, indices, inverse_of(dims), sizes, gather);
  }
};

void require_one_operand(const Primitive& primitive, std::size_t inputs, const char* rule) {
  if (inputs != 3) {
    throw NotImplementedError(concat(primitive.name(), ": the ", rule, " rule knows one operand, got ", inputs / 2));
  }
}

// scatter-add and scatter-sub are linear in operand and updates together.
JvpResult linear_scatter_jvp(const JvpArgs& args) {
  Arrays out = capibara::bind(args.primitive, args.primals, args.attrs);
  Array operand = instantiate(args.tangents[0], args.primals[0].type());
  Array updates = instantiate(args.tangents[2], args.primals[2].type());
  return {std::move(out), {bind1(args.primitive, {operand, args.primals[1], updates}, args.attrs)}};
}

Arrays linear_scatter_transpose(const TransposeArgs& args) {
  const Array& ct = args.cotangents[0];
  Arrays out(3);
  if (!ct.defined()) return out;
  if (args.linear(0)) out[0] = ct;
  if (args.linear(2)) {
    Window window(args.attrs, args.types[0], args.types[2]);
    out[2] = window.read(ct, args.inputs[1], window.options.mode);
    if (args.primitive == prim::scatter_sub()) out[2] = lax::neg(out[2]);
  }
  return out;
}

void require_unique_for_mul(const Window& window) {
  if (!window.options.unique_indices) {
    throw NotImplementedError("scatter_mul: gradients are only implemented if unique_indices=True");
  }
}

JvpResult scatter_mul_jvp(const JvpArgs& args) {
  Arrays out = capibara::bind(args.primitive, args.primals, args.attrs);
  const Array &x = args.primals[0], &indices = args.primals[1], &updates = args.primals[2];
  Array tangent;
  if (args.tangents[0].defined()) tangent = bind1(args.primitive, {args.tangents[0], indices, updates}, args.attrs);
  if (args.tangents[2].defined()) {
    Window window(args.attrs, x.type(), updates.type());
    require_unique_for_mul(window);
    Array spread = lax::scatter_add(lax::zeros_like(x), indices, args.tangents[2], window.dims, window.options);
    tangent = add_tangents(tangent, lax::mul(x, spread));
  }
  return {std::move(out), {tangent}};
}

Arrays scatter_mul_transpose(const TransposeArgs& args) {
  const Array& ct = args.cotangents[0];
  Arrays out(3);
  if (!ct.defined()) return out;
  Window window(args.attrs, args.types[0], args.types[2]);
  if (args.linear(0)) out[0] = lax::scatter_mul(ct, args.inputs[1], args.inputs[2], window.dims, window.options);
  if (args.linear(2)) {
    require_unique_for_mul(window);
    out[2] = window.read(lax::mul(ct, args.inputs[0]), args.inputs[1], window.options.mode);
  }
  return out;
}

// Where several values contend for one place, the tangent there is the mean of the tangents of the winners.
JvpResult extremal_jvp(const JvpArgs& args) {
  const Array &x = args.primals[0], &indices = args.primals[1], &updates = args.primals[2];
  Array out = capibara::bind(args.primitive, args.primals, args.attrs)[0];
  Array x_tangent = instantiate(args.tangents[0], x.type());
  Array updates_tangent = instantiate(args.tangents[2], updates.type());
  Window window(args.attrs, x.type(), updates.type());
  // Counted where the values went: mode clip moves windows, the other modes leave them out.
  lax::ScatterOptions counting;
  if (window.options.mode == lax::GatherScatterMode::clip) counting.mode = window.options.mode;
  Array initial = window.read(x, indices, counting.mode);
  Array target = window.read(out, indices, counting.mode);
  Array successful = lax::eq(updates, target);
  Array retained = lax::eq(initial, target);

  Array empty = lax::zeros_like(x);
  Array one_each = lax::full_like(updates, Array(1));
  Array winners = lax::select(successful, one_each, lax::zeros_like(updates));
  Array winner_count =
      window.read(lax::scatter_add(empty, indices, winners, window.dims, counting), indices, counting.mode);
  empty = lax::zeros_like(x);
  one_each = lax::full_like(updates, Array(1));
  Array writer_count =
      window.read(lax::scatter_add(empty, indices, one_each, window.dims, counting), indices, counting.mode);

  Array one = scalar_like(winner_count, 1), minus_one = scalar_like(winner_count, -1);
  Array shared = lax::div(one, lax::add(winner_count, one));
  Array alone = lax::div(one, winner_count);
  Array share = lax::select(retained, shared, alone);
  Array updates_weight = lax::select(successful, share, lax::zeros_like(updates));
  Array kept_share = lax::div(one, lax::add(winner_count, one));
  kept_share = lax::select(retained, kept_share, lax::zeros_like(winner_count));
  Array operand_weight = lax::div(lax::add(minus_one, kept_share), writer_count);

  Array target_tangent = window.read(x_tangent, indices, counting.mode);
  Array from_operand = lax::mul(target_tangent, operand_weight);
  Array change = lax::add(from_operand, lax::mul(updates_tangent, updates_weight));
  return {{out}, {lax::scatter_add(x_tangent, indices, change, window.dims, window.options)}};
}

JvpResult scatter_jvp(const JvpArgs& args) {
  require_one_operand(args.primitive, args.primals.size(), "jvp");
  if (!args.attrs["update_jaxpr"].is_none()) throw NotImplementedError("scatter_apply: jvp is not implemented");
  const Array &x = args.primals[0], &indices = args.primals[1], &updates = args.primals[2];
  if (!args.tangents[0].defined() && !args.tangents[2].defined()) {
    return {capibara::bind(args.primitive, args.primals, args.attrs), {Array()}};
  }
  Array x_tangent = instantiate(args.tangents[0], x.type());
  Array updates_tangent = instantiate(args.tangents[2], updates.type());
  Window window(args.attrs, x.type(), updates.type());
  if (window.options.unique_indices) {
    Array out = capibara::bind(args.primitive, args.primals, args.attrs)[0];
    return {{out}, {bind1(args.primitive, {x_tangent, indices, updates_tangent}, args.attrs)}};
  }
  // Which of several updates of one place wins is left open. So each window gets a positive number, the numbers are
  // scattered and read back, and only the winners take part in a scatter-add of values and of tangents.
  Shape id_shape = updates.shape();
  for (int64_t dim : window.dims.update_window_dims) id_shape[static_cast<std::size_t>(dim)] = 1;
  int64_t id_count = element_count(id_shape);
  DType id_dtype = id_count > UINT32_MAX ? DType::uint64 : DType::uint32;
  Array ids = lax::reshape(lax::iota(id_dtype, id_count), id_shape);
  ids = lax::add(ids, lax::full(updates.shape(), Array(1), id_dtype));
  Array scattered = lax::scatter(lax::full(x.shape(), Array(0), id_dtype), indices, ids, window.dims, window.options);
  Array read_back = window.read(scattered, indices, std::nullopt);

  auto masked = [](const Array& mask, const Array& value) { return lax::select(mask, value, lax::zeros_like(value)); };
  auto untouched = [&] { return lax::eq(scattered, lax::zeros_like(scattered)); };
  auto won = [&] { return lax::eq(ids, read_back); };
  Array kept = masked(untouched(), x);
  Array written = masked(won(), updates);
  Array kept_tangent = masked(untouched(), x_tangent);
  Array written_tangent = masked(won(), updates_tangent);
  Array out = lax::scatter_add(kept, indices, written, window.dims, window.options);
  return {{out}, {lax::scatter_add(kept_tangent, indices, written_tangent, window.dims, window.options)}};
}

Arrays scatter_transpose(const TransposeArgs& args) {
  require_one_operand(args.primitive, args.inputs.size(), "transpose");
  const Array& ct = args.cotangents[0];
  Arrays out(3);
  if (!ct.defined()) return out;
  Window window(args.attrs, args.types[0], args.types[2]);
  if (!window.options.unique_indices) {
    throw NotImplementedError("scatter: transpose is only implemented where unique_indices=True");
  }
  if (args.linear(0)) {  // what was overwritten did not matter
    Array zeros = lax::zeros(sample_type(ct.dtype(), args.types[2].shape));
    out[0] = lax::scatter(ct, args.inputs[1], zeros, window.dims, window.options);
  }
  if (args.linear(2)) out[2] = window.read(ct, args.inputs[1], window.options.mode);
  return out;
}

// ---- records -----------------------------------------------------------------------------------------------------

// The form StableHLO has: a region always, indices out of bounds dropped.
Arrays lower_to_scatter(std::span<const Array> in, const Attrs& attrs) {
  static const Primitive scatter = primitive("scatter");
  std::size_t count = in.size() / 2;
  Arrays inputs(in.begin(), in.end());
  if (mode_of(attrs) == lax::GatherScatterMode::clip) {
    const ScatterDimensionNumbers& dims = dims_of(attrs);
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
    // Products have derivatives only where no two updates meet.
    if (op != "mul") samples.push_back(sample({3, 2}, {4, 1}, {4, 2}, {{1}, {0}, {0}, {}, {}}, "fill_or_drop", false));
    return samples;
  };
}

PrimitiveRecord scatter_record(const std::string& name, const std::string& op, const char* doc,
                               std::optional<Monoid> monoid, JvpRule jvp, TransposeRule transpose) {
  PrimitiveRecord r;
  r.name = name;
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
