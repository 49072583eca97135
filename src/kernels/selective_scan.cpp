// The selective scan of Mamba and its reverse derivative: their meaning as scans over chunks, their records.
//
// Of all states [length, dim, state] only those at the starts of chunks are saved; the derivative recomputes the others
// chunk by chunk. The gradients of A, D and delta_bias are returned per batch element and summed outside,
// so that a mapped axis is a larger batch of the same call, forward and backward.
#include <capibara/kernels/recurrence.h>

#include "kernels/recurrence_records.h"
#include "lax/families.h"

namespace capibara::kernels {

namespace {

namespace lax = jax::lax;

// The operands of both primitives; those of the gradient follow its own three.
struct Operands {
  Array u, delta;  // [batch, length, dim]
  Array A;         // [dim, state]
  Array B, C;      // [batch, length, state]
  Array D, bias;   // [dim]
  Array initial;   // [batch, dim, state]
  Array z;         // [batch, length, dim], if gated
  Array reset;     // bool [batch, length], if there are resets
  DType narrow, wide;
  int64_t length, chunk;
  bool has_softplus;

  Operands(std::span<const Array> in, const Attrs& attrs)
      : u(in[0]), delta(in[1]), A(in[2]), B(in[3]), C(in[4]), D(in[5]), bias(in[6]), initial(in[7]) {
    const bool gated = attrs.boolean("gated");
    if (gated) z = in[8];
    if (attrs.boolean("resets")) reset = in[gated ? 9 : 8];
    narrow = u.dtype();
    wide = wide_dtype(narrow);
    length = u.shape(1);
    chunk = attrs.integer("chunk_size");
    has_softplus = attrs.boolean("delta_softplus");
  }

  bool is_empty() const { return u.size() == 0; }
  Array raw_step() const { return delta.astype(wide) + bias; }
  Array step(const Array& raw) const { return has_softplus ? softplus(raw) : raw; }
  Array state_first() const { return lax::transpose(A, {1, 0}); }  // [state, dim]
  // The slices that a scan over chunks reads: u, step, B, C, and the resets.
  Arrays sliced(const Array& steps) const {
    Arrays xs;
    for (const Array& x : {u, steps, B, C}) xs.push_back(in_chunks(x.astype(wide), chunk));
    if (reset.defined()) xs.push_back(in_chunks(reset, chunk));
    return xs;
  }
};

// One chunk: [batch, chunk, state, dim] in at least float32.
struct Chunk {
  Array u, step, B, C;  // [batch, chunk, 1, dim], B and C [batch, chunk, state, 1]
  Array reset;          // [batch, chunk, 1, 1]
  Array a, driven;      // exp(step * A); step * u

