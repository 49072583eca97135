// TPU kernels of attention and of its reverse derivative: blocks of queries by blocks of keys.
//
// Forward and dquery: one step per block of keys, for one block of queries of a head. dkey and dvalue: one step per
// block of queries of the heads that share the keys; their logits are [keys, queries], so that the numbers of a query
// are rows.
#include <capibara/lax.h>

#include <algorithm>
#include <cmath>

#include "backends/pjrt/mosaic/kernels.h"
#include "kernels/attention/spec.h"

namespace capibara::mosaic {

namespace {

namespace lax = jax::lax;
using kernels::AttentionSizes;
using kernels::AttentionSpec;
using Order = Kernel::Order;
using Reduction = Kernel::Reduction;

// Which keys a query sees by its position, and the blocks of both.
struct Blocks {
  AttentionSpec spec;
  AttentionSizes sizes;
  int64_t query, key;  // rows of a block

  Blocks(const AttentionSpec& own, const AttentionSizes& all)
      : spec(own),
        sizes(all),
        query(std::min<int64_t>(all.queries, std::max(all.size, all.value_size) > 128 ? 256 : 512)),
        key(std::min<int64_t>(all.keys, std::max(all.size, all.value_size) > 128 || has_pairs() ? 512 : 1024)) {}

  bool has_pairs() const { return spec.has_mask || spec.has_bias; }  // operands of all pairs of a query and a key

  int64_t queries() const { return blocks_of(sizes.queries, query); }
  int64_t keys() const { return blocks_of(sizes.keys, key); }
  bool ragged_queries() const { return sizes.queries % query != 0; }
  bool ragged_keys() const { return sizes.keys % key != 0; }
  bool limited_right() const { return spec.causal || spec.right >= 0; }
  bool limited_left() const { return spec.left >= 0; }
  // A query at position p sees keys up to p + after(), from p - left.
  int64_t after() const { return spec.causal ? 0 : spec.right; }

  // ---- positions of blocks: i counts blocks of queries, j of keys ----
  Value first_query(const Value& i) const { return i * double(query) + double(spec.query_offset); }
  Value last_key_seen(const Value& i) const { return first_query(i) + double(query - 1 + after()); }
  Value first_key_seen(const Value& i) const { return first_query(i) - double(spec.left); }

  // The nearest block of keys that block i of queries sees: its window is not moved where nothing is computed.
  Value nearest_keys(const Value& i, const Value& j) const {
    const Value zero = like(i, 0);
    Value block = j;
    if (limited_right()) block = min(block, max(last_key_seen(i), zero) / double(key));
    if (limited_left()) block = max(block, max(first_key_seen(i), zero) / double(key));
    return limited_left() ? min(block, like(i, double(keys() - 1))) : block;
  }
  Value nearest_queries(const Value& i, const Value& j) const {
    const Value zero = like(i, 0), first_key = j * double(key) - double(spec.query_offset);
    Value block = i;
    if (limited_left()) block = min(block, max(first_key + double(key - 1 + spec.left), zero) / double(query));
    if (limited_right()) block = max(block, max(first_key - double(after()), zero) / double(query));
    return limited_right() ? min(block, like(i, double(queries() - 1))) : block;
  }
  // Whether any query of block i sees any key of block j; nullopt: always.
  std::optional<Value> meets(const Value& i, const Value& j) const {
    std::optional<Value> all;
    if (limited_right()) all = less_equal(j * double(key), last_key_seen(i));
    if (limited_left()) {
      const Value left = less_equal(first_key_seen(i), j * double(key) + double(key - 1));
      all = all ? *all & left : left;
    }
    return all;
  }
};

// What one point of the grid sees: a condition on each logit, or none.
class Seen {
 public:
  // `query_axis`: 0 where logits are [queries, keys], 1 where they are [keys, queries].
  Seen(Kernel& kernel, const Blocks& blocks, const Value& i, const Value& j, int64_t query_axis)
      : kernel_(kernel),
        blocks_(blocks),
        i_(i),
        j_(j),
        query_axis_(query_axis),
        shape_(query_axis == 0 ? Shape{blocks.query, blocks.key} : Shape{blocks.key, blocks.query}) {}

