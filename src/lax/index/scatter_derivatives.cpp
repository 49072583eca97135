// The derivatives of scatter and of its combining forms.
#include "lax/index/scatter.h"

#include "lax/shape/shape.h"
#include "program/ir/handles.h"

namespace capibara {

namespace lax = jax::lax;

const ScatterDimensionNumbers& scatter_dims(const Attrs& attrs) {
  return attrs.get<ScatterDimensionNumbers>("dimension_numbers");
}

namespace {

// A decomposed scatter equation, and the gather that reads what it writes.
struct ScatterWindow {
  ScatterDimensionNumbers dims;
  lax::ScatterOptions options;
  Ints sizes;

  ScatterWindow(const Attrs& attrs, const ArrayType& operand, const ArrayType& updates)
      : dims(scatter_dims(attrs)), sizes(window_sizes(dims, operand.rank(), updates.shape)) {
    options.indices_are_sorted = attrs.boolean("indices_are_sorted");
    options.unique_indices = attrs.boolean("unique_indices");
    options.mode = mode_of(attrs);
  }
  // Out of bounds yields zeros, if the mode allows it; without a mode the windows are assumed in bounds.
  Array read(const Array& x, const Array& indices, std::optional<lax::GatherScatterMode> mode) const {
    lax::GatherOptions gather;
    gather.mode = mode;
    if (mode) gather.fill_value = Array(0);
    return lax::gather(x, indices, inverse_of(dims), sizes, gather);
  }
};

void require_one_operand(const Primitive& primitive, std::size_t inputs, const char* rule) {
  if (inputs != 3) {
    throw NotImplementedError(concat(primitive.name(), ": the ", rule, " rule takes one operand, got ", inputs / 2));
  }
}

void require_unique_for_mul(const ScatterWindow& window) {
  if (!window.options.unique_indices) {
    throw NotImplementedError("scatter_mul: gradients are only implemented if unique_indices=True");
  }
}

}  // namespace

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
    ScatterWindow window(args.attrs, args.types[0], args.types[2]);
    out[2] = window.read(ct, args.inputs[1], window.options.mode);
    if (args.primitive == prim::scatter_sub()) out[2] = lax::neg(out[2]);
  }
  return out;
}

JvpResult scatter_mul_jvp(const JvpArgs& args) {
  Arrays out = capibara::bind(args.primitive, args.primals, args.attrs);
  const Array &x = args.primals[0], &indices = args.primals[1], &updates = args.primals[2];
  Array tangent;
  if (args.tangents[0].defined()) tangent = bind1(args.primitive, {args.tangents[0], indices, updates}, args.attrs);
  if (args.tangents[2].defined()) {
    ScatterWindow window(args.attrs, x.type(), updates.type());
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
  ScatterWindow window(args.attrs, args.types[0], args.types[2]);
  if (args.linear(0)) out[0] = lax::scatter_mul(ct, args.inputs[1], args.inputs[2], window.dims, window.options);
  if (args.linear(2)) {
    require_unique_for_mul(window);
    out[2] = window.read(lax::mul(ct, args.inputs[0]), args.inputs[1], window.options.mode);
  }
  return out;
}

JvpResult extremal_jvp(const JvpArgs& args) {
  const Array &x = args.primals[0], &indices = args.primals[1], &updates = args.primals[2];
  Array out = capibara::bind(args.primitive, args.primals, args.attrs)[0];
  Array x_tangent = instantiate(args.tangents[0], x.type());
  Array updates_tangent = instantiate(args.tangents[2], updates.type());
  ScatterWindow window(args.attrs, x.type(), updates.type());
  // Counted where the values were written: mode clip moves windows, the other modes drop them.
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
  ScatterWindow window(args.attrs, x.type(), updates.type());
  if (window.options.unique_indices) {
    Array out = capibara::bind(args.primitive, args.primals, args.attrs)[0];
    return {{out}, {bind1(args.primitive, {x_tangent, indices, updates_tangent}, args.attrs)}};
  }
  // Which of several updates to one element wins is unspecified. So each window gets a positive number, the numbers are
  // scattered and read back, and only the winners contribute to a scatter-add of values and of tangents.
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
  ScatterWindow window(args.attrs, args.types[0], args.types[2]);
  if (!window.options.unique_indices) {
    throw NotImplementedError("scatter: transpose is only implemented where unique_indices=True");
  }
  if (args.linear(0)) {  // the overwritten values did not matter
    Array zeros = lax::zeros(cotangent_type(args.types[2]).strong());
    out[0] = lax::scatter(ct, args.inputs[1], zeros, window.dims, window.options);
  }
  if (args.linear(2)) out[2] = window.read(ct, args.inputs[1], window.options.mode);
  return out;
}

}  // namespace capibara
