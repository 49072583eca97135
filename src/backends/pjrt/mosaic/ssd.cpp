// TPU kernels of the state space dual and of its reverse derivative: one step per chunk of the sequence and block of
// heads.
//
// The elements of a block's heads are the lanes, `width` of them, so that what heads do not share are rows of lanes: a
// number per position and head is spread over the lanes of the head. Only the matrices of positions by positions are
// made head by head, and multiply the lanes of that head alone.
#include <capibara/lax.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/pjrt/mosaic/chunks.h"

namespace capibara::mosaic {

namespace {

namespace lax = jax::lax;
using Reduction = Kernel::Reduction;

struct SsdSizes : ChunkSizes {
  int64_t heads, dim, groups, block = 0;  // block: heads of one; 0: there is none
  bool gated;

  SsdSizes(const Array& x, const Array& B, const Attrs& attrs)
      : heads(x.shape(2)), dim(x.shape(3)), groups(B.shape(2)), gated(attrs.boolean("gated")) {
    batch = x.shape(0);
    length = x.shape(1);
    state = B.shape(3);
    chunk = std::min(length, attrs.integer("chunk_size"));
    chunks = length == 0 ? 0 : blocks_of(length, chunk);
    softplus = attrs.boolean("dt_softplus");
    if (dim != 0 && groups != 0) {
      const int64_t whole = lanes / std::gcd(lanes, dim), of_group = heads / groups;
      block = of_group % whole == 0 ? whole : groups == 1 ? heads : 0;
    }
    width = block * dim;
    blocks = block == 0 ? 0 : heads / block;
  }

  int64_t blocks_of_group() const { return blocks / groups; }
  bool are_taken(const Array& x, const Attrs& attrs) const {
    constexpr int64_t max_states = 3 << 18, max_width = 1024, max_chunk = 256;  // states of all heads
    if (x.dtype() != DType::float32 && x.dtype() != DType::bfloat16) return false;
    if (attrs.boolean("resets") || x.size() == 0 || state == 0 || block == 0 || width > max_width) return false;
    if (chunk != length && chunk % sublanes != 0) return false;
    if (groups != 1 && state % lanes != 0) return false;
    return chunk <= max_chunk && state <= 256 && heads <= 1024 && heads * dim * state <= max_states;
  }
};

// Blocks of lanes are those of whole heads.
class SsdKernel : public ChunkKernel {
 public:
  SsdKernel(const char* name, const SsdSizes& sizes, DType dtype, Pass pass)
      : ChunkKernel(name, sizes, dtype, pass), sizes_(sizes) {}

  // ---- operands ----
  Ref inputs(const char* name, const Array& x) {  // [batch, length, heads, dim]
    return rows(name, x.reshape({sizes_.batch, sizes_.length, all_lanes()}));
  }
  Ref steps(const char* name, const Array& dt) {  // [batch, length, heads]
    return add(name, dt, {1, sizes_.chunk, sizes_.heads}, [at = at_](const Point& point) {
      const std::vector<Value> own = at(point);
      return std::vector<Value>{own[0], own[2], point.kernel.constant(0)};
    });
  }
  Ref columns(const char* name, const Array& x) {  // [batch, length, groups, state]
    return add(name, x.reshape({sizes_.batch, sizes_.length, sizes_.groups * sizes_.state}),
               {1, sizes_.chunk, sizes_.state}, columns_index());
  }
  Ref heads(const char* name, const Array& x) {  // [heads]
    return add(name, x.reshape({1, sizes_.heads}), {1, sizes_.heads}, [](const Point& point) {
      return std::vector<Value>{point.kernel.constant(0), point.kernel.constant(0)};
    });
  }
  Ref states(const char* name, const Array& x) {  // [batch, heads, dim, state]
    return states_of(name, lax::transpose(x, {0, 3, 1, 2}).reshape({sizes_.batch, sizes_.state, all_lanes()}));
  }
  Ref starts(const char* name, const Array& x) {  // [batch, chunks, heads, state, dim]
    return starts_of(
        name, lax::transpose(x, {0, 1, 3, 2, 4}).reshape({sizes_.batch, sizes_.chunks, sizes_.state, all_lanes()}));
  }
  Ref give_columns(const char* name) {
    return kernel_.output(name, array_type(dtype_, {sizes_.batch, sizes_.length, sizes_.groups * sizes_.state}),
                          {1, sizes_.chunk, sizes_.state}, columns_index());
  }
  // Of each chunk and block the positions of its heads as rows.
  Ref give_positions(const char* name) {
    return kernel_.output(
        name, array_type(DType::float32, {sizes_.batch, sizes_.chunks, sizes_.blocks, sizes_.block, sizes_.chunk}),
        {1, 1, 1, sizes_.block, sizes_.chunk}, [at = at_](const Point& point) {
          const std::vector<Value> own = at(point);
          const Value zero = point.kernel.constant(0);
          return std::vector<Value>{own[0], own[2], own[1], zero, zero};
        });
  }