  void add(const Value& condition) { all_ = all_ ? *all_ & condition : condition; }
  void add_positions() {
    if (!blocks_.limited_right() && !blocks_.limited_left()) return;
    // key - query within the blocks against the distance between their starts.
    const Value ahead = kernel_.iota(shape_, 1 - query_axis_) - kernel_.iota(shape_, query_axis_);
    const Value distance = blocks_.first_query(i_) - j_ * double(blocks_.key);
    if (blocks_.limited_right()) add(less_equal(ahead, distance + double(blocks_.after())));
    if (blocks_.limited_left()) add(less_equal(distance - double(blocks_.spec.left), ahead));
  }
  void add_keys_inside() {
    if (blocks_.ragged_keys()) add(inside(1 - query_axis_, j_, blocks_.key, blocks_.sizes.keys));
  }
  void add_queries_inside() {
    if (blocks_.ragged_queries()) add(inside(query_axis_, i_, blocks_.query, blocks_.sizes.queries));
  }
  void add_mask(const Value& mask) {
    const Value all = kernel_.broadcast(kernel_.convert(mask, Element::i32), shape_);
    add(less(like(all, 0), all));
  }
  void add_segments(const Value& queries, const Value& keys) {
    add(equal(kernel_.broadcast(queries, shape_), kernel_.broadcast(keys, shape_)));
  }

  Value or_else(const Value& value, double other) const {
    return all_ ? kernel_.select(*all_, value, like(value, other)) : value;
  }

 private:
  Value inside(int64_t axis, const Value& number, int64_t block, int64_t size) const {
    return less(kernel_.iota(shape_, axis), like(number, double(size)) - number * double(block));
  }

  Kernel& kernel_;
  const Blocks& blocks_;
  Value i_, j_;
  int64_t query_axis_;
  Shape shape_;
  std::optional<Value> all_;
};

bool takes(const AttentionSpec& spec, const AttentionSizes& sizes, DType dtype) {
  constexpr int64_t longest = 1 << 28, far = 1 << 28;
  if (dtype != DType::float32 && dtype != DType::bfloat16) return false;
  if (spec.has_blocks || spec.dropout_rate > 0) return false;
  if (spec.sinks > 0 || spec.prefix > 0) return false;
  if (std::max(spec.left, spec.right) > far || std::abs(spec.query_offset) > far) return false;
  if (sizes.batch * sizes.heads * sizes.queries * sizes.keys == 0) return false;
  return std::max(sizes.size, sizes.value_size) <= 256 && std::max(sizes.queries, sizes.keys) <= longest;
}

// A kernel over (batch, head, i, j), with the operands that it shares with others.
class AttentionKernel {
 public:
  AttentionKernel(const char* name, const Blocks& blocks, DType dtype, std::vector<Kernel::Dimension> grid,
                  BlockIndex query_block, BlockIndex key_block)
      : blocks_(blocks),
        dtype_(dtype),
        kernel_(name, std::move(grid)),
        query_block_(std::move(query_block)),
        key_block_(std::move(key_block)) {}