  Chunk(std::span<const Array> xs, const Array& A) {
    u = lax::expand_dims(xs[0], {2});
    step = lax::expand_dims(xs[1], {2});
    B = lax::expand_dims(xs[2], {3});
    C = lax::expand_dims(xs[3], {3});
    if (xs.size() > 4) reset = lax::expand_dims(xs[4], {2, 3});
    a = lax::exp(step * A);
    driven = step * u;
  }
  Array states(const Array& start) const { return scan_chunk(reset, a, driven * B).from(lax::expand_dims(start, {1})); }
};

Array last_step(const Array& x) { return lax::index_in_dim(x, x.shape(1) - 1, 1, false); }

// ... -> (y, last state, states at the starts of chunks [batch, chunks, state, dim])
Arrays compose(std::span<const Array> in, const Attrs& attrs) {
  const Operands o(in, attrs);
  const int64_t chunks = (o.length + o.chunk - 1) / o.chunk;
  if (o.is_empty()) {
    ArrayType states = o.initial.type().with_shape({o.u.shape(0), chunks, o.A.shape(1), o.A.shape(0)});
    const Array unmoved = lax::zeros_like(o.u);
    return {unmoved, o.initial, lax::zeros(states.strong())};
  }
  const Array A = o.state_first(), steps = o.step(o.raw_step()), start = lax::transpose(o.initial, {0, 2, 1});
  const Arrays out = lax::detail::scan_flat(
      [&](std::span<const Array> all) {
        const Chunk chunk(all.subspan(1), A);
        const Array states = chunk.states(all[0]), y = sum_over(chunk.C * states, {2});
        return Arrays{last_step(states), y, all[0]};
      },
      {start}, o.sliced(steps), std::nullopt, false, 1);
  const Array skipped = o.D * o.u.astype(o.wide);
  Array y = from_chunks(out[1], o.length) + skipped;
  if (o.z.defined()) {
    const Array z = o.z.astype(o.wide);
    y = y * (z * lax::logistic(z));
  }
  const Array last = lax::transpose(out[0], {0, 2, 1});
  return {y.astype(o.narrow), last, move_axis(out[2], 0, 1)};
}

// (dy, dlast, states, the operands) -> (du, ddelta, dA, dB, dC, dD, dbias, dinitial, dz if gated); those of A, D and
// the bias have a leading batch.
Arrays compose_grad(std::span<const Array> in, const Attrs& attrs) {
  const Operands o(in.subspan(3), attrs);
  Arrays results;
  if (o.is_empty()) {
    for (const Array& x : {o.u, o.delta, o.initial, o.B, o.C}) results.push_back(lax::zeros_like(x));
    for (int i = 0; i < 2; ++i) results.push_back(lax::zeros(strong_type({o.u.shape(0), o.u.shape(2)}, o.wide)));
    results.push_back(in[1]);
    if (o.z.defined()) results.push_back(lax::zeros_like(o.z));
    return results;
  }
  const Array A = o.state_first(), raw = o.raw_step(), steps = o.step(raw), u = o.u.astype(o.wide);
  const GateBack gate(in[0].astype(o.wide), o.z);
  const Array& dy = gate.dy;
  Arrays xs = o.sliced(steps);
  xs.push_back(in_chunks(dy, o.chunk));
  xs.push_back(move_axis(in[2], 1, 0));
  const Array end = lax::transpose(in[1], {0, 2, 1});
  const Arrays out = lax::detail::scan_flat(
      [&](std::span<const Array> all) {  // (gradient of the state after the chunk, sum of dA), slices
        const Array& start = all.back();
        const Chunk chunk(all.subspan(2, all.size() - 4), A);
        const Array states = chunk.states(start), cotangents = lax::expand_dims(all[all.size() - 2], {2});
        Array before = shifted_by_one(start, states), after = chunk.a, mark;
        if (chunk.reset.defined()) {
          const Array cleared = broadcast_to("selective_scan", chunk.reset, before.shape());
          before = lax::select(cleared, lax::zeros_like(before), before);
          const Array none = lax::slice_in_dim(chunk.reset, 0, 1, 1, 1);
          mark = shifted_back(chunk.reset, lax::zeros_like(none));
        }
        after = shifted_back(after, lax::ones(lax::slice_in_dim(after, 0, 1, 1, 1).type()));
        const Prefixes reversed = scan_chunk(mark, after, chunk.C * cotangents, true);
        const Array g = reversed.from(lax::expand_dims(all[0], {1}));
        const Array faded = g * chunk.a, moved = faded * before, from_B = sum_over(g * chunk.B, {2});
        Array carried = lax::index_in_dim(faded, 0, 1, false);
        if (chunk.reset.defined()) {
          const Array first = lax::index_in_dim(chunk.reset, 0, 1, false);
          const Array cleared = broadcast_to("selective_scan", first, carried.shape());
          carried = lax::select(cleared, lax::zeros_like(carried), carried);
        }
        const Array dA = all[1] + sum_over(moved * chunk.step, {1});
        const Array step = lax::squeeze(chunk.step, {2}), inputs = lax::squeeze(chunk.u, {2});
        const Array through_A = sum_over(moved * A, {2}), dstep = from_B * inputs + through_A;
        const Array du = step * from_B, y = sum_over(chunk.C * states, {2});
        const Array dB = sum_over(g * chunk.driven, {3}), dC = sum_over(states * cotangents, {3});
        return Arrays{carried, dA, du, dstep, dB, dC, y};
      },
      {end, lax::zeros_like(end)}, xs, std::nullopt, true, 1);
  auto whole = [&](std::size_t i) { return from_chunks(out[i], o.length); };
  const Array skipped = o.D * dy, du = whole(2) + skipped;
  Array ddelta = whole(3);
  if (o.has_softplus) ddelta = ddelta * lax::logistic(raw);
  const Array to_A = lax::transpose(out[1], {0, 2, 1}), to_start = lax::transpose(out[0], {0, 2, 1});
  const Array dB = whole(4).astype(o.narrow), dC = whole(5).astype(o.narrow);
  results = {du.astype(o.narrow),   ddelta.astype(o.narrow), to_A,    dB, dC,
             sum_over(dy * u, {1}), sum_over(ddelta, {1}),   to_start};
  if (o.z.defined()) {
    const Array passed = o.D * u, y = whole(6) + passed;
    results.push_back((gate.derivative * y).astype(o.narrow));
  }
  return results;
}

// ---- types ------------------------------------------------------------------------------------------------------

struct Sizes {
  int64_t batch, length, dim, state, chunks;
  DType narrow, wide;

