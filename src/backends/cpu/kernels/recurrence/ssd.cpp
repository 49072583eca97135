// The state space dual of Mamba-2, forward: three matmuls for each chunk and head, computed by the GEMM tiles.
//
// Work that all heads of a group share is done once per chunk: packing C and the transpose of B as left operands, and
// their scores. A task then takes the columns of one head through the chunks: its state stays packed as the right
// operand of C, and the tiles add the chunk to it; the causal matrix is weighted while it is packed, and multiplied
// only up to its diagonal. A chunk is cut into pieces of at most 64 steps, which follow from the shape, like everything
// here: the number of threads changes nothing.
#include <algorithm>
#include <vector>

#include "backends/cpu/kernels/attention/panels.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/recurrence/recurrence_elements.h"
#include "backends/cpu/kernels/recurrence/ssd_loops.h"

#include "backends/cpu/kernels/scratch.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/thread_pool.h"
#include "lax/math/denormals.h"

// The state space dual on the CPU: its operands, the partition of a sequence into pieces, and sizes of packed operands.

namespace capibara::cpu {

using attention::ColumnPanels;
using attention::round_up;
using attention::Tiles;

inline constexpr double log2_e = 1.4426950408889634;
inline constexpr int64_t max_piece = 64;  // steps: a larger limit would only lengthen the matmuls inside a piece
inline constexpr int64_t max_shared_bytes = 8 << 20;    // packed operands of groups, unless one piece needs more
inline constexpr int64_t max_states_bytes = 384 << 10;  // states of a task's heads: part of the L2 cache
inline constexpr int64_t max_states = 2 * max_inner_bytes / 8;  // packing has rows of zeros for this many
inline constexpr const char* ssd_name = "ssd";

struct Piece {
  int64_t begin, steps;
  int64_t chunk;  // index of the chunk that starts here, or -1
};

struct DualExtents {
  int64_t batch, length, heads, dim, groups, states, chunk;
  bool has_softplus, gated, resets;
  bool is_read[3];  // whether y, the last state, and the states at the starts of chunks are read

  int64_t chunks() const { return (length + chunk - 1) / chunk; }
  int64_t piece() const { return std::min({chunk, length, max_piece}); }
  std::vector<Piece> pieces() const {
    std::vector<Piece> all;
    for (int64_t c = 0; c < chunks(); ++c) {
      const int64_t end = std::min(length, (c + 1) * chunk);
      for (int64_t t = c * chunk; t < end; t += max_piece)
        all.push_back({t, std::min(max_piece, end - t), t == c * chunk ? c : -1});
    }
    return all;
  }
};

// The type in which packing reads elements.
template <class T>
struct PackedFrom {
  using type = T;
};
template <>
struct PackedFrom<BFloat16> {
  using type = Bfloat16Bits;
};
template <>
struct PackedFrom<Half> {
  using type = HalfBits;
};

template <class T>
struct DualBuffers {
  using C = SumOf<T>;
  const T *x, *dt, *B, *out, *z;
  const C *A, *D, *bias, *initial;
  const std::uint8_t* reset;
  T* y;  // this one and the others: null if nothing reads them
  C *last, *starts;

  DualBuffers(std::byte* const* buffers, const DualExtents& e) {
    auto narrow_at = [&](int i) { return reinterpret_cast<T*>(buffers[i]); };
    auto wide_at = [&](int i) { return reinterpret_cast<C*>(buffers[i]); };
    const int results = 8 + e.gated + e.resets;
    x = narrow_at(0), dt = narrow_at(1), B = narrow_at(3), out = narrow_at(4);
    z = e.gated ? narrow_at(8) : nullptr;
    A = wide_at(2), D = wide_at(5), bias = wide_at(6), initial = wide_at(7);
    reset = e.resets ? reinterpret_cast<const std::uint8_t*>(buffers[e.gated ? 9 : 8]) : nullptr;
    y = e.is_read[0] ? narrow_at(results) : nullptr;
    last = e.is_read[1] ? wide_at(results + 1) : nullptr;
    starts = e.is_read[2] ? wide_at(results + 2) : nullptr;
  }
};

// Sizes of packed operands, in elements.
template <class K>
struct DualLayout {
  Tiles<K> tiles;
  int64_t steps, states, state_rows, stride, width;  // stride: of scores; width: columns of a head as whole vectors
  int64_t outs, columns, scores;                     // C, the transpose of B, their scores