  Kernel& kernel() { return kernel_; }
  const Blocks& blocks() const { return blocks_; }
  Ref queries(const char* name, const Array& x) {
    operands_.push_back(x);
    return kernel_.input(name, x.type(), {1, 1, blocks_.query, x.shape(3)}, query_block_);
  }
  Ref keys(const char* name, const Array& x) {
    operands_.push_back(x);
    return kernel_.input(name, x.type(), {1, 1, blocks_.key, x.shape(3)}, key_block_);
  }
  // [batch, heads, queries] as rows.
  Ref query_row(const char* name, const Array& x) {
    operands_.push_back(x.reshape({x.shape(0), x.shape(1), 1, x.shape(2)}));
    return kernel_.input(name, operands_.back().type(), {1, 1, 1, blocks_.query}, row_of(query_block_));
  }
  // Segments, [batch or 1, length or 1], as a column or a row per batch entry.
  Ref segments(const char* name, const Array& x, bool of_queries, bool column) {
    const int64_t batch = blocks_.sizes.batch, length = of_queries ? blocks_.sizes.queries : blocks_.sizes.keys;
    const int64_t block = of_queries ? blocks_.query : blocks_.key;
    const Array all = lax::broadcast_in_dim(x, {batch, length}, {0, 1});
    operands_.push_back(all.reshape(column ? Shape{batch, length, 1} : Shape{batch, 1, length}));
    const BlockIndex& source = of_queries ? query_block_ : key_block_;
    const auto index = [source, column](const Point& point) -> std::vector<Value> {
      const std::vector<Value> at = source(point);  // batch, head, block, 0
      return column ? std::vector<Value>{at[0], at[2], at[3]} : std::vector<Value>{at[0], at[3], at[2]};
    };
    return kernel_.input(name, operands_.back().type(), column ? Shape{1, block, 1} : Shape{1, 1, block}, index);
  }
  // [batch or 1, heads or 1, queries or 1, keys or 1], or with queries and keys swapped.
  Ref pairs(const char* name, const Array& x, bool swapped) {
    const Shape& shape = x.shape();
    const std::size_t query_axis = swapped ? 3 : 2, key_axis = 5 - query_axis;
    operands_.push_back(swapped ? lax::transpose(x, {0, 1, 3, 2}) : x);
    Shape window{1, 1, 1, 1};
    if (shape[2] > 1) window[query_axis] = blocks_.query;
    if (shape[3] > 1) window[key_axis] = blocks_.key;
    return kernel_.input(name, operands_.back().type(), window, [=, this](const Point& point) -> std::vector<Value> {
      const std::vector<Value> query = query_block_(point), key = key_block_(point);
      std::vector<Value> at(4, point.kernel.constant(0));
      if (shape[0] > 1) at[0] = query[0];
      if (shape[1] > 1) at[1] = query[1];
      if (shape[2] > 1) at[query_axis] = query[2];
      if (shape[3] > 1) at[key_axis] = key[2];
      return at;
    });
  }
  Ref give_pairs(const char* name) {
    const AttentionSizes& sizes = blocks_.sizes;
    return kernel_.output(name, array_type(DType::float32, {sizes.batch, sizes.heads, sizes.queries, sizes.keys}),
                          {1, 1, blocks_.query, blocks_.key}, [](const Point& point) { return point.at; });
  }
  Ref give(const char* name, bool of_queries, int64_t heads, int64_t size) {
    const int64_t length = of_queries ? blocks_.sizes.queries : blocks_.sizes.keys;
    const int64_t block = of_queries ? blocks_.query : blocks_.key;
    return kernel_.output(name, array_type(dtype_, {blocks_.sizes.batch, heads, length, size}), {1, 1, block, size},
                          [](const Point& point) -> std::vector<Value> {
                            return {point.at[0], point.at[1], point.at[2], point.kernel.constant(0)};
                          });
  }
  Ref give_row(const char* name) {
    const AttentionSizes& sizes = blocks_.sizes;
    return kernel_.output(name, array_type(DType::float32, {sizes.batch, sizes.heads, 1, sizes.queries}),
                          {1, 1, 1, blocks_.query}, [](const Point& point) -> std::vector<Value> {
                            return {point.at[0], point.at[1], point.kernel.constant(0), point.at[2]};
                          });
  }

