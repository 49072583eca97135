// The state space dual of Mamba-2 and its reverse derivative: matmuls inside chunks, a scan over chunks.
//
// Within a chunk the output is (C B^T * decay) x, a causal matrix times the inputs, plus the contribution of the
// state at its start, so the work is in matmuls. Only the states at the starts of chunks are saved, as [state, dim]. A
// NaN or infinity may spread over its whole chunk. Gradients of A, D and dt_bias are per batch element, summed outside.
#include <capibara/kernels/recurrence.h>

#include <limits>

#include "kernels/recurrence_records.h"
#include "lax/families.h"

namespace capibara::kernels {
namespace {
namespace lax = jax::lax;

struct Sizes {
  int64_t batch, length, heads, dim, groups, state, chunk, chunks;
  DType narrow, wide;

  Sizes(const Shape& x, const Shape& B, DType dtype, int64_t chunk_size)
      : batch(x[0]),
        length(x[1]),
        heads(x[2]),
        dim(x[3]),
        groups(B[2]),
        state(B[3]),
        chunk(chunk_size),
        chunks((length + chunk - 1) / chunk),
        narrow(dtype),
        wide(wide_dtype(dtype)) {}

  int64_t repeats() const { return groups ? heads / groups : 0; }  // heads of a group
  Shape inputs() const { return {batch, length, heads, dim}; }
  Shape columns() const { return {batch, length, groups, state}; }
  Shape steps() const { return {batch, length, heads}; }
  Shape last() const { return {batch, heads, dim, state}; }
  Shape starts() const { return {batch, chunks, heads, state, dim}; }
  bool is_empty() const { return batch * length * heads * dim == 0; }
};

// The operands of both primitives.
struct Operands {
  Array x, dt, A, B, C, D, bias, initial, z, reset;
  Sizes sizes;
  bool has_softplus;

  Operands(std::span<const Array> in, const Attrs& attrs)
      : x(in[0]),
        dt(in[1]),
        A(in[2]),
        B(in[3]),
        C(in[4]),
        D(in[5]),
        bias(in[6]),
        initial(in[7]),
        sizes(x.shape(), B.shape(), x.dtype(), attrs.integer("chunk_size")),
        has_softplus(attrs.boolean("dt_softplus")) {
    const bool gated = attrs.boolean("gated");
    if (gated) z = in[8];
    if (attrs.boolean("resets")) reset = in[gated ? 9 : 8];
  }

  Array raw_step() const { return dt.astype(sizes.wide) + bias; }
  Array step(const Array& raw) const { return has_softplus ? softplus(raw) : raw; }
  Array decay() const { return lax::reshape(A, {sizes.groups, sizes.repeats()}); }
  Array skip() const { return lax::expand_dims(D, {1}); }  // [heads, 1]