  explicit DualLayout(const DualExtents& e)
      : steps(e.piece()),
        states(e.states),
        state_rows(tiles.packed_rows(e.states)),
        stride(round_up(steps, tiles.lanes())),
        width(round_up(e.dim, tiles.lanes())),
        outs(tiles.packed_rows(steps) * states),
        columns(state_rows * steps),
        scores(tiles.packed_rows(steps) * stride + max_tile_columns) {}
  int64_t shared() const { return round_up(outs + columns + scores, 16); }
  int64_t state() const { return state_rows * width; }
  // Heads per task: as many as fit their states in the L2 cache, but few enough that every thread gets some tasks.
  int64_t heads_together(int64_t heads, int64_t threads) const {
    const int64_t bytes = state() * static_cast<int64_t>(sizeof(typename K::Sum));
    return std::clamp<int64_t>(max_states_bytes / bytes, 1, std::max<int64_t>(1, heads / (2 * threads)));
  }
  std::vector<DualColumns> column_panels(int64_t dim) const {
    std::vector<DualColumns> all;
    const ColumnPanels panels = tiles.panels(dim);
    for (int64_t p = 0; p < panels.count(); ++p) {
      const int64_t start = panels.start(p) * tiles.lanes(), own_width = panels.width(p) * tiles.lanes();
      all.push_back({start, own_width, std::min(own_width, dim - start)});
    }
    return all;
  }
};

// Operands of one piece that the heads of a group share.
template <class C>
struct SharedPiece {
  C *outs, *columns, *scores;
  template <class Layout>
  SharedPiece(const Layout& layout, C* memory)
      : outs(memory), columns(memory + layout.outs), scores(columns + layout.columns) {}
};

namespace {

template <class K, class T>
class DualRun {
 public:
  using C = SumOf<T>;
  using S = typename PackedFrom<T>::type;

  DualRun(const DualExtents& e, const DualCode<C>& code, std::byte* const* buffers)
      : e_(e), code_(code), in_(buffers, e), layout_(e), pieces_(e.pieces()) {
    const int64_t pairs = e.batch * e.groups, bytes = pairs * layout_.shared() * static_cast<int64_t>(sizeof(C));
    segment_ = std::clamp<int64_t>(max_shared_bytes / bytes, 1, static_cast<int64_t>(pieces_.size()));
    shared_ = Scratch<C>(pairs * segment_ * layout_.shared(), ssd_name);
    states_ = Scratch<C>(e.batch * e.heads * layout_.state(), ssd_name);
  }

  void run() {
    const auto count = static_cast<int64_t>(pieces_.size());
    for (int64_t first = 0; first < count; first += segment_) {
      const int64_t some = std::min(segment_, count - first);
      share_pieces(first, some);
      run_heads(first, some);
    }
  }

 private:
  const Tiles<K>& tiles() const { return layout_.tiles; }
  SharedPiece<C> shared_piece(int64_t pair, int64_t in_segment) const {
    return {layout_, shared_.data() + (pair * segment_ + in_segment) * layout_.shared()};
  }
  void share_pieces(int64_t first, int64_t count) const;
  void share_piece(int64_t pair, const Piece& piece, const SharedPiece<C>& to, C* hold) const;
  void run_heads(int64_t first, int64_t count) const;

  const DualExtents& e_;
  const DualCode<C>& code_;
  const DualBuffers<T> in_;
  const DualLayout<K> layout_;
  const std::vector<Piece> pieces_;
  int64_t segment_;  // pieces whose shared operands are kept at the same time
  Scratch<C> shared_, states_;