  Value matmul(const Value& a, int64_t a_inner, const Value& b, int64_t b_inner) {
    return kernel_.matmul(a, a_inner, b, b_inner, keeps_all_bits());
  }
  Value narrow(const Value& value) { return kernel_.convert(value, *element_of(dtype_)); }
  // Zeros in rows beyond the array: a product with what happens to be there may be NaN.
  Value inside(const Value& value, const Value& block, bool of_queries) {
    if (of_queries ? !blocks_.ragged_queries() : !blocks_.ragged_keys()) return value;
    const int64_t size = of_queries ? blocks_.sizes.queries : blocks_.sizes.keys;
    const Value wide = kernel_.convert(value, Element::f32);
    const Value rows = like(block, double(size)) - block * double((*value.shape)[0]);
    const Value zeroed = kernel_.select(less(kernel_.iota(*value.shape, 0), rows), wide, like(wide, 0));
    return kernel_.convert(zeroed, value.element);
  }
  // A row of numbers as a column, and back.
  Value column_of(const Value& row) {
    const Value rows = kernel_.broadcast(row, {lanes, (*row.shape)[1]});
    return kernel_.first_columns(kernel_.transpose(rows), 1);
  }
  Value row_of(const Value& column) {
    const Value columns = kernel_.broadcast(column, {(*column.shape)[0], lanes});
    return kernel_.first_rows(kernel_.transpose(columns), 1);
  }
  void when_first(std::size_t dimension, const std::function<void()>& then) {
    kernel_.when(equal(kernel_.point(dimension), kernel_.constant(0)), then);
  }
  void when_last(std::size_t dimension, int64_t size, const std::function<void()>& then) {
    kernel_.when(equal(kernel_.point(dimension), kernel_.constant(double(size - 1))), then);
  }
  void when_meeting(const Value& i, const Value& j, const std::function<void()>& then) {
    if (const std::optional<Value> any = blocks_.meets(i, j)) return kernel_.when(*any, then);
    then();
  }
  void clear(const Ref& ref) { kernel_.store(kernel_.filled(0, Element::f32, ref.shape), ref); }
  void add(const Value& value, const Ref& ref) { kernel_.store(kernel_.load(ref) + value, ref); }

  Arrays call(double matmuls) {
    const AttentionSizes& sizes = blocks_.sizes;
    const double pairs = double(sizes.batch * sizes.heads) * double(sizes.queries) * double(sizes.keys) *
                         (blocks_.spec.causal ? 0.5 : 1);
    kernel_.cost.flops = static_cast<int64_t>(matmuls * pairs * double(sizes.size + sizes.value_size));
    kernel_.cost.transcendentals = static_cast<int64_t>(pairs);
    return mosaic::call(kernel_, operands_);
  }

 private:
  static BlockIndex row_of(const BlockIndex& source) {
    return [source](const Point& point) -> std::vector<Value> {
      const std::vector<Value> at = source(point);
      return {at[0], at[1], at[3], at[2]};
    };
  }

  const Blocks& blocks_;
  DType dtype_;
  Kernel kernel_;
  BlockIndex query_block_, key_block_;
  Arrays operands_;
};

// Over (batch, head, i, j): block i of the head's queries, the nearest block of keys.
AttentionKernel query_kernel(const char* name, const Blocks& blocks, DType dtype) {
  const AttentionSizes& sizes = blocks.sizes;
  return AttentionKernel(
      name, blocks, dtype,
      {{sizes.batch, Order::parallel},
       {sizes.heads, Order::parallel},
       {blocks.queries(), Order::parallel},
       {blocks.keys(), Order::arbitrary}},
      [](const Point& point) -> std::vector<Value> {
        return {point.at[0], point.at[1], point.at[2], point.kernel.constant(0)};
      },
      [&blocks](const Point& point) -> std::vector<Value> {
        const int64_t shared = blocks.sizes.per_group();
        const Value group = shared == 1 ? point.at[1] : point.at[1] / double(shared);
        return {point.at[0], group, blocks.nearest_keys(point.at[2], point.at[3]), point.kernel.constant(0)};
      });
}

struct SegmentRefs {
  Ref queries, keys;
};

std::optional<SegmentRefs> add_segments(AttentionKernel& own, std::span<const Array> extras, bool query_columns) {
  const AttentionSpec& spec = own.blocks().spec;
  if (!spec.has_segments) return std::nullopt;
  const Array &queries = extras[static_cast<std::size_t>(spec.query_segments)],
              &keys = extras[static_cast<std::size_t>(spec.key_segments)];
  const Ref query_ref = own.segments("query_segments", queries, true, query_columns);
  return SegmentRefs{query_ref, own.segments("key_segments", keys, false, !query_columns)};
}

// The optional operands of all pairs; `swapped`: those of a kernel whose logits are [keys, queries].
struct PairRefs {
  std::optional<Ref> mask, bias;