  // [batch, length, heads, ...] -> [chunks, batch, group, repeat, chunk, ...]
  Array by_head(const Array& array) const {
    const Array parts = in_chunks(array.astype(sizes.wide), sizes.chunk);
    Shape shape = parts.shape();
    shape[3] = sizes.repeats();
    shape.insert(shape.begin() + 3, sizes.groups);
    return move_axis(lax::reshape(parts, shape), 2, 4);
  }
  // The inverse, in at least float32.
  Array from_heads(const Array& array) const {
    const Array parts = move_axis(array, 4, 2);
    return from_chunks(lax::collapse(parts, 3, 5), sizes.length);
  }
  Array by_group(const Array& array) const { return move_axis(in_chunks(array.astype(sizes.wide), sizes.chunk), 2, 3); }
  Array from_groups(const Array& array) const { return from_chunks(move_axis(array, 3, 2), sizes.length); }
  // [batch, heads, dim, state] -> [batch, group, repeat, dim, state]
  Array grouped(const Array& state) const {
    return lax::reshape(state, {sizes.batch, sizes.groups, sizes.repeats(), sizes.dim, sizes.state});
  }
  Arrays sliced(const Array& steps) const {
    Arrays xs = {by_head(x), by_head(steps), by_group(B), by_group(C)};
    if (reset.defined()) xs.push_back(in_chunks(reset, sizes.chunk));
    return xs;
  }
};

Array contract(const Array& x, const Array& y, Ints x_axes, Ints y_axes, const Ints& batch) {
  return lax::dot_general(x, y, {std::move(x_axes), std::move(y_axes), batch, batch}, {.precision = "highest"});
}

// [..., dim, state] -> [..., state, dim] and vice versa.
Array turned(const Array& states) { return move_axis(states, states.ndim() - 1, states.ndim() - 2); }

Array masked(const Array& keep, const Array& x) {
  return lax::select(broadcast_to("ssd", keep, x.shape()), x, lax::zeros_like(x));
}

// One chunk; q indexes its steps, r the heads of a group.
struct Chunk {
  Array x, step, B, C;              // [b, g, r, q, dim], [b, g, r, q], [b, g, q, state]
  Array reset;                      // [b, q]
  Array driven;                     // step * x
  Array decay, scores;              // [b, g, r, q, q] from step to step, [b, g, q, q]
  Array from_start, to_end, whole;  // [b, g, r, q, 1] twice, [b, g, r, 1, 1]

  Chunk(std::span<const Array> xs, const Array& A) : x(xs[0]), step(xs[1]), B(xs[2]), C(xs[3]) {
    if (xs.size() > 4) reset = xs[4];
    const int64_t q = x.shape(3);
    driven = x * lax::expand_dims(step, {4});
    const Array sums = lax::cumsum(step * lax::expand_dims(A, {2}), {.axis = 3});
    const Array last = lax::slice_in_dim(sums, q - 1, q, 1, 3), column = lax::expand_dims(sums, {4});
    const Array difference = column - lax::expand_dims(sums, {3});
    const Array target = lax::broadcasted_iota(DType::int32, {q, q}, 0);
    Array visible = lax::ge(target, lax::broadcasted_iota(DType::int32, {q, q}, 1));
    from_start = lax::exp(column);
    to_end = lax::exp(lax::expand_dims(last - sums, {4}));
    whole = lax::exp(lax::expand_dims(last, {4}));
    if (reset.defined()) {
      const Array counts = lax::cumsum(reset.astype(DType::int32), {.axis = 1});  // resets up to each step
      const Array total = lax::slice_in_dim(counts, q - 1, q, 1, 1), zero = scalar_of(DType::int32, 0);
      const Array rows = lax::expand_dims(counts, {2});
      visible = visible & (rows == lax::expand_dims(counts, {1}));
      visible = lax::expand_dims(visible, {1, 2});
      from_start = masked(lax::expand_dims(counts == zero, {1, 2, 4}), from_start);
      to_end = masked(lax::expand_dims(counts == total, {1, 2, 4}), to_end);
      whole = masked(lax::expand_dims(total == zero, {1, 2, 4}), whole);
    }
    const Array never = lax::full_like(difference, Array(-std::numeric_limits<double>::infinity()));
    decay = lax::exp(lax::select(broadcast_to("ssd", visible, difference.shape()), difference, never));
    scores = contract(C, B, {3}, {3}, {0, 1});
  }