  template <class, class>
  friend class DualHead;
};

// ---- work shared by heads ----------------------------------------------------------------------------------------

template <class K, class T>
void DualRun<K, T>::share_pieces(int64_t first, int64_t count) const {
  const int64_t pairs = e_.batch * e_.groups, steps = layout_.steps;
  const double cost = 3.0 * static_cast<double>(steps * e_.states) +
                      multiply_cost<K>(static_cast<double>(steps * steps * e_.states) / 2);
  parallel_for_cost(pairs * count, cost, [&](int64_t begin, int64_t end) {
    const Scratch<C> hold(2 * (tiles().packed_rows(steps) + layout_.stride) * e_.states, ssd_name);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t pair = task / count, i = task % count;
      share_piece(pair, pieces_[static_cast<std::size_t>(first + i)], shared_piece(pair, i), hold.data());
    }
    return 0;
  });
}

template <class K, class T>
void DualRun<K, T>::share_piece(int64_t pair, const Piece& piece, const SharedPiece<C>& to, C* hold) const {
  const int64_t n = e_.states, stride = e_.groups * n, steps = piece.steps;
  const int64_t at = ((pair / e_.groups * e_.length + piece.begin) * e_.groups + pair % e_.groups) * n;
  const S *B = reinterpret_cast<const S*>(in_.B) + at, *out = reinterpret_cast<const S*>(in_.out) + at;
  tiles().pack_left(out, stride, steps, n, to.outs);
  tiles().pack_left_across(B, stride, n, steps, to.columns);
  C *sources = hold, *targets = hold + tiles().packed_rows(steps) * n;
  tiles().pack_left(B, stride, steps, n, sources);
  const ColumnPanels panels = tiles().panels(steps);
  for (int64_t p = 0; p < panels.count(); ++p) {
    const int64_t start = panels.start(p) * tiles().lanes(), width = panels.width(p) * tiles().lanes();
    tiles().pack_right(out + start * stride, stride, std::min(width, steps - start), n, width, targets);
    tiles().multiply(sources, steps, n, 0, std::min(steps, start + width), 0, n, targets, width, to.scores + start,
                     layout_.stride, panels.width(p), false);
  }
}

// ---- one head ----------------------------------------------------------------------------------------------------

// Some columns of one head, and the scratch memory of the task that computes them.
template <class K, class T>
class DualHead {
 public:
  using C = SumOf<T>;
  using Run = DualRun<K, T>;

  DualHead(const Run& run, std::span<const DualColumns> panels)
      : run_(run),
        e_(run.e_),
        tiles_(run.tiles()),
        panels_(panels),
        first_column_(panels.front().start),
        width_(panels.back().start + panels.back().width - first_column_),
        own_(panels.back().start + panels.back().own - first_column_),
        padded_(round_up(run.layout_.steps + max_tile_columns, dual_vector)),
        rows_(tiles_.packed_rows(run.layout_.steps)) {
    const int64_t steps = run.layout_.steps;
    memory_ = Scratch<C>(
        5 * padded_ + rows_ * steps + max_tile_columns + (3 * steps + rows_) * width_ + 2 * dual_vector + 2 * width_,
        ssd_name);
    C* next = memory_.data();
    auto take = [&next](int64_t count) {
      C* own = next;
      next += count;
      return own;
    };
    step_ = take(padded_), sums_ = take(padded_), from_start_ = take(padded_), to_end_ = take(padded_);
    first_ = take(padded_), weights_ = take(rows_ * steps + max_tile_columns);
    driven_ = take(steps * width_), to_state_ = take(steps * width_), x_ = take(steps * width_);
    y_ = take(rows_ * width_), gate_ = take(width_ + dual_vector), row_ = take(width_ + dual_vector);
    std::fill_n(x_, steps * width_, C(0));
  }

