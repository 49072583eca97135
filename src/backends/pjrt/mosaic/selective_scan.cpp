// TPU kernels of the selective scan and of its reverse derivative: one step per chunk of the sequence, whose states
// are in VMEM.
//
// A state is [state, dim], so that the elements of dim are lanes. Inside of a chunk a loop runs over its positions;
// rows of B and C become columns by a sum over a diagonal.
#include <capibara/lax.h>

#include <algorithm>
#include <cmath>

#include "backends/pjrt/mosaic/chunks.h"

namespace capibara::mosaic {

namespace {

namespace lax = jax::lax;
using Reduction = Kernel::Reduction;

// The largest block of `dim` for which the states of a chunk fit in 4 MiB. 0: there is none.
int64_t block_of_dim(int64_t dim, int64_t states) {
  constexpr int64_t max_states = 1 << 20;
  for (const int64_t block : {512, 256, 128}) {
    if (dim % block == 0 && block * states <= max_states) return block;
  }
  return dim % lanes != 0 && dim * states <= max_states ? dim : 0;
}

// Blocks of lanes are of dim; a width of 0: there is no such block.
struct ScanSizes : ChunkSizes {
  int64_t dim;
  bool gated;

  ScanSizes(const Array& u, const Array& A, const Attrs& attrs) : dim(u.shape(2)), gated(attrs.boolean("gated")) {
    batch = u.shape(0);
    length = u.shape(1);
    state = A.shape(1);
    chunk = std::min(length, attrs.integer("chunk_size"));
    chunks = length == 0 ? 0 : blocks_of(length, chunk);
    width = block_of_dim(dim, (chunk + 1) * std::max(state, sublanes));
    blocks = width == 0 ? 0 : dim / width;
    softplus = attrs.boolean("delta_softplus");
  }

  bool are_taken(const Array& u, const Attrs& attrs) const {
    constexpr int64_t max_states = 1 << 18, max_chunk = 128;  // states of all of dim, of which VMEM holds several
    if (u.dtype() != DType::float32 && u.dtype() != DType::bfloat16) return false;
    if (attrs.boolean("resets") || u.size() == 0 || state == 0 || width == 0) return false;
    if (chunk != length && chunk % sublanes != 0) return false;
    return chunk <= max_chunk && state <= lanes && dim * std::max(state, sublanes) <= max_states && width <= 1024;
  }
};

// The parts that both kernels share.
class ScanKernel : public ChunkKernel {
 public:
  using ChunkKernel::ChunkKernel;

  // ---- operands ----
  Ref columns(const char* name, const Array& x) {  // [batch, length, state]
    return add(name, x, {1, all_.chunk, all_.state}, columns_index());
  }
  Ref vector(const char* name, const Array& x) {  // [dim]
    return add(name, x.reshape({1, all_lanes()}), {1, all_.width}, block_index());
  }
  Ref decay(const char* name, const Array& A) {  // [dim, state]
    return add(name, lax::transpose(A, {1, 0}), {all_.state, all_.width}, block_index());
  }
  Ref states(const char* name, const Array& x) {  // [batch, dim, state]
    return states_of(name, lax::transpose(x, {0, 2, 1}));
  }
  Ref starts(const char* name, const Array& x) { return starts_of(name, x); }  // [batch, chunks, state, dim]
  Ref give_columns(const char* name) {
    return kernel_.output(name, array_type(dtype_, {all_.batch, all_.length, all_.state}), {1, all_.chunk, all_.state},
                          columns_index());
  }
  Ref row_scratch(const char* name) { return kernel_.scratch(name, Element::f32, {all_.chunk, all_.width}); }
  Ref column_scratch(const char* name) { return kernel_.scratch(name, Element::f32, {all_.chunk, all_.state}); }

  // ---- the body ----
  void prepare_diagonal() {
    const Shape square{all_.state, all_.state};
    diagonal_ = equal(kernel_.iota(square, 0), kernel_.iota(square, 1));
  }
  Value column_of(const Value& row) { return on_diagonal(row, 1); }
  Value row_of(const Value& column) { return on_diagonal(column, 0); }
  Value row(const Ref& ref, const Value& position) { return kernel_.load(ref, 0, position); }