  Shape rows() const { return {batch, length, dim}; }
  Shape columns() const { return {batch, length, state}; }
  Shape last() const { return {batch, dim, state}; }
  Shape starts() const { return {batch, chunks, state, dim}; }
};

// Checks the operands starting at `first`.
Sizes sizes_of(const char* op, std::span<const ArrayType> types, std::size_t first, const Attrs& attrs) {
  const bool gated = attrs.boolean("gated"), resets = attrs.boolean("resets");
  require_count(op, types, first + 8 + static_cast<std::size_t>(gated) + static_cast<std::size_t>(resets));
  const ArrayType &u = types[first], &A = types[first + 2];
  require_rank(op, "u", u, 3);
  require_rank(op, "A", A, 2);
  if (!is_floating(u.dtype))
    throw TypeError(concat(op, ": expected an array of floats (argument 'u'), got ", to_string(u)));
  const int64_t chunk = attrs.integer("chunk_size");
  if (chunk < 1) throw ValueError(concat(op, ": chunk_size must be positive, got ", chunk));
  const Sizes sizes{u.shape[0], u.shape[1],         u.shape[2], A.shape[1], (u.shape[1] + chunk - 1) / chunk,
                    u.dtype,    wide_dtype(u.dtype)};
  const Shape dim = {sizes.dim};
  auto require = [&](std::size_t i, const char* name, const Shape& shape, DType dtype) {
    require_operand(op, name, types[first + i], shape, dtype);
  };
  require(1, "delta", sizes.rows(), sizes.narrow);
  require(2, "A", {sizes.dim, sizes.state}, sizes.wide);
  require(3, "B", sizes.columns(), sizes.narrow);
  require(4, "C", sizes.columns(), sizes.narrow);
  require(5, "D", dim, sizes.wide);
  require(6, "delta_bias", dim, sizes.wide);
  require(7, "initial_state", sizes.last(), sizes.wide);
  if (gated) require(8, "z", sizes.rows(), sizes.narrow);
  if (resets) require(gated ? 9 : 8, "reset", {sizes.batch, sizes.length}, DType::bool_);
  return sizes;
}

TypeResult forward_type(std::span<const ArrayType> types, const Attrs& attrs) {
  const Sizes s = sizes_of("selective_scan", types, 0, attrs);
  return Types{strong_type(s.rows(), s.narrow), strong_type(s.last(), s.wide), strong_type(s.starts(), s.wide)};
}

TypeResult grad_type(std::span<const ArrayType> types, const Attrs& attrs) {
  const char* op = "selective_scan_grad";
  const Sizes s = sizes_of(op, types, 3, attrs);
  require_operand(op, "dy", types[0], s.rows(), s.narrow);
  require_operand(op, "dlast", types[1], s.last(), s.wide);
  require_operand(op, "states", types[2], s.starts(), s.wide);
  const ArrayType row = strong_type(s.rows(), s.narrow), column = strong_type(s.columns(), s.narrow),
                  last = strong_type(s.last(), s.wide), vector = strong_type({s.batch, s.dim}, s.wide);
  Types results = {row, row, last, column, column, vector, vector, last};
  if (attrs.boolean("gated")) results.push_back(row);
  return results;
}

// ---- records ----------------------------------------------------------------------------------------------------

const Primitive& forward_primitive() {
  static const Primitive& handle = *new Primitive(primitive("selective_scan"));
  return handle;
}

const Primitive& grad_primitive() {
  static const Primitive& handle = *new Primitive(primitive("selective_scan_grad"));
  return handle;
}

Arrays pull_back(const PullbackArgs& args) { return pull_back_scan(grad_primitive(), args); }

double count_flops(const ArrayType& u, const ArrayType& A, double per_state) {
  return static_cast<double>(u.size()) * static_cast<double>(A.shape[1]) * per_state;
}

std::vector<Sample> forward_samples(DType dtype) {
  std::vector<Sample> samples;
  auto add = [&](int64_t batch, int64_t length, int64_t dim, int64_t state, bool softplus, bool gated, bool resets) {
    const DType wide = wide_dtype(dtype);
    const ArrayType row = strong_type({batch, length, dim}, dtype), column = strong_type({batch, length, state}, dtype),
                    vector = strong_type({dim}, wide);
    Types inputs = {row,    row,    strong_type({dim, state}, wide),       column, column,
                    vector, vector, strong_type({batch, dim, state}, wide)};
    if (gated) inputs.push_back(row);
    if (resets) inputs.push_back(strong_type({batch, length}, DType::bool_));
    const Attrs attrs = {{"chunk_size", 4}, {"delta_softplus", softplus}, {"gated", gated}, {"resets", resets}};
    samples.push_back({inputs, attrs, -1.0, 1.0});
  };
  add(2, 5, 3, 2, true, true, false);
  add(1, 4, 2, 3, false, false, true);
  return samples;
}

PrimitiveRecord forward_record() {
  PrimitiveRecord record = fused_record(
      "selective_scan", "The selective scan of Mamba; returns the last state and those at the starts of chunks too.");
  record.type = forward_type;
  record.lower = compose;
  record.batch = [](const BatchArgs& args) { return batch_in_front(args, {2, 5, 6}); };
  record.flops = [](std::span<const ArrayType> types, const Attrs&) { return count_flops(types[0], types[2], 6); };
  record.samples = forward_samples;
  return composed(std::move(record), {pull_back, {false, false, true}});
}

PrimitiveRecord grad_record() {
  PrimitiveRecord record = fused_record(
      "selective_scan_grad", "Pulls cotangents of the output and of the last state back through selective_scan.");
  record.type = grad_type;
  record.lower = compose_grad;
  record.batch = [](const BatchArgs& args) { return batch_in_front(args, {5, 8, 9}); };
  record.flops = [](std::span<const ArrayType> types, const Attrs&) { return count_flops(types[3], types[5], 18); };
  record.samples = [](DType dtype) { return grad_samples(forward_samples(dtype), forward_type); };
  return composed(std::move(record));
}

// ---- the functions ----------------------------------------------------------------------------------------------

constexpr int64_t chunk_size = 64;  // saved states: a quarter of u at 16 states; the work of a chunk fits the cache

// Runs the definition step by step: (y without skip and gate, last state).
std::pair<Array, Array> step_by_step(const Array& u, const Array& steps, const Array& A, const Array& B, const Array& C,
                                     const Array& initial, const Array& reset) {
  Arrays xs;
  for (const Array& x : {u, steps, B, C}) xs.push_back(move_axis(x, 1, 0));
  if (reset.defined()) xs.push_back(move_axis(reset, 1, 0));
  const Arrays out = lax::detail::scan_flat(
      [&](std::span<const Array> all) {  // [batch, dim, state]
        Array state = all[0];
        if (reset.defined()) {
          const Array cleared = broadcast_to("selective_scan", lax::expand_dims(all[5], {1, 2}), state.shape());
          state = lax::select(cleared, lax::zeros_like(state), state);
        }
        const Array a = lax::exp(lax::expand_dims(all[2], {2}) * A), kept = a * state;
        const Array scaled = lax::expand_dims(all[2] * all[1], {2});
        const Array driven = scaled * lax::expand_dims(all[3], {1});
        const Array next = kept + driven;
        return Arrays{next, sum_over(next * lax::expand_dims(all[4], {1}), {2})};
      },
      {initial}, xs, std::nullopt, false, 1);
  return {move_axis(out[1], 0, 1), out[0]};
}

std::pair<Array, Array> run(const char* op, const Array& u, const Array& delta, const Array& A, const Array& B,
                            const Array& C, const SelectiveScanOptions& options, bool in_steps) {
  if (u.ndim() < 2)
    throw ValueError(concat(op, ": argument 'u' must be [..., length, dim], got ", to_string(u.type())));
  if (A.ndim() != 2) throw ValueError(concat(op, ": argument 'A' must be [dim, state], got ", to_string(A.type())));
  const int64_t length = u.shape(-2), dim = u.shape(-1), state = A.shape(1);
  const Shape columns = with_batch(u, 1, {state}), last_shape = with_batch(u, 2, {dim, state});
  require_shape(op, "delta", "of the shape of u", delta, u.shape());
  require_shape(op, "A", "[dim, state]", A, {dim, state});
  require_shape(op, "B", "[..., length, state]", B, columns);
  require_shape(op, "C", "[..., length, state]", C, columns);
  if (options.D) require_shape(op, "D", "[dim]", *options.D, {dim});
  if (options.delta_bias) require_shape(op, "delta_bias", "[dim]", *options.delta_bias, {dim});
  if (options.z) require_shape(op, "z", "of the shape of u", *options.z, u.shape());
  if (options.initial_state)
    require_shape(op, "initial_state", "[..., dim, state]", *options.initial_state, last_shape);
  if (options.segment_ids) require_segments(op, *options.segment_ids, with_batch(u, 2, {length}));
  std::vector<RowOperand> rows = {{"u", u, 2}, {"delta", delta, 2}, {"B", B, 2}, {"C", C, 2}};
  if (options.z) rows.push_back({"z", *options.z, 2});
  const Arrays moved = promoted_rows(op, rows);
  const DType wide = wide_dtype(moved[0].dtype());
  const int64_t batch = moved[0].shape(0);
  auto widened = [&](const char* name, const std::optional<Array>& given, const Shape& shape) {
    return widened_operand(op, name, given, shape, wide);
  };
  const Array matrix = widened("A", A, {dim, state}), skip = widened("D", options.D, {dim}),
              bias = widened("delta_bias", options.delta_bias, {dim}),
              initial = widened("initial_state", options.initial_state, {batch, dim, state});
  Array reset;
  if (options.segment_ids) reset = changes(flat_batch(*options.segment_ids, 1));
  Array y, last;
  if (in_steps) {
    Arrays w;
    for (const Array& x : moved) w.push_back(x.astype(wide));
    const Array raw = w[1] + bias;
    std::tie(y, last) =
        step_by_step(w[0], options.delta_softplus ? softplus(raw) : raw, matrix, w[2], w[3], initial, reset);
    const Array skipped = skip * w[0];
    y = y + skipped;
    if (options.z) y = y * (w[4] * lax::logistic(w[4]));
    y = y.astype(moved[0].dtype());
  } else {
    Arrays inputs = {moved[0], moved[1], matrix, moved[2], moved[3], skip, bias, initial};
    if (options.z) inputs.push_back(moved[4]);
    if (reset.defined()) inputs.push_back(reset);
    const Arrays out = capibara::bind(forward_primitive(), inputs,
                                      {{"chunk_size", chunk_size},
                                       {"delta_softplus", options.delta_softplus},
                                       {"gated", options.z.has_value()},
                                       {"resets", reset.defined()}});
    y = out[0];
    last = out[1];
  }
  const Array shaped = lax::reshape(y, u.shape());
  return {shaped, lax::reshape(last, last_shape)};
}

}  // namespace

Family selective_scan_records() { return {forward_record(), grad_record()}; }

namespace {

// Moves the length to the last axis but one, as the kernel requires: `axis` is an axis of u.
class LengthLast {
 public:
  LengthLast(const char* op, const Array& u, int64_t axis) : rank_(u.ndim()) {
    if (rank_ < 2) {
      axis_ = -1;
      return;
    }
    axis_ = checked_axis(op, axis, u.type());
    if (axis_ == rank_ - 1) {
      throw ValueError(concat(
          op, ": the last axis is that of the channels, so that the length is another one (argument 'axis'), got ",
          axis, " for ", to_string(u.type())));
    }
  }
  bool is_needed() const { return axis_ >= 0 && axis_ != rank_ - 2; }
  Array moved(const Array& x) const { return x.ndim() == rank_ ? move_axis(x, axis_, rank_ - 2) : x; }
  std::optional<Array> moved(const std::optional<Array>& x) const { return x ? std::optional(moved(*x)) : x; }
  Array back(const Array& y) const { return move_axis(y, rank_ - 2, axis_); }
  template <class Options>
  Options options(Options given) const {
    given.z = moved(given.z);
    if (given.segment_ids && given.segment_ids->ndim() == rank_ - 1)
      given.segment_ids = move_axis(*given.segment_ids, axis_, rank_ - 2);
    given.axis = -2;
    return given;
  }