  // ---- the body ----
  // Operands of bfloat16 are multiplied as such, those of float32 with all their bits.
  Value matmul(const Value& a, int64_t a_inner, const Value& b, int64_t b_inner) {
    const Element element = *element_of(dtype_);
    return kernel_.matmul(kernel_.convert(a, element), a_inner, kernel_.convert(b, element), b_inner, true);
  }
  Value exact(const Value& a, int64_t a_inner, const Value& b, int64_t b_inner) {
    return kernel_.matmul(a, a_inner, b, b_inner, true);
  }
  // The lanes of head k of the block, for values of this shape.
  Value of_head(int64_t k, const Value& value) {
    const Value lane = kernel_.iota(*value.shape, 1), begin = like(lane, double(k * sizes_.dim));
    const Value own = less_equal(begin, lane) & less(lane, like(lane, double((k + 1) * sizes_.dim)));
    return kernel_.select(own, value, like(value, 0));
  }
  // The column of head k of the block, of [rows, heads].
  Value column(const Value& all, const Value& block, int64_t k) {
    const Value head = block * double(sizes_.block) + double(k);
    const Value own = equal(kernel_.iota(*all.shape, 1), kernel_.broadcast(head, *all.shape));
    return kernel_.reduce(Reduction::add, kernel_.select(own, all, like(all, 0)), 1);
  }
  // Columns of the block's heads, each over the lanes of its head.
  Value spread(const std::vector<Value>& columns) {
    const Shape shape{(*columns[0].shape)[0], sizes_.width};
    Value all = kernel_.broadcast(columns[0], shape);
    const Value lane = kernel_.iota(shape, 1);
    for (std::size_t k = 1; k < columns.size(); ++k) {
      const Value later = less_equal(like(lane, double(k) * double(sizes_.dim)), lane);
      all = kernel_.select(later, kernel_.broadcast(columns[k], shape), all);
    }
    return all;
  }
  Value row_of(const Value& column) {
    const Shape square{(*column.shape)[0], (*column.shape)[0]};
    const Value all = kernel_.broadcast(column, square);
    const Value diagonal = equal(kernel_.iota(square, 0), kernel_.iota(square, 1));
    return kernel_.reduce(Reduction::add, kernel_.select(diagonal, all, like(all, 0)), 0);
  }
  // Ones where the second position is not after the first.
  Value triangle() {
    const Shape square{sizes_.chunk, sizes_.chunk};
    const Value lower = less_equal(kernel_.iota(square, 1), kernel_.iota(square, 0));
    return kernel_.select(lower, kernel_.filled(1, Element::f32, square), kernel_.filled(0, Element::f32, square));
  }

  Arrays call(double matmuls) {
    const double positions = double(sizes_.batch * sizes_.length), elements = positions * double(all_lanes());
    return ChunkKernel::call(2 * matmuls * elements * double(sizes_.chunk + 2 * sizes_.state),
                             positions * double(sizes_.heads * sizes_.chunk));
  }

 private:
  BlockIndex columns_index() const {
    return [at = at_, &sizes = sizes_](const Point& point) {
      const std::vector<Value> own = at(point);
      const Value group = sizes.groups == 1 ? point.kernel.constant(0) : own[1] / double(sizes.blocks_of_group());
      return std::vector<Value>{own[0], own[2], group};
    };
  }