  // These columns of heads [begin, end) of all batches, through the pieces from `first` on. The inner loop runs over
  // heads: their rows are contiguous in memory.
  void go_through(int64_t begin, int64_t end, int64_t first, int64_t count) {
    const auto pieces = static_cast<int64_t>(run_.pieces_.size());
    for (int64_t i = first; i < first + count; ++i) {
      for (int64_t head = begin; head < end; ++head) {
        batch_ = head / e_.heads, head_ = head % e_.heads;
        piece_ = run_.pieces_[static_cast<std::size_t>(i)];
        if (i == 0) load_state();
        run_piece(run_.shared_piece(batch_ * e_.groups + head_ / (e_.heads / e_.groups), i - first));
        if (i + 1 == pieces && run_.in_.last) store_state();
      }
    }
  }

 private:
  void run_piece(const SharedPiece<C>& shared) {
    decay_steps();
    weigh(shared);
    drive();
    multiply(shared);
    if (run_.in_.y) finish();
  }
  C* state() const { return run_.states_.data() + (batch_ * e_.heads + head_) * run_.layout_.state(); }
  C* state(const DualColumns& c) const { return state() + c.start * run_.layout_.state_rows; }
  int64_t vectors(const DualColumns& c) const { return c.width / tiles_.lanes(); }
  int64_t row(int64_t step) const {  // offset in x, z and y of the first column
    return ((batch_ * e_.length + piece_.begin + step) * e_.heads + head_) * e_.dim + first_column_;
  }

  void load_state() const;
  void store_state() const;
  void decay_steps();
  void see_resets();
  void weigh(const SharedPiece<C>& shared) const;
  const C* inputs() const;
  void drive() const;
  void prefetch(const DualColumns& c) const;
  void multiply(const SharedPiece<C>& shared) const;
  void finish() const;