  Array weights() const { return lax::expand_dims(scores, {2}) * decay; }
  Array output(const Array& weights, const Array& start) const {
    const Array inside = contract(weights, driven, {4}, {3}, {0, 1, 2});
    const Array carried = lax::transpose(contract(C, start, {3}, {4}, {0, 1}), {0, 1, 3, 2, 4});
    return inside + carried * from_start;
  }
  Array next(const Array& start) const {
    const Array kept = whole * start;
    return kept + contract(driven * to_end, B, {3}, {2}, {0, 1});
  }
};

// ... -> (y, last state, states at the starts of chunks)
Arrays compose(std::span<const Array> in, const Attrs& attrs) {
  const Operands o(in, attrs);
  const Sizes& s = o.sizes;
  if (s.is_empty()) {
    return {lax::zeros_like(o.x), o.initial, lax::zeros(o.initial.type().with_shape(s.starts()).strong())};
  }
  const Array A = o.decay(), steps = o.step(o.raw_step());
  const Arrays out = lax::detail::scan_flat(
      [&](std::span<const Array> all) {
        const Chunk chunk(all.subspan(1), A);
        const Array y = chunk.output(chunk.weights(), all[0]);
        return Arrays{chunk.next(all[0]), y, all[0]};
      },
      {o.grouped(o.initial)}, o.sliced(steps), std::nullopt, false, 1);
  const Array skipped = o.skip() * o.x.astype(s.wide);
  Array y = o.from_heads(out[1]) + skipped;
  if (o.z.defined()) {
    const Array z = o.z.astype(s.wide);
    y = y * (z * lax::logistic(z));
  }
  const Array last = lax::reshape(out[0], s.last()), starts = turned(move_axis(out[2], 0, 1));
  return {y.astype(s.narrow), last, lax::reshape(starts, s.starts())};
}

// One chunk of the derivative: (gradient of the state after it, sum of dA, slices) -> the same before it, and slices.
//
// The gradient of the sums of log decays needs no matrix of its own: a step receives dy . y and sends
// x . dx, each summed over all pairs of which it is part.
Arrays pull_chunk_back(std::span<const Array> all, const Array& A) {
  const Array &end = all[0], &dy = all[all.size() - 2], start = turned(all.back());
  const Chunk chunk(all.subspan(2, all.size() - 4), A);
  const Array weights = chunk.weights(), y = chunk.output(weights, start);
  const Array through_state = lax::transpose(contract(chunk.B, end, {3}, {4}, {0, 1}), {0, 1, 3, 2, 4});
  const Array to_state = chunk.driven * chunk.to_end, sent = through_state * chunk.to_end;
  const Array ddriven = contract(weights, dy, {3}, {3}, {0, 1, 2}) + sent;
  const Array dweights = contract(dy, chunk.driven, {4}, {4}, {0, 1, 2});
  const Array dscores = sum_over(dweights * chunk.decay, {2}), faded = dy * chunk.from_start;
  const Array dC_inside = contract(dscores, chunk.B, {3}, {2}, {0, 1}),
              dC = dC_inside + contract(faded, start, {2, 4}, {2, 3}, {0, 1});
  const Array dB_inside = contract(dscores, chunk.C, {2}, {2}, {0, 1}),
              dB = dB_inside + contract(to_state, end, {2, 4}, {2, 3}, {0, 1});
  const Array kept = chunk.whole * end, carried = kept + contract(faded, chunk.C, {3}, {2}, {0, 1});
  const Array received = sum_over(dy * y, {4}), given = sum_over(chunk.driven * ddriven, {4});
  const Array from_before = sum_over(kept * start, {3, 4}), from_inside = sum_over(to_state * through_state, {3, 4});
  const Array at_end = lax::expand_dims(from_before + from_inside, {3}), difference = received - given;
  const Array back = lax::cumsum(difference, {.axis = 3, .reverse = true});
  Array dlog = back + at_end;
  if (chunk.reset.defined()) dlog = masked(lax::expand_dims(lax::bitwise_not(chunk.reset), {1, 2}), dlog);
  const Array dA = all[1] + sum_over(dlog * chunk.step, {3});
  const Array through_decay = dlog * lax::expand_dims(A, {2}), dstep = sum_over(ddriven * chunk.x, {4}) + through_decay;
  return {carried, dA, ddriven * lax::expand_dims(chunk.step, {4}), dstep, dB, dC, y};
}

// (dy, dlast, states, the operands) -> (dx, ddt, dA, dB, dC, dD, dbias, dinitial, dz if gated); those of A, D and
// the bias have a leading batch.
Arrays compose_grad(std::span<const Array> in, const Attrs& attrs) {
  const Operands o(in.subspan(3), attrs);
  const Sizes& s = o.sizes;
  Arrays results;
  if (s.is_empty()) {
    const Array vector = lax::zeros(o.A.type().with_shape({s.batch, s.heads}).strong());
    const Array dx = lax::zeros_like(o.x), ddt = lax::zeros_like(o.dt), dB = lax::zeros_like(o.B);
    results = {dx, ddt, vector, dB, lax::zeros_like(o.C), vector, vector, in[1]};
    if (o.z.defined()) results.push_back(lax::zeros_like(o.z));
    return results;
  }
  const Array A = o.decay(), raw = o.raw_step(), steps = o.step(raw), x = o.x.astype(s.wide);
  const GateBack gate(in[0].astype(s.wide), o.z);
  const Array& dy = gate.dy;
  Arrays xs = o.sliced(steps);
  xs.push_back(o.by_head(dy));
  xs.push_back(move_axis(lax::reshape(in[2], {s.batch, s.chunks, s.groups, s.repeats(), s.state, s.dim}), 1, 0));
  const Array zero = lax::zeros(o.A.type().with_shape({s.batch, s.groups, s.repeats()}).strong());
  const Arrays out = lax::detail::scan_flat([&](std::span<const Array> all) { return pull_chunk_back(all, A); },
                                            {o.grouped(in[1]), zero}, xs, std::nullopt, true, 1);
  const Array skipped = o.skip() * dy, dx = o.from_heads(out[2]) + skipped;
  Array ddt = o.from_heads(out[3]);
  if (o.has_softplus) ddt = ddt * lax::logistic(raw);
  const Array dA = lax::reshape(out[1], {s.batch, s.heads}), dinitial = lax::reshape(out[0], s.last());
  const Array dB = o.from_groups(out[4]).astype(s.narrow), dC = o.from_groups(out[5]).astype(s.narrow);
  const Array dD = sum_over(dy * x, {1, 3}), dbias = sum_over(ddt, {1});
  results = {dx.astype(s.narrow), ddt.astype(s.narrow), dA, dB, dC, dD, dbias, dinitial};
  if (o.z.defined()) {
    const Array passed = o.skip() * x, y = o.from_heads(out[6]) + passed;
    results.push_back((gate.derivative * y).astype(s.narrow));
  }
  return results;
}

// ---- types ------------------------------------------------------------------------------------------------------

// Checks the operands starting at `first`.
Sizes sizes_of(const char* op, std::span<const ArrayType> types, std::size_t first, const Attrs& attrs) {
  const bool gated = attrs.boolean("gated"), resets = attrs.boolean("resets");
  require_count(op, types, first + 8 + static_cast<std::size_t>(gated) + static_cast<std::size_t>(resets));
  const ArrayType &x = types[first], &B = types[first + 3];
  require_rank(op, "x", x, 4);
  require_rank(op, "B", B, 4);
  if (!is_floating(x.dtype))
    throw TypeError(concat(op, ": expected an array of floats (argument 'x'), got ", to_string(x)));
  const int64_t chunk = attrs.integer("chunk_size");
  if (chunk < 1) throw ValueError(concat(op, ": chunk_size must be 1 or more, got ", chunk));
  const Sizes s(x.shape, B.shape, x.dtype, chunk);
  if (s.groups == 0 ? s.heads != 0 : s.heads % s.groups != 0)
    throw ValueError(concat(op, ": the heads of x must be a multiple of the groups of B, got ", s.heads, " heads and ",
                            s.groups, " groups"));
  auto require = [&](std::size_t i, const char* name, const Shape& shape, DType dtype) {
    require_operand(op, name, types[first + i], shape, dtype);
  };
  require(1, "dt", s.steps(), s.narrow);
  require(2, "A", {s.heads}, s.wide);
  require(3, "B", s.columns(), s.narrow);
  require(4, "C", s.columns(), s.narrow);
  require(5, "D", {s.heads}, s.wide);
  require(6, "dt_bias", {s.heads}, s.wide);
  require(7, "initial_state", s.last(), s.wide);
  if (gated) require(8, "z", s.inputs(), s.narrow);
  if (resets) require(gated ? 9 : 8, "reset", {s.batch, s.length}, DType::bool_);
  return s;
}

TypeResult forward_type(std::span<const ArrayType> types, const Attrs& attrs) {
  const Sizes s = sizes_of("ssd", types, 0, attrs);
  return Types{strong_type(s.inputs(), s.narrow), strong_type(s.last(), s.wide), strong_type(s.starts(), s.wide)};
}

TypeResult grad_type(std::span<const ArrayType> types, const Attrs& attrs) {
  const Sizes s = sizes_of("ssd_grad", types, 3, attrs);
  require_operand("ssd_grad", "dy", types[0], s.inputs(), s.narrow);
  require_operand("ssd_grad", "dlast", types[1], s.last(), s.wide);
  require_operand("ssd_grad", "states", types[2], s.starts(), s.wide);
  const ArrayType input = strong_type(s.inputs(), s.narrow), column = strong_type(s.columns(), s.narrow),
                  last = strong_type(s.last(), s.wide), vector = strong_type({s.batch, s.heads}, s.wide);
  Types results = {input, strong_type(s.steps(), s.narrow), vector, column, column, vector, vector, last};
  if (attrs.boolean("gated")) results.push_back(input);
  return results;
}

// ---- records ----------------------------------------------------------------------------------------------------

const Primitive& grad_primitive() {
  static const Primitive& handle = *new Primitive(primitive("ssd_grad"));
  return handle;
}

Arrays pull_back(const PullbackArgs& args) { return pull_back_scan(grad_primitive(), args); }

// Operations of the matmuls of all chunks: inside a chunk, from the state, to the state.
double count_flops(const ArrayType& x, const ArrayType& B, const Attrs& attrs, double times) {
  const double per_element =
      2.0 * static_cast<double>(attrs.integer("chunk_size")) + 4.0 * static_cast<double>(B.shape[3]);
  return times * static_cast<double>(x.size()) * per_element;
}

std::vector<Sample> forward_samples(DType dtype) {
  std::vector<Sample> samples;
  auto add = [&](const Shape& x_shape, int64_t groups, int64_t state, bool softplus, bool gated, bool resets) {
    const DType wide = wide_dtype(dtype);
    const int64_t batch = x_shape[0], length = x_shape[1], heads = x_shape[2];
    const ArrayType x = strong_type(x_shape, dtype), column = strong_type({batch, length, groups, state}, dtype),
                    vector = strong_type({heads}, wide);
    Types inputs = {x,      strong_type({batch, length, heads}, dtype),          vector, column, column, vector,
                    vector, strong_type({batch, heads, x_shape[3], state}, wide)};
    if (gated) inputs.push_back(x);
    if (resets) inputs.push_back(strong_type({batch, length}, DType::bool_));
    const Attrs attrs = {{"chunk_size", 3}, {"dt_softplus", softplus}, {"gated", gated}, {"resets", resets}};
    samples.push_back({inputs, attrs, -1.0, 1.0});
  };
  add({1, 5, 2, 2}, 1, 3, true, true, false);
  add({2, 4, 2, 1}, 2, 2, false, false, true);
  return samples;
}

PrimitiveRecord forward_record() {
  PrimitiveRecord record = fused_record(
      "ssd", "The state space dual of Mamba-2; returns the last state and those at the starts of chunks too.");
  record.type = forward_type;
  record.lower = compose;
  record.batch = [](const BatchArgs& args) { return batch_in_front(args, {2, 5, 6}); };
  record.flops = [](std::span<const ArrayType> types, const Attrs& attrs) {
    return count_flops(types[0], types[3], attrs, 1);
  };
  record.samples = forward_samples;
  return composed(std::move(record), {pull_back, {false, false, true}});
}

PrimitiveRecord grad_record() {
  PrimitiveRecord record =
      fused_record("ssd_grad", "Pulls cotangents of the output and of the last state back through ssd.");
  record.type = grad_type;
  record.lower = compose_grad;
  record.batch = [](const BatchArgs& args) { return batch_in_front(args, {5, 8, 9}); };
  record.flops = [](std::span<const ArrayType> types, const Attrs& attrs) {
    return count_flops(types[3], types[6], attrs, 3);
  };
  record.samples = [](DType dtype) { return grad_samples(forward_samples(dtype), forward_type); };
  return composed(std::move(record));
}

}  // namespace

Family ssd_records() { return {forward_record(), grad_record()}; }

std::pair<Array, Array> ssd(const Array& x, const Array& dt, const Array& A, const Array& B, const Array& C,
                            const SsdOptions& options) {
  const char* op = "ssd";
  if (x.ndim() < 3)
    throw ValueError(concat(op, ": argument 'x' must be [..., length, heads, dim], got ", to_string(x.type())));
  if (B.ndim() < 3)
    throw ValueError(concat(op, ": argument 'B' must be [..., length, groups, state], got ", to_string(B.type())));
  const int64_t length = x.shape(-3), heads = x.shape(-2), dim = x.shape(-1), groups = B.shape(-2), state = B.shape(-1);
  const Shape last_shape = with_batch(x, 3, {heads, dim, state}), columns = with_batch(x, 2, {groups, state});
  require_shape(op, "dt", "[..., length, heads]", dt, with_batch(x, 1, {}));
  require_shape(op, "A", "[heads]", A, {heads});
  require_shape(op, "B", "[..., length, groups, state]", B, columns);
  require_shape(op, "C", "[..., length, groups, state]", C, columns);
  if (options.D) require_shape(op, "D", "[heads]", *options.D, {heads});
  if (options.dt_bias) require_shape(op, "dt_bias", "[heads]", *options.dt_bias, {heads});
  if (options.z) require_shape(op, "z", "of the shape of x", *options.z, x.shape());
  if (options.initial_state)
    require_shape(op, "initial_state", "[..., heads, dim, state]", *options.initial_state, last_shape);
  if (options.segment_ids) require_segments(op, *options.segment_ids, with_batch(x, 3, {length}));
  std::vector<RowOperand> rows = {{"x", x, 3}, {"dt", dt, 2}, {"B", B, 3}, {"C", C, 3}};
  if (options.z) rows.push_back({"z", *options.z, 3});
  const Arrays moved = promoted_rows(op, rows);
  const DType wide = wide_dtype(moved[0].dtype());
  const int64_t batch = moved[0].shape(0);
  auto widened = [&](const char* name, const std::optional<Array>& given, const Shape& shape) {
    return widened_operand(op, name, given, shape, wide);
  };
  const Array decay = widened("A", A, {heads}), skip = widened("D", options.D, {heads}),
              bias = widened("dt_bias", options.dt_bias, {heads}),
              initial = widened("initial_state", options.initial_state, {batch, heads, dim, state});
  Arrays inputs = {moved[0], moved[1], decay, moved[2], moved[3], skip, bias, initial};
  if (options.z) inputs.push_back(moved[4]);
  if (options.segment_ids) inputs.push_back(changes(flat_batch(*options.segment_ids, 1)));
  static const Primitive& handle = *new Primitive(primitive("ssd"));
  const Arrays out = capibara::bind(handle, inputs,
                                    {{"chunk_size", std::min(options.chunk_size, std::max<int64_t>(1, length))},
                                     {"dt_softplus", options.dt_softplus},
                                     {"gated", options.z.has_value()},
                                     {"resets", options.segment_ids.has_value()}});
  const Array y = lax::reshape(out[0], x.shape());
  return {y, lax::reshape(out[1], last_shape)};
}

}  // namespace capibara::kernels