  const SsdSizes& sizes_;
};

struct Decays {
  std::vector<Value> decay;         // [chunk, chunk] of each head of the block
  Value raw, step;                  // [chunk, heads]: before and after softplus
  std::vector<Value> steps;         // its columns of the block's heads
  Value spread_step;                // [chunk, width]
  Value from_start, to_end, whole;  // [chunk, width] twice, [1, width]
};

Decays decays_of(SsdKernel& own, const SsdSizes& sizes, const Value& raw, const Value& A, const Value& block,
                 const Value& chunk) {
  Kernel& kernel = own.kernel();
  const Value step = own.inside(own.step(raw), chunk), logs = step * A, lower = own.triangle();
  const Value sums = own.exact(lower, 1, logs, 0), total = kernel.reduce(Reduction::add, logs, 0);
  std::vector<Value> decay, steps, sum_columns, totals;
  for (int64_t k = 0; k < sizes.block; ++k) {
    steps.push_back(own.column(step, block, k));
    sum_columns.push_back(own.column(sums, block, k));
    totals.push_back(own.column(total, block, k));
    const Value difference = sum_columns.back() - own.row_of(sum_columns.back());
    decay.push_back(exp(kernel.select(equal(lower, like(lower, 1)), difference, like(difference, -INFINITY))));
  }
  const Value spread_sums = own.spread(sum_columns), last = own.spread(totals);
  return {decay, raw, step, steps, own.spread(steps), exp(spread_sums), exp(last - spread_sums), exp(last)};
}

// (x, dt, A, B, C, D, bias, initial, z) -> (y, last state, states at the starts of chunks)
Arrays ssd_forward(std::span<const Array> in, const Attrs& attrs) {
  const SsdSizes sizes(in[0], in[3], attrs);
  if (!sizes.are_taken(in[0], attrs)) return {};
  SsdKernel own("capibara_ssd", sizes, in[0].dtype(), SsdKernel::Pass::forward);
  Kernel& kernel = own.kernel();
  const Ref x_ref = own.inputs("x", in[0]), dt = own.steps("dt", in[1]), A = own.heads("A", in[2]);
  const Ref B_ref = own.columns("B", in[3]), C_ref = own.columns("C", in[4]);
  const Ref D = own.heads("D", in[5]), bias = own.heads("bias", in[6]), initial = own.states("initial", in[7]);
  std::optional<Ref> z_ref;
  if (sizes.gated) z_ref = own.inputs("z", in[8]);
  const Ref y_ref = own.give_rows("y"), last = own.give_states("last"), starts = own.give_starts("starts");
  const Ref state = kernel.scratch("state", Element::f32, {sizes.state, sizes.width});
  const Value block = kernel.point(1), chunk = kernel.point(2);
  kernel.when(equal(chunk, like(chunk, 0)), [&] { kernel.store(kernel.load(initial), state); });
  const Value start = kernel.load(state);
  kernel.store(start, starts);
  const Value x = own.read(x_ref, chunk), B = own.read(B_ref, chunk), C = own.read(C_ref, chunk);
  const Decays d = decays_of(own, sizes, own.wide(dt) + kernel.load(bias), kernel.load(A), block, chunk);
  const Value driven = x * d.spread_step, scores = own.matmul(C, 1, B, 1);
  Value y = d.from_start * own.matmul(C, 1, start, 0);
  std::vector<Value> skips;
  for (int64_t k = 0; k < sizes.block; ++k) {
    y = y + own.matmul(scores * d.decay[static_cast<std::size_t>(k)], 1, own.of_head(k, driven), 0);
    skips.push_back(own.column(kernel.load(D), block, k));
  }
  y = y + own.spread(skips) * x;
  if (z_ref) {
    const Value z = own.wide(*z_ref);
    y = y * (z * logistic(z));
  }
  own.write(y, y_ref);
  const Value next = d.whole * start + own.matmul(B, 0, driven * d.to_end, 0);
  kernel.store(next, state);
  kernel.when(equal(chunk, like(chunk, double(sizes.chunks - 1))), [&] { kernel.store(next, last); });
  const Arrays results = own.call(1);
  const Shape state_shape{sizes.batch, sizes.state, sizes.heads, sizes.dim};
  const Shape starts_shape{sizes.batch, sizes.chunks, sizes.state, sizes.heads, sizes.dim};
  return {results[0].reshape(in[0].shape()), lax::transpose(results[1].reshape(state_shape), {0, 2, 3, 1}),
          lax::transpose(results[2].reshape(starts_shape), {0, 1, 3, 2, 4})};
}

// (dy, dlast, states, the operands of the forward pass) -> (dx, ddt, dA, dB, dC, dD, dbias, dinitial, dz if gated)
//
// The gradient of the sums of log decays needs no matrix of its own: a position receives dy . y and sends driven .
// ddriven, each summed over all pairs of which it is part.
Arrays ssd_backward(std::span<const Array> in, const Attrs& attrs) {
  const SsdSizes sizes(in[3], in[6], attrs);
  if (!sizes.are_taken(in[3], attrs)) return {};
  SsdKernel own("capibara_ssd_grad", sizes, in[3].dtype(), SsdKernel::Pass::backward);
  Kernel& kernel = own.kernel();
  const Ref dy_ref = own.inputs("dy", in[0]), dlast = own.states("dlast", in[1]), starts = own.starts("starts", in[2]);
  const Ref x_ref = own.inputs("x", in[3]), dt = own.steps("dt", in[4]), A_ref = own.heads("A", in[5]);
  const Ref B_ref = own.columns("B", in[6]), C_ref = own.columns("C", in[7]);
  const Ref D_ref = own.heads("D", in[8]), bias = own.heads("bias", in[9]);
  std::optional<Ref> z_ref, dz;
  if (sizes.gated) z_ref = own.inputs("z", in[11]);
  const Ref dx = own.give_rows("dx"), ddt = own.give_positions("ddt"), dA = own.give_blocks("dA", 1);
  const Ref dB = own.give_columns("dB"), dC = own.give_columns("dC"), dD = own.give_blocks("dD", 1);
  const Ref dinitial = own.give_blocks("dinitial", sizes.state);
  if (sizes.gated) dz = own.give_rows("dz");
  const Ref carried = kernel.scratch("carried", Element::f32, {sizes.blocks, sizes.state, sizes.width});
  const Ref dBs = kernel.scratch("dBs", Element::f32, {sizes.chunk, sizes.state});
  const Ref dCs = kernel.scratch("dCs", Element::f32, {sizes.chunk, sizes.state});
  const Value turn = kernel.point(1), block = kernel.point(2), zero = kernel.constant(0);
  const Value chunk = like(turn, double(sizes.chunks - 1)) - turn;
  kernel.when(equal(turn, zero), [&] {
    kernel.store(kernel.load(dlast), carried, 0, block);
    for (const Ref& ref : {dA, dD}) kernel.store(kernel.filled(0, Element::f32, {1, sizes.width}), ref, 1, block);
  });
  // The block's place among those of its group.
  const Value place =
      sizes.groups == 1 ? block : block - block / double(sizes.blocks_of_group()) * double(sizes.blocks_of_group());
  kernel.when(equal(place, zero), [&] {
    for (const Ref& ref : {dBs, dCs}) kernel.store(kernel.filled(0, Element::f32, ref.shape), ref);
  });
  const Value x = own.read(x_ref, chunk), B = own.read(B_ref, chunk), C = own.read(C_ref, chunk);
  const Value A = kernel.load(A_ref), start = kernel.load(starts), end = kernel.load(carried, 0, block);
  const Decays d = decays_of(own, sizes, own.wide(dt) + kernel.load(bias), A, block, chunk);
  std::vector<Value> skips;
  for (int64_t k = 0; k < sizes.block; ++k) skips.push_back(own.column(kernel.load(D_ref), block, k));
  const Value D = own.spread(skips);
  Value dy = own.read(dy_ref, chunk);
  std::optional<Value> dgate;  // the cotangent of z is this times the output before the gate
  if (z_ref) {
    const Value z = own.read(*z_ref, chunk), share = logistic(z), gate = z * share;
    dgate = dy * (share * (like(z, 1) + z - gate));
    dy = dy * gate;
  }
  const Value driven = x * d.spread_step, scores = own.matmul(C, 1, B, 1);
  const Value through_state = own.matmul(B, 1, end, 0), to_state = driven * d.to_end, faded = dy * d.from_start;
  Value y = d.from_start * own.matmul(C, 1, start, 0), ddriven = through_state * d.to_end;
  std::optional<Value> dscores;
  for (int64_t k = 0; k < sizes.block; ++k) {
    const Value &decay = d.decay[static_cast<std::size_t>(k)], weights = scores * decay, own_dy = own.of_head(k, dy);
    y = y + own.matmul(weights, 1, own.of_head(k, driven), 0);
    ddriven = ddriven + own.matmul(weights, 0, own_dy, 0);
    const Value dweights = own.matmul(own_dy, 1, driven, 1) * decay;
    dscores = dscores ? *dscores + dweights : dweights;
  }
  kernel.store(kernel.load(dCs) + own.matmul(*dscores, 1, B, 0) + own.matmul(faded, 1, start, 1), dCs);
  kernel.store(kernel.load(dBs) + own.matmul(*dscores, 0, C, 0) + own.matmul(to_state, 1, end, 1), dBs);
  const Value kept = d.whole * end, before = kept + own.matmul(C, 0, faded, 0);
  kernel.store(before, carried, 0, block);
  // Of the log decays.
  const Value difference = dy * y - driven * ddriven;
  const Value at_end =
      kernel.reduce(Reduction::add, kept * start, 0) + kernel.reduce(Reduction::add, to_state * through_state, 0);
  const Value triangle = own.triangle(), inputs = ddriven * x;
  std::vector<Value> dlogs;
  for (int64_t k = 0; k < sizes.block; ++k) {
    const Value received = kernel.reduce(Reduction::add, own.of_head(k, difference), 1);
    const Value later = own.exact(triangle, 0, kernel.broadcast(received, {sizes.chunk, lanes}), 0);
    const Value dlog = kernel.first_columns(later, 1) + kernel.reduce(Reduction::add, own.of_head(k, at_end), 1);
    dlogs.push_back(dlog);
    const Value through_input = kernel.reduce(Reduction::add, own.of_head(k, inputs), 1);
    Value dstep = through_input + dlog * own.column(A, block, k);
    if (sizes.softplus) dstep = dstep * logistic(own.column(d.raw, block, k));
    kernel.store(own.row_of(own.inside(dstep, chunk)), ddt, 3, kernel.constant(double(k)));
  }
  kernel.store(kernel.load(dA, 1, block) + kernel.reduce(Reduction::add, own.spread(dlogs) * d.spread_step, 0), dA, 1,
               block);
  kernel.store(kernel.load(dD, 1, block) + kernel.reduce(Reduction::add, dy * x, 0), dD, 1, block);
  own.write(ddriven * d.spread_step + D * dy, dx);
  if (dz) own.write(*dgate * (y + D * x), *dz);
  kernel.when(equal(turn, like(turn, double(sizes.chunks - 1))), [&] { kernel.store(before, dinitial, 1, block); });
  kernel.when(equal(place, like(place, double(sizes.blocks_of_group() - 1))), [&] {
    own.write(kernel.load(dBs), dB);
    own.write(kernel.load(dCs), dC);
  });
  const Arrays results = own.call(3);
  const Shape by_head{sizes.batch, sizes.heads, sizes.dim};
  const Array log_sums = lax::slice_in_dim(results[2].reshape(by_head), 0, 1, 1, 2);  // equal in all lanes of a head
  const Array positions =
      lax::transpose(results[1], {0, 1, 4, 2, 3}).reshape({sizes.batch, sizes.chunks * sizes.chunk, sizes.heads});
  const Array dsteps = lax::slice_in_dim(positions, 0, sizes.length, 1, 1);
  const Array initial = results[6].reshape({sizes.batch, sizes.blocks, sizes.state, sizes.block, sizes.dim});
  Arrays all = {results[0].reshape(in[3].shape()),
                dsteps.astype(in[4].dtype()),
                log_sums.reshape({sizes.batch, sizes.heads}),
                results[3].reshape(in[6].shape()),
                results[4].reshape(in[6].shape()),
                lax::reduce_sum(results[5].reshape(by_head), {.axes = {2}}),
                lax::reduce_sum(dsteps, {.axes = {1}}),
                lax::transpose(initial, {0, 1, 3, 4, 2}).reshape(in[1].shape())};
  if (sizes.gated) all.push_back(results[7].reshape(in[3].shape()));
  return all;
}

}  // namespace

std::vector<Entry> ssd_kernels() { return {{"ssd", ssd_forward}, {"ssd_grad", ssd_backward}}; }

}  // namespace capibara::mosaic