 private:
  int64_t rank_, axis_ = 0;
};

}  // namespace

std::pair<Array, Array> selective_scan(const Array& u, const Array& delta, const Array& A, const Array& B,
                                       const Array& C, const SelectiveScanOptions& options) {
  const LengthLast length("selective_scan", u, options.axis);
  if (length.is_needed()) {
    const auto [y, last] = selective_scan(length.moved(u), length.moved(delta), A, length.moved(B), length.moved(C),
                                          length.options(options));
    return {length.back(y), last};
  }
  return run("selective_scan", u, delta, A, B, C, options, false);
}

Array mamba_ssm_kernel(const Array& inputs, const Array& A_matrix, const Array& B_matrix, const Array& C_matrix,
                       const MambaOptions& options) {
  const char* op = "mamba_ssm_kernel";
  const LengthLast length(op, inputs, options.axis);
  if (length.is_needed()) {
    MambaOptions own = length.options(options);
    own.delta = length.moved(own.delta);
    return length.back(
        mamba_ssm_kernel(length.moved(inputs), A_matrix, length.moved(B_matrix), length.moved(C_matrix), own));
  }
  if (inputs.ndim() < 2 || A_matrix.ndim() != 2)
    throw ValueError(concat(op, ": arguments 'inputs' and 'A_matrix' must be [..., length, dim] and [dim, state], got ",
                            to_string(inputs.type()), " and ", to_string(A_matrix.type())));
  const Shape columns = with_batch(inputs, 1, {A_matrix.shape(1)});
  const Array B = broadcast_to(op, B_matrix, columns), C = broadcast_to(op, C_matrix, columns);
  const Array delta = options.delta ? *options.delta : lax::ones(promote_inexact(op, inputs).type().strong());
  return run(op, inputs, delta, A_matrix, B, C, options, !options.use_associative_scan).first;
}

}  // namespace capibara::kernels