  const Run& run_;
  const DualExtents& e_;
  const Tiles<K>& tiles_;
  const std::span<const DualColumns> panels_;
  const int64_t first_column_, width_, own_, padded_, rows_;
  int64_t batch_ = 0, head_ = 0;
  Piece piece_{};
  bool has_resets_ = false;
  C whole_ = 0;
  Scratch<C> memory_;
  C *step_, *sums_, *from_start_, *to_end_, *first_;           // one entry per step
  C *weights_, *driven_, *to_state_, *x_, *y_, *gate_, *row_;  // the causal matrix, the columns, one row of them
};

template <class K, class T>
void DualHead<K, T>::load_state() const {
  const C* from = run_.in_.initial + (batch_ * e_.heads + head_) * e_.dim * e_.states;
  for (const DualColumns& c : panels_) {
    C* to = state(c);
    std::fill_n(to, run_.layout_.state_rows * c.width, C(0));
    for (int64_t i = 0; i < c.own; ++i)
      for (int64_t n = 0; n < e_.states; ++n) to[n * c.width + i] = from[(c.start + i) * e_.states + n];
  }
}

template <class K, class T>
void DualHead<K, T>::store_state() const {
  C* to = run_.in_.last + (batch_ * e_.heads + head_) * e_.dim * e_.states;
  for (const DualColumns& c : panels_) {
    const C* from = state(c);
    for (int64_t i = 0; i < c.own; ++i)
      for (int64_t n = 0; n < e_.states; ++n) to[(c.start + i) * e_.states + n] = from[n * c.width + i];
  }
}

// Computes steps, sums of log2 of their decays, and the decays from the start and to the end of the piece.
template <class K, class T>
void DualHead<K, T>::decay_steps() {
  const int64_t steps = piece_.steps, padded = round_up(steps, dual_vector);
  const T* dt = run_.in_.dt + (batch_ * e_.length + piece_.begin) * e_.heads + head_;
  std::fill_n(step_, padded_, C(0));
  for (int64_t q = 0; q < steps; ++q) step_[q] = as_sum<C>(dt[q * e_.heads]);
  run_.code_.make_steps(step_, run_.in_.bias[head_], padded, e_.has_softplus);
  const C A = run_.in_.A[head_] * static_cast<C>(log2_e);
  C sum = 0;
  for (int64_t q = 0; q < steps; ++q) sums_[q] = sum += step_[q] * A;
  std::fill(sums_ + steps, sums_ + padded_, sum);
  for (int64_t q = 0; q < padded; ++q) {
    from_start_[q] = sums_[q];
    to_end_[q] = sum - sums_[q];
  }
  run_.code_.exp2(from_start_, padded);
  run_.code_.exp2(to_end_, padded);
  whole_ = from_start_[steps - 1];
  has_resets_ = false;
  if (run_.in_.reset) see_resets();
}

template <class K, class T>
void DualHead<K, T>::see_resets() {
  const std::uint8_t* reset = run_.in_.reset + batch_ * e_.length + piece_.begin;
  const int64_t steps = piece_.steps;
  has_resets_ = std::find_if(reset, reset + steps, [](std::uint8_t x) { return x != 0; }) != reset + steps;
  if (!has_resets_) return;
  int64_t first = -1;
  for (int64_t q = 0; q < steps; ++q) {
    if (reset[q]) first = q;
    if (first >= 0) from_start_[q] = 0;
    first_[q] = static_cast<C>(first);
  }
  std::fill(first_ + steps, first_ + padded_, C(0));
  std::fill_n(to_end_, first, C(0));
  whole_ = 0;
}

template <class K, class T>
void DualHead<K, T>::weigh(const SharedPiece<C>& shared) const {
  const int64_t steps = piece_.steps;
  for (int64_t r = 0; r < steps; r += tiles_.tile.rows) {
    const int64_t height = tiles_.panel_height(steps - r);
    run_.code_.weigh({shared.scores, run_.layout_.stride, sums_, has_resets_ ? first_ : nullptr, r, height,
                      std::min(steps, r + height), weights_ + r * steps});
  }
}

// The inputs in the accumulator type, in rows of whole vectors: in place if stored like this already.
template <class K, class T>
const SumOf<T>* DualHead<K, T>::inputs() const {
  if constexpr (std::is_same_v<T, C>) {
    if (own_ == width_) return run_.in_.x + row(0);
  }
  for (int64_t q = 0; q < piece_.steps; ++q) widen(run_.in_.x + row(q), own_, x_ + q * width_);
  return x_;
}

template <class K, class T>
void DualHead<K, T>::drive() const {
  const C* x = inputs();
  const int64_t stride = x == x_ ? width_ : e_.heads * e_.dim;
  run_.code_.drive({x, stride, piece_.steps, run_.layout_.steps, step_, to_end_,
                    driven_ - first_column_ * run_.layout_.steps, to_state_ - first_column_ * run_.layout_.steps},
                   panels_);
}

// Rows of a head are too far apart for hardware prefetchers: those of its results, and of the next head's inputs, are
// prefetched between matmuls, a share of them with each panel.
template <class K, class T>
void DualHead<K, T>::prefetch(const DualColumns& c) const {
  const int64_t steps = piece_.steps, line = 64 / static_cast<int64_t>(sizeof(T)), at = c.start - first_column_;
  const int64_t next = head_ + 1 < e_.heads ? e_.dim : 0;
  for (int64_t q = at * steps / width_; q < (at + c.width) * steps / width_; ++q) {
    for (int64_t i = 0; i < own_; i += line) {
      if (run_.in_.y) __builtin_prefetch(run_.in_.y + row(q) + i, 1, 2);
      __builtin_prefetch(run_.in_.x + row(q) + next + i, 0, 2);
    }
  }
}

// y = from_start * (C state) + weights driven, state = whole * state + B^T to_state.
template <class K, class T>
void DualHead<K, T>::multiply(const SharedPiece<C>& shared) const {
  const int64_t steps = piece_.steps, rows = tiles_.tile.rows, n = e_.states;
  for (const DualColumns& c : panels_) {
    tiles_.multiply(shared.outs, steps, n, 0, steps, 0, n, state(c), c.width, y_ + c.start - first_column_, width_,
                    vectors(c), false);
    prefetch(c);
  }
  run_.code_.scale(y_, from_start_, steps, width_);
  C* kept = nullptr;
  if (run_.in_.starts && piece_.chunk >= 0)
    kept = run_.in_.starts + ((batch_ * e_.chunks() + piece_.chunk) * e_.heads + head_) * n * e_.dim;
  run_.code_.pass_on({state(), n, run_.layout_.state_rows, kept, e_.dim, whole_}, panels_);
  for (const DualColumns& c : panels_) {
    const int64_t at = (c.start - first_column_) * run_.layout_.steps;
    for (int64_t r = 0; r < steps; r += rows)
      tiles_.multiply(weights_, steps, steps, r, r + 1, 0, std::min(steps, r + rows), driven_ + at, c.width,
                      y_ + c.start - first_column_, width_, vectors(c), true);
    tiles_.multiply(shared.columns, n, steps, 0, n, 0, steps, to_state_ + at, c.width, state(c), c.width, vectors(c),
                    true);
  }
}

// Applies the skip and the gate, and writes the output.
template <class K, class T>
void DualHead<K, T>::finish() const {
  const C skip = run_.in_.D[head_];
  for (int64_t q = 0; q < piece_.steps; ++q) {
    const int64_t at = row(q);
    const C* y = y_ + q * width_;
    if (skip != 0 || run_.in_.z) {
      const T* x = run_.in_.x + at;
      for (int64_t i = 0; i < own_; ++i) row_[i] = y[i] + skip * as_sum<C>(x[i]);
      y = row_;
    }
    if (run_.in_.z) {
      widen(run_.in_.z + at, own_, gate_);
      run_.code_.gate(row_, gate_, own_);
    }
    narrow(y, own_, run_.in_.y + at);
  }
}

template <class K, class T>
void DualRun<K, T>::run_heads(int64_t first, int64_t count) const {
  const std::vector<DualColumns> panels = layout_.column_panels(e_.dim);
  const auto panel_count = static_cast<int64_t>(panels.size());
  const int64_t heads = e_.batch * e_.heads, threads = thread_count();
  const int64_t parts = std::clamp<int64_t>(2 * threads / heads, 1, panel_count);
  const int64_t some = layout_.heads_together(heads, threads), blocks = (heads + some - 1) / some;
  const double steps = static_cast<double>(count * layout_.steps), dim = static_cast<double>(e_.dim * some);
  const double cost = multiply_cost<K>(steps * dim * static_cast<double>(2 * e_.states + layout_.steps)) + 1000;
  parallel_for_cost(blocks * parts, cost / static_cast<double>(parts), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t part = task % parts, from = part * panel_count / parts, to = (part + 1) * panel_count / parts;
      const std::span own(panels.data() + from, static_cast<std::size_t>(to - from));
      const int64_t head = task / parts * some;
      DualHead<K, T>(*this, own).go_through(head, std::min(heads, head + some), first, count);
      poll_stop();
    }
    return 0;
  });
}

// ---- kernels -----------------------------------------------------------------------------------------------------

HostKernel make_ssd(const KernelRequest& request) {
  const Shape &x = request.inputs[0].shape, &B = request.inputs[3].shape;
  const Attrs& attrs = request.attrs;
  const DualExtents e{x[0],
                      x[1],
                      x[2],
                      x[3],
                      B[2],
                      B[3],
                      attrs.integer("chunk_size"),
                      attrs.boolean("dt_softplus"),
                      attrs.boolean("gated"),
                      attrs.boolean("resets"),
                      {request.outputs[0].size() > 0, request.outputs[1].size() > 0, request.outputs[2].size() > 0}};
  if (e.batch * e.length * e.heads * e.dim * e.states == 0) return {};
  if (e.states > max_states) return {};
  return make_for_float(request.inputs[0].dtype, [&]<class T>(Type<T>) -> HostKernel {
    using C = SumOf<T>;
    return [e, code = dual_code<C>()](std::byte* const* buffers) {
      const math::FlushDenormals flush;
      DualRun<typename KindOf<C>::type, T>(e, code, buffers).run();
    };
  });
}

}  // namespace

KernelMakers ssd_makers() { return {{"ssd", make_ssd, true, true}}; }

}  // namespace capibara::cpu