  Arrays call(double flops_per_state) {
    const double elements = double(all_.batch * all_.length) * double(all_lanes() * all_.state);
    return ChunkKernel::call(flops_per_state * elements, elements);
  }

 private:
  BlockIndex columns_index() const {
    return [at = at_](const Point& point) {
      const std::vector<Value> own = at(point);
      return std::vector<Value>{own[0], own[2], point.kernel.constant(0)};
    };
  }
  BlockIndex block_index() const {
    return [at = at_](const Point& point) { return std::vector<Value>{point.kernel.constant(0), at(point)[1]}; };
  }
  // A row or column as the other of both.
  Value on_diagonal(const Value& value, int64_t sum) {
    const Value all = kernel_.broadcast(value, *diagonal_->shape);
    return kernel_.reduce(Reduction::add, kernel_.select(*diagonal_, all, like(all, 0)), sum);
  }

  std::optional<Value> diagonal_;
};

// (u, delta, A, B, C, D, bias, initial, z) -> (y, last state, states at the starts of chunks)
Arrays scan_forward(std::span<const Array> in, const Attrs& attrs) {
  const ScanSizes sizes(in[0], in[2], attrs);
  if (!sizes.are_taken(in[0], attrs)) return {};
  ScanKernel own("capibara_selective_scan", sizes, in[0].dtype(), ScanKernel::Pass::forward);
  Kernel& kernel = own.kernel();
  const Ref u_ref = own.rows("u", in[0]), delta = own.rows("delta", in[1]), A_ref = own.decay("A", in[2]);
  const Ref B_ref = own.columns("B", in[3]), C_ref = own.columns("C", in[4]);
  const Ref D = own.vector("D", in[5]), bias = own.vector("bias", in[6]), initial = own.states("initial", in[7]);
  std::optional<Ref> z_ref;
  if (sizes.gated) z_ref = own.rows("z", in[8]);
  const Ref y_ref = own.give_rows("y"), last = own.give_states("last"), starts = own.give_starts("starts");
  const Ref state = kernel.scratch("state", Element::f32, {sizes.state, sizes.width});
  const Ref steps = own.row_scratch("steps"), driven = own.row_scratch("driven"), outputs = own.row_scratch("outputs");
  const Ref Bs = own.column_scratch("Bs"), Cs = own.column_scratch("Cs");
  const Value chunk = kernel.point(2);
  kernel.when(equal(chunk, like(chunk, 0)), [&] { kernel.store(kernel.load(initial), state); });
  const Value start = kernel.load(state), u = own.read(u_ref, chunk);
  kernel.store(start, starts);
  const Value raw = kernel.convert(kernel.load(delta), Element::f32) + kernel.load(bias);
  const Value step = own.inside(own.step(raw), chunk);
  kernel.store(step, steps);
  kernel.store(step * u, driven);
  kernel.store(own.read(B_ref, chunk), Bs);
  kernel.store(own.read(C_ref, chunk), Cs);
  own.prepare_diagonal();
  const Value A = kernel.load(A_ref);
  const std::vector<Value> end =
      kernel.loop(sizes.chunk, {start}, [&](const Value& t, const std::vector<Value>& carry) {
        const Value kept = exp(own.row(steps, t) * A) * carry[0];
        const Value next = kept + own.row(driven, t) * own.column_of(own.row(Bs, t));
        kernel.store(kernel.reduce(Reduction::add, next * own.column_of(own.row(Cs, t)), 0), outputs, 0, t);
        return std::vector<Value>{next};
      });
  kernel.store(end[0], state);
  Value y = kernel.load(outputs) + u * kernel.load(D);
  if (z_ref) {
    const Value z = kernel.convert(kernel.load(*z_ref), Element::f32);
    y = y * (z * logistic(z));
  }
  own.write(y, y_ref);
  kernel.when(equal(chunk, like(chunk, double(sizes.chunks - 1))), [&] { kernel.store(end[0], last); });
  const Arrays results = own.call(6);
  return {results[0], lax::transpose(results[1], {0, 2, 1}), results[2]};
}

// (dy, dlast, states, the operands of the forward pass) -> (du, ddelta, dA, dB, dC, dD, dbias, dinitial, dz if gated)
Arrays scan_backward(std::span<const Array> in, const Attrs& attrs) {
  const ScanSizes sizes(in[3], in[5], attrs);
  if (!sizes.are_taken(in[3], attrs)) return {};
  ScanKernel own("capibara_selective_scan_grad", sizes, in[3].dtype(), ScanKernel::Pass::backward);
  Kernel& kernel = own.kernel();
  const Ref dy_ref = own.rows("dy", in[0]), dlast = own.states("dlast", in[1]), starts = own.starts("starts", in[2]);
  const Ref u_ref = own.rows("u", in[3]), delta = own.rows("delta", in[4]), A_ref = own.decay("A", in[5]);
  const Ref B_ref = own.columns("B", in[6]), C_ref = own.columns("C", in[7]);
  const Ref D_ref = own.vector("D", in[8]), bias = own.vector("bias", in[9]);
  std::optional<Ref> z_ref, dz;
  if (sizes.gated) z_ref = own.rows("z", in[11]);
  const Ref du = own.give_rows("du"), ddelta_ref = own.give_rows("ddelta"), dA = own.give_blocks("dA", sizes.state);
  const Ref dB = own.give_columns("dB"), dC = own.give_columns("dC");
  const Ref dD = own.give_blocks("dD", 1), dbias = own.give_blocks("dbias", 1);
  const Ref dinitial = own.give_blocks("dinitial", sizes.state);
  if (sizes.gated) dz = own.give_rows("dz");
  const Ref states = kernel.scratch("states", Element::f32, {sizes.chunk + 1, sizes.state, sizes.width});
  const Ref carried = kernel.scratch("carried", Element::f32, {sizes.blocks, sizes.state, sizes.width});
  const Ref steps = own.row_scratch("steps"), inputs = own.row_scratch("inputs"), dys = own.row_scratch("dys");
  const Ref dus = own.row_scratch("dus"), dsteps = own.row_scratch("dsteps");
  const Ref Bs = own.column_scratch("Bs"), Cs = own.column_scratch("Cs");
  const Ref dBs = own.column_scratch("dBs"), dCs = own.column_scratch("dCs");
  std::optional<Ref> outputs;
  if (sizes.gated) outputs = own.row_scratch("outputs");
  const Value turn = kernel.point(1), block = kernel.point(2), zero = kernel.constant(0);
  const Value chunk = like(turn, double(sizes.chunks - 1)) - turn;
  kernel.when(equal(turn, zero), [&] {
    kernel.store(kernel.load(dlast), carried, 0, block);
    kernel.store(kernel.filled(0, Element::f32, {sizes.state, sizes.width}), dA, 1, block);
    for (const Ref& ref : {dD, dbias}) kernel.store(kernel.filled(0, Element::f32, {1, sizes.width}), ref, 1, block);
  });
  kernel.when(equal(block, zero), [&] {
    for (const Ref& ref : {dBs, dCs}) kernel.store(kernel.filled(0, Element::f32, ref.shape), ref);
  });
  const Value u = own.read(u_ref, chunk), A = kernel.load(A_ref), D = kernel.load(D_ref);
  const Value raw = kernel.convert(kernel.load(delta), Element::f32) + kernel.load(bias);
  const Value step = own.inside(own.step(raw), chunk);
  Value dy = own.read(dy_ref, chunk);
  std::optional<Value> dgate;  // the cotangent of z is this times the output before the gate
  if (z_ref) {
    const Value z = own.read(*z_ref, chunk), share = logistic(z), gate = z * share;
    dgate = dy * (share * (like(z, 1) + z - gate));
    dy = dy * gate;
  }
  kernel.store(step, steps);
  kernel.store(u, inputs);
  kernel.store(dy, dys);
  kernel.store(own.read(B_ref, chunk), Bs);
  kernel.store(own.read(C_ref, chunk), Cs);
  own.prepare_diagonal();
  const Value start = kernel.load(starts);
  kernel.store(start, states, 0, zero);
  kernel.loop(sizes.chunk, {start}, [&](const Value& t, const std::vector<Value>& carry) {
    const Value now = own.row(steps, t), kept = exp(now * A) * carry[0];
    const Value next = kept + (now * own.row(inputs, t)) * own.column_of(own.row(Bs, t));
    kernel.store(next, states, 0, t + 1.0);
    if (outputs) {
      const Value product = next * own.column_of(own.row(Cs, t));
      kernel.store(kernel.reduce(Reduction::add, product, 0), *outputs, 0, t);
    }
    return std::vector<Value>{next};
  });
  const std::vector<Value> before = {kernel.load(carried, 0, block), kernel.load(dA, 1, block)};
  const std::vector<Value> end = kernel.loop(sizes.chunk, before, [&](const Value& i, const std::vector<Value>& carry) {
    const Value t = like(i, double(sizes.chunk - 1)) - i;
    const Value now = own.row(steps, t), input = own.row(inputs, t), cotangent = own.row(dys, t);
    const Value g = carry[0] + cotangent * own.column_of(own.row(Cs, t));
    const Value faded = g * exp(now * A), moved = faded * kernel.load(states, 0, t);
    const Value from_B = kernel.reduce(Reduction::add, g * own.column_of(own.row(Bs, t)), 0);
    kernel.store(now * from_B, dus, 0, t);
    kernel.store(from_B * input + kernel.reduce(Reduction::add, moved * A, 0), dsteps, 0, t);
    const Value to_B = kernel.reduce(Reduction::add, g * (now * input), 1);
    const Value to_C = kernel.reduce(Reduction::add, kernel.load(states, 0, t + 1.0) * cotangent, 1);
    kernel.store(own.row(dBs, t) + own.row_of(to_B), dBs, 0, t);
    kernel.store(own.row(dCs, t) + own.row_of(to_C), dCs, 0, t);
    return std::vector<Value>{faded, carry[1] + moved * now};
  });
  kernel.store(end[0], carried, 0, block);
  kernel.store(end[1], dA, 1, block);
  Value ddelta = kernel.load(dsteps);
  if (sizes.softplus) ddelta = ddelta * logistic(raw);
  ddelta = own.inside(ddelta, chunk);
  own.write(kernel.load(dus) + dy * D, du);
  own.write(ddelta, ddelta_ref);
  if (dz) own.write(*dgate * (kernel.load(*outputs) + u * D), *dz);
  kernel.store(kernel.load(dD, 1, block) + kernel.reduce(Reduction::add, dy * u, 0), dD, 1, block);
  kernel.store(kernel.load(dbias, 1, block) + kernel.reduce(Reduction::add, ddelta, 0), dbias, 1, block);
  kernel.when(equal(turn, like(turn, double(sizes.chunks - 1))), [&] { kernel.store(end[0], dinitial, 1, block); });
  kernel.when(equal(block, like(block, double(sizes.blocks - 1))), [&] {
    own.write(kernel.load(dBs), dB);
    own.write(kernel.load(dCs), dC);
  });
  const Arrays results = own.call(18);
  const Shape vector{sizes.batch, sizes.dim}, state{sizes.batch, sizes.dim, sizes.state};
  const auto by_dim = [&](const Array& x) { return lax::transpose(x, {0, 1, 3, 2}).reshape(state); };
  Arrays all = {results[0],
                results[1],
                by_dim(results[2]),
                results[3],
                results[4],
                results[5].reshape(vector),
                results[6].reshape(vector),
                by_dim(results[7])};
  if (sizes.gated) all.push_back(results[8]);
  return all;
}

}  // namespace

std::vector<Entry> selective_scan_kernels() {
  return {{"selective_scan", scan_forward}, {"selective_scan_grad", scan_backward}};
}

}  // namespace capibara::mosaic