  PairRefs(AttentionKernel& own, std::span<const Array> extras, bool swapped) {
    const AttentionSpec& spec = own.blocks().spec;
    if (spec.has_mask) {
      const Array& given = extras[static_cast<std::size_t>(spec.mask)];
      const bool row = given.shape(2) == 1 || given.shape(3) == 1;  // smaller than a tile of bytes
      mask = own.pairs("mask", given.astype(row ? DType::int32 : DType::int8), swapped);
    }
    if (spec.has_bias) bias = own.pairs("bias", extras[static_cast<std::size_t>(spec.bias)], swapped);
  }
  void add_to(Kernel& kernel, Seen& seen) const {
    if (mask) seen.add_mask(kernel.load(*mask));
  }
  Value biased(Kernel& kernel, const Value& logits) const {
    return bias ? logits + kernel.convert(kernel.load(*bias), Element::f32) : logits;
  }
};

// (query, key, value, mask, bias, segments) -> (output, log-sum-exp)
Arrays forward(std::span<const Array> in, const Attrs& attrs) {
  const AttentionSpec spec(attrs);
  const AttentionSizes sizes(in[0].shape(), in[1].shape(), in[2].shape());
  if (!takes(spec, sizes, in[0].dtype())) return {};
  const Blocks blocks(spec, sizes);
  AttentionKernel own = query_kernel("capibara_flash_attention", blocks, in[0].dtype());
  Kernel& kernel = own.kernel();
  const Ref query = own.queries("query", in[0]), key = own.keys("key", in[1]), value = own.keys("value", in[2]);
  const PairRefs pairs(own, in.subspan(kernels::forward_operands), false);
  const std::optional<SegmentRefs> segments = add_segments(own, in.subspan(kernels::forward_operands), true);
  const Ref output = own.give("output", true, sizes.heads, sizes.value_size), lse = own.give_row("lse");
  const Ref maxima = kernel.scratch("maxima", Element::f32, {blocks.query, 1});
  const Ref sums = kernel.scratch("sums", Element::f32, {blocks.query, 1});
  const Ref totals = kernel.scratch("totals", Element::f32, {blocks.query, sizes.value_size});
  const Value i = kernel.point(2), j = kernel.point(3);
  own.when_first(3, [&] {
    kernel.store(kernel.filled(-INFINITY, Element::f32, maxima.shape), maxima);
    own.clear(sums);
    own.clear(totals);
  });
  own.when_meeting(i, j, [&] {
    Seen seen(kernel, blocks, i, j, 0);
    seen.add_positions();
    seen.add_keys_inside();
    if (segments) seen.add_segments(kernel.load(segments->queries), kernel.load(segments->keys));
    pairs.add_to(kernel, seen);
    const Value products = own.matmul(kernel.load(query), 1, kernel.load(key), 1) * spec.scale;
    const Value logits = pairs.biased(kernel, products);
    const Value visible = seen.or_else(logits, -INFINITY);
    const Value before = kernel.load(maxima), next = max(before, kernel.reduce(Reduction::max, visible, 1));
    // A row that has seen no key yet has no finite maximum to subtract.
    const Value base = kernel.select(equal(next, like(next, -INFINITY)), like(next, 0), next);
    const Value shares = exp(visible - base), decay = exp(before - base);
    kernel.store(next, maxima);
    kernel.store(kernel.load(sums) * decay + kernel.reduce(Reduction::add, shares, 1), sums);
    const Value values = own.inside(kernel.load(value), j, false);
    const Value added = own.matmul(own.narrow(shares), 1, values, 0);
    kernel.store(kernel.load(totals) * decay + added, totals);
  });
  own.when_last(3, blocks.keys(), [&] {
    const Value sum = kernel.load(sums), empty = equal(sum, like(sum, 0));
    const Value divisor = kernel.select(empty, like(sum, 1), sum);
    kernel.store(own.narrow(kernel.load(totals) / divisor), output);
    const Value logarithm = kernel.load(maxima) + log(divisor);
    kernel.store(own.row_of(logarithm), lse);
  });
  const Arrays results = own.call(2);
  return {results[0], results[1].reshape({sizes.batch, sizes.heads, sizes.queries})};
}

// (cotangent, query, key, value, log-sum-exp, row sums, mask, bias, segments) -> dquery, and dlogits if there is a bias
Arrays query_gradient(std::span<const Array> in, const Blocks& blocks) {
  const AttentionSizes& sizes = blocks.sizes;
  AttentionKernel own = query_kernel("capibara_flash_attention_dquery", blocks, in[1].dtype());
  Kernel& kernel = own.kernel();
  const Ref cotangent = own.queries("cotangent", in[0]), query = own.queries("query", in[1]);
  const Ref key = own.keys("key", in[2]), value = own.keys("value", in[3]);
  const Ref lse = own.query_row("lse", in[4]), delta = own.query_row("delta", in[5]);
  const PairRefs pairs(own, in.subspan(kernels::backward_operands), false);
  const std::optional<SegmentRefs> segments = add_segments(own, in.subspan(kernels::backward_operands), true);
  const Ref dquery = own.give("dquery", true, sizes.heads, sizes.size);
  std::optional<Ref> dpairs;
  if (blocks.spec.has_bias) dpairs = own.give_pairs("dlogits");
  const Ref total = kernel.scratch("total", Element::f32, {blocks.query, sizes.size});
  const Ref lse_column = kernel.scratch("lse_column", Element::f32, {blocks.query, 1});
  const Ref delta_column = kernel.scratch("delta_column", Element::f32, {blocks.query, 1});
  const Value i = kernel.point(2), j = kernel.point(3);
  own.when_first(3, [&] {
    own.clear(total);
    const Value row = kernel.load(lse);
    const Value finite = kernel.select(equal(row, like(row, -INFINITY)), like(row, 0), row);
    kernel.store(own.column_of(finite), lse_column);
    kernel.store(own.column_of(kernel.load(delta)), delta_column);
  });
  if (dpairs) kernel.store(kernel.filled(0, Element::f32, {blocks.query, blocks.key}), *dpairs);
  own.when_meeting(i, j, [&] {
    Seen seen(kernel, blocks, i, j, 0);
    seen.add_positions();
    seen.add_keys_inside();
    if (segments) seen.add_segments(kernel.load(segments->queries), kernel.load(segments->keys));
    const Value keys = own.inside(kernel.load(key), j, false);
    pairs.add_to(kernel, seen);
    const Value logits = pairs.biased(kernel, own.matmul(kernel.load(query), 1, keys, 1) * blocks.spec.scale);
    const Value shares = exp(logits - kernel.load(lse_column));
    const Value dshares = own.matmul(kernel.load(cotangent), 1, kernel.load(value), 1);
    const Value dlogits = seen.or_else(shares * (dshares - kernel.load(delta_column)), 0);
    if (dpairs) kernel.store(dlogits, *dpairs);
    own.add(own.matmul(own.narrow(dlogits), 1, keys, 0), total);
  });
  own.when_last(3, blocks.keys(), [&] { kernel.store(own.narrow(kernel.load(total) * blocks.spec.scale), dquery); });
  return own.call(3);
}

// Over (batch, group, j, head of the group and i): -> (dkey, dvalue)
Arrays key_gradients(std::span<const Array> in, const Blocks& blocks) {
  const AttentionSizes& sizes = blocks.sizes;
  const int64_t shared = sizes.per_group(), steps = shared * blocks.queries();
  const auto query_block = [&](Kernel& kernel, const Value& group, const Value& step) {
    // The head and the block of queries of a step.
    if (shared == 1) return std::pair(group, step);
    if (blocks.queries() == 1) return std::pair(group * double(shared) + step, kernel.constant(0));
    const Value head = step / double(blocks.queries());
    return std::pair(group * double(shared) + head, step - head * double(blocks.queries()));
  };
  AttentionKernel own(
      "capibara_flash_attention_dkey_dvalue", blocks, in[1].dtype(),
      {{sizes.batch, Order::parallel},
       {sizes.groups, Order::parallel},
       {blocks.keys(), Order::parallel},
       {steps, Order::arbitrary}},
      [&](const Point& point) -> std::vector<Value> {
        const auto [head, i] = query_block(point.kernel, point.at[1], point.at[3]);
        return {point.at[0], head, blocks.nearest_queries(i, point.at[2]), point.kernel.constant(0)};
      },
      [](const Point& point) -> std::vector<Value> {
        return {point.at[0], point.at[1], point.at[2], point.kernel.constant(0)};
      });
  Kernel& kernel = own.kernel();
  const Ref cotangent = own.queries("cotangent", in[0]), query = own.queries("query", in[1]);
  const Ref key = own.keys("key", in[2]), value = own.keys("value", in[3]);
  const Ref lse = own.query_row("lse", in[4]), delta = own.query_row("delta", in[5]);
  const PairRefs pairs(own, in.subspan(kernels::backward_operands), true);
  const std::optional<SegmentRefs> segments = add_segments(own, in.subspan(kernels::backward_operands), false);
  const Ref dkey = own.give("dkey", false, sizes.groups, sizes.size);
  const Ref dvalue = own.give("dvalue", false, sizes.groups, sizes.value_size);
  const Ref key_total = kernel.scratch("key_total", Element::f32, {blocks.key, sizes.size});
  const Ref value_total = kernel.scratch("value_total", Element::f32, {blocks.key, sizes.value_size});
  const Value j = kernel.point(2), i = query_block(kernel, kernel.point(1), kernel.point(3)).second;
  own.when_first(3, [&] {
    own.clear(key_total);
    own.clear(value_total);
  });
  own.when_meeting(i, j, [&] {
    Seen seen(kernel, blocks, i, j, 1);
    seen.add_positions();
    seen.add_queries_inside();
    if (segments) seen.add_segments(kernel.load(segments->queries), kernel.load(segments->keys));
    const Value queries = own.inside(kernel.load(query), i, true);
    const Value cotangents = own.inside(kernel.load(cotangent), i, true);
    const Value row = kernel.load(lse);
    const Value finite = kernel.select(equal(row, like(row, -INFINITY)), like(row, 0), row);
    pairs.add_to(kernel, seen);
    const Value logits = pairs.biased(kernel, own.matmul(kernel.load(key), 1, queries, 1) * blocks.spec.scale);
    const Value shares = seen.or_else(exp(logits - finite), 0);
    own.add(own.matmul(own.narrow(shares), 1, cotangents, 0), value_total);
    const Value dshares = own.matmul(kernel.load(value), 1, cotangents, 1);
    const Value dlogits = seen.or_else(shares * (dshares - kernel.load(delta)), 0);
    own.add(own.matmul(own.narrow(dlogits), 1, queries, 0), key_total);
  });
  own.when_last(3, steps, [&] {
    kernel.store(own.narrow(kernel.load(key_total) * blocks.spec.scale), dkey);
    kernel.store(own.narrow(kernel.load(value_total)), dvalue);
  });
  return own.call(4);
}

// Sums over the dimensions that a bias has not.
Array bias_gradient(const Array& dlogits, const ArrayType& bias) {
  Ints axes;
  for (int64_t axis = 0; axis < 4; ++axis) {
    if (bias.shape[static_cast<std::size_t>(axis)] == 1) axes.push_back(axis);
  }
  return lax::reduce_sum(dlogits, {.axes = axes}).reshape(bias.shape).astype(bias.dtype);
}

// -> (dquery, dkey, dvalue), and dbias if there is a bias
Arrays backward(std::span<const Array> in, const Attrs& attrs) {
  const AttentionSpec spec(attrs);
  const AttentionSizes sizes(in[1].shape(), in[2].shape(), in[3].shape());
  if (!takes(spec, sizes, in[1].dtype())) return {};
  // The gradient of a bias is written for all pairs, and summed after the kernel.
  constexpr int64_t max_pairs = 1 << 28;
  if (spec.has_bias && sizes.batch * sizes.heads * sizes.queries * sizes.keys > max_pairs) return {};
  const Blocks blocks(spec, sizes);
  const Arrays first = query_gradient(in, blocks), others = key_gradients(in, blocks);
  Arrays results = {first[0], others[0], others[1]};
  if (spec.has_bias)
    results.push_back(
        bias_gradient(first[1], in[kernels::backward_operands + static_cast<std::size_t>(spec.bias)].type()));
  return results;
}

}  // namespace

std::vector<Entry> attention_kernels() { return {{"flash_attention", forward}, {"flash_attention_grad", backward}}; }

}  // namespace capibara::mosaic
