// Sums that several iterations of the outermost loop accumulate: of columns over runs of rows, and of few long rows.
//
// The shape alone decides how they are split, so that results do not depend on the number of threads: each iteration
// leaves its sums in memory that the regions of a group share, and a second region combines them in order.
#include <algorithm>

#include "backends/cpu/regions/nest_rows.h"

namespace capibara::cpu {

namespace {

constexpr int64_t target_trip_count = 64;          // of the outermost loop
constexpr int64_t min_iteration_size = 32 * 1024;  // elements
constexpr int64_t min_shared_rows = 16;            // sharing a set of sums
constexpr int64_t column_tile = 4096;              // columns accumulated at once, if rows are longer than two tiles
constexpr int64_t narrow_row = 128;                // elements: shorter rows are accumulated several at a time
constexpr int64_t folded_width = 256;              // elements of narrow rows accumulated at once

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The number of runs into which the rows of `batches` independent sets are split.
int64_t run_count(int64_t batches, int64_t rows, int64_t width) {
  const int64_t max_runs = std::min(rows / min_shared_rows, rows * width / min_iteration_size);
  return std::clamp<int64_t>(target_trip_count / std::max<int64_t>(1, batches), 1, std::max<int64_t>(1, max_runs));
}

}  // namespace

// ---- memory between regions ---------------------------------------------------------------------------------------

// The sums that a second region combines.
RowNest::Items RowNest::split_sums() const {
  Items found;
  for (const Item& item : items_) {
    if (item.column || (item.reduces && group_.columns.empty())) found.push_back(&item);
  }
  return found;
}

void RowNest::open_partials(int64_t pieces, int64_t size) {
  partials_ = Partials{pieces, size, 0};
  for (const Item* item : split_sums()) {
    const DType dtype = type(equation(item->equation).outputs[0]).dtype;
    const Scalar scalar = computed_type(dtype);
    for (int part = 0; part < part_count(dtype); ++part) {
      slots_.push_back({scalar, partials_->bytes / byte_size(scalar)});
      partials_->bytes += ceil_divide(pieces * size * byte_size(scalar), 64) * 64;
    }
  }
  room_ = temporary(partials_->bytes);
}

// The sums at one place of that memory, combined with the previous ones.
std::vector<Value> RowNest::joined_partials(std::span<const Value> values, const std::vector<Term>& place,
                                            const Items& sums) {
  std::vector<Value> found, next;
  for (const Slot& slot : slots_) found.push_back(builder_.load(slot.type, {room_, slot.offset, place}));
  std::size_t left = 0, right = 0;
  for (const Item* item : sums) {
    const Equation& self = equation(item->equation);
    const DType dtype = type(self.outputs[0]).dtype;
    const Element before = take(dtype, values, left), own = take(dtype, found, right);
    const Element total = combine(builder_, *self.primitive->traits.monoid, dtype, before, own);
    next.insert(next.end(), total.parts, total.parts + total.count);
  }
  return next;
}

// The distance from `begin` to `extent`, at most `width`; no_value if it is always the width.
Value RowNest::rest_of(Value begin, int64_t extent, int64_t width) {
  if (extent % width == 0) return no_value;
  const Value left = builder_.compute(Op::sub, builder_.index(extent), begin), full = builder_.index(width);
  return builder_.compute(Op::select, builder_.compute(Op::lt, left, full), left, full);
}

// Returns the last digit of a number in this base and removes it.
Value RowNest::digit(Value& number, int64_t base) {
  if (base == 1) return builder_.index(0);
  const Value divisor = builder_.index(base);
  const Value last = builder_.compute(Op::remainder_unsigned, number, divisor);
  number = builder_.compute(Op::divide_unsigned, number, divisor);
  return last;
}

// Makes the innermost loop count from `begin`.
void RowNest::shift_inner(Value begin) {
  symbols_.push_back(begin);
  index_[inner_.back().last].add(Affine::of(static_cast<Symbol>(symbols_.size()) - 1));
}

// ---- few long rows ------------------------------------------------------------------------------------------------

// True if the rows are traversed once, and are too few to be split among threads.
bool RowNest::has_long_rows() const {
  const int64_t rows = size_of(outer_);
  return stages_ == 1 && inner_.size() == 1 && rows > 0 && rows * 2 <= target_trip_count &&
         width_ >= 2 * min_iteration_size && !split_sums().empty();
}

void RowNest::write_pieces() {
  const int64_t rows = size_of(outer_);
  const int64_t wanted = std::min(target_trip_count / rows, width_ / min_iteration_size);
  const int64_t length = ceil_divide(ceil_divide(width_, wanted), 64) * 64, pieces = ceil_divide(width_, length);
  open_partials(pieces, rows);
  inner_size_ = static_cast<double>(length);
  loop(rows * pieces, {.parallel = true}, [&](Value position) {
    const Value piece = digit(position, pieces);
    enter_all(outer_, position);
    zero_rows();
    finish_row_values(0);
    const Value begin = builder_.compute(Op::mul, piece, builder_.index(length));
    shift_inner(begin);
    lane_extent_ = length;
    lane_rest_ = rest_of(begin, width_, length);
    const std::vector<Value> sums = stage_sums(1).second;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      builder_.store(sums[i], {room_, slots_[i].offset, {{position, pieces}, {piece, 1}}});
    }
  });
}

Region RowNest::join_pieces(const Partials& given) {
  open_partials(given.pieces, given.size);
  inner_size_ = static_cast<double>(given.pieces);
  loop(given.size, {.parallel = true}, [&](Value position) {
    enter_all(outer_, position);
    zero_rows();
    finish_row_values(0);
    const Items sums = split_sums();
    const std::vector<Value> results =
        builder_.loop(given.pieces, {}, start_of(sums), [&](Value piece, std::span<const Value> values) {
          return joined_partials(values, {{position, given.pieces}, {piece, 1}}, sums);
        });
    know_sums(sums, results);
    finish_row_values(1);
    store_row_values();
  });
  return finish();
}

// ---- sums of columns ----------------------------------------------------------------------------------------------

void RowNest::make_sums(int64_t width) {
  for (int e : group_.columns) {
    const DType dtype = type(equation(e).outputs[0]).dtype;
    for (int part = 0; part < part_count(dtype); ++part) {
      sums_[e].push_back(builder_.local(std::max<int64_t>(1, width) * byte_size(computed_type(dtype))));
    }
  }
}

Element RowNest::sum_at(int e) {
  const DType dtype = type(equation(e).outputs[0]).dtype;
  Element sum;
  sum.count = part_count(dtype);
  for (int part = 0; part < sum.count; ++part) {
    sum.parts[part] = builder_.load(computed_type(dtype), scratch_address(sums_.at(e)[at(part)]));
  }
  return sum;
}

void RowNest::store_sum(int e, const Element& sum) {
  for (int part = 0; part < sum.count; ++part) builder_.store(sum.parts[part], scratch_address(sums_.at(e)[at(part)]));
}

void RowNest::clear_sums() {
  for (int e : group_.columns) {
    const Equation& self = equation(e);
    store_sum(e, identity_element(builder_, *self.primitive->traits.monoid, type(self.outputs[0]).dtype));
  }
}

// The position of a column in the results: over the dimensions that are not summed.
Affine RowNest::column_place() const {
  Index kept;
  Shape shape;
  for (std::size_t d = 0; d < group_.space.size(); ++d) {
    if (group_.summed[d]) continue;
    kept.push_back(index_[d]);
    shape.push_back(group_.space[d]);
  }
  return linear(kept, shape);
}

void RowNest::put_partials(const Element& sum, std::size_t& slot, Value chunk) {
  const Affine place = column_place();
  for (int part = 0; part < sum.count; ++part, ++slot) {
    Address target{room_, slots_[slot].offset + place.constant, {{chunk, partials_->size}}};
    for (const auto& [symbol, factor] : place.terms) target.terms.push_back({symbols_[at(symbol)], factor});
    builder_.store(sum.parts[part], std::move(target));
  }
}

// Sums over all rows are results; those over a run of rows are combined later.
void RowNest::put_sums(Value chunk, int64_t chunks) {
  std::size_t slot = 0;
  for (const Item* item : split_sums()) {
    const Var output = equation(item->equation).outputs[0];
    const DType dtype = type(output).dtype;
    const Element sum = sum_at(item->equation);
    if (chunks > 1)
      put_partials(sum, slot, chunk);
    else
      store_element(builder_, dtype, address(output, column_place()), rounded_element(builder_, dtype, sum));
  }
}

void RowNest::write_columns() {
  const int64_t rows = size_of(summed_);
  const bool only_positions = group_.row_values.empty() && inner_.size() == 1;
  const bool only_sums = only_positions && group_.kept.empty() && group_.results == group_.columns;
  if (only_sums && run_ && width_ < narrow_row && rows * width_ >= min_iteration_size)
    return write_folded_columns(folded_width / width_);
  const int64_t tile = only_positions && width_ > 2 * column_tile ? column_tile : std::max<int64_t>(1, width_);
  const int64_t tiles = std::max<int64_t>(1, ceil_divide(width_, tile)), batches = size_of(outer_) * tiles;
  const int64_t height = std::max<int64_t>(1, ceil_divide(rows, run_count(batches, rows, tile)));
  const int64_t chunks = std::max<int64_t>(1, ceil_divide(rows, height));
  make_scratch();
  make_sums(tile);
  if (chunks > 1) open_partials(chunks, size_of(outer_) * width_);
  inner_size_ = static_cast<double>(height * tile);
  loop(batches * chunks, {.parallel = true}, [&](Value position) {
    const Value chunk = digit(position, chunks), column = digit(position, tiles);
    enter_all(outer_, position);
    if (tiles > 1) {
      const Value begin = builder_.compute(Op::mul, column, builder_.index(tile));
      shift_inner(begin);
      lane_extent_ = tile;
      lane_rest_ = rest_of(begin, width_, tile);
    }
    over_inner([&] { clear_sums(); });
    const Value first = builder_.compute(Op::mul, chunk, builder_.index(height));
    loop(rows == 0 ? 0 : height, {.extent_value = rest_of(first, rows, height)}, [&](Value row) {
      enter_all(summed_, builder_.compute(Op::add, first, row));
      write_row();
    });
    over_inner([&] { put_sums(chunk, chunks); });
  });
}

// Consecutive short rows: `folded` of them form one wider row, whose sums are combined at the end.
void RowNest::write_folded_columns(int64_t folded) {
  const int64_t rows = size_of(summed_), wide = folded * width_, batches = size_of(outer_);
  const int64_t lines = rows / folded, left = rows % folded;
  const int64_t height = ceil_divide(lines, run_count(batches, lines, wide)), chunks = ceil_divide(lines, height);
  make_sums(wide);
  open_partials(chunks, batches * width_);
  inner_size_ = static_cast<double>(height * wide);
  const std::vector<Loop> inner = inner_;
  loop(batches * chunks, {.parallel = true}, [&](Value position) {
    const Value chunk = digit(position, chunks);
    enter_all(outer_, position);
    inner_ = {{run_->first, run_->last, wide}};
    over_inner([&] { clear_sums(); });
    // Accumulates the rows of a line, or those left over after the last line.
    auto accumulate = [&](Value line, int64_t width) {
      Scoped scope(*this);
      const Index whole = index_;
      shift_inner(builder_.compute(Op::mul, line, builder_.index(wide)));
      lane_extent_ = width;
      run_stage(1);
      lane_extent_ = 0;
      index_ = whole;
    };
    const Value first = builder_.compute(Op::mul, chunk, builder_.index(height));
    loop(height, {.extent_value = rest_of(first, lines, height)},
         [&](Value line) { accumulate(builder_.compute(Op::add, first, line), wide); });
    if (left > 0) {
      const Value is_last = builder_.compute(Op::eq, chunk, builder_.index(chunks - 1));
      auto rest = [&] {
        accumulate(builder_.index(lines), left * width_);
        return std::vector<Value>();
      };
      builder_.branch(is_last, rest, [] { return std::vector<Value>(); });
    }
    inner_ = inner;
    over_inner([&] { fold_sums(folded, chunk); });
  });
}

void RowNest::fold_sums(int64_t folded, Value chunk) {
  std::size_t slot = 0;
  for (const Item* item : split_sums()) {
    const Equation& self = equation(item->equation);
    const DType dtype = type(self.outputs[0]).dtype;
    const Items one = {item};
    const std::vector<Value> sums =
        builder_.loop(folded, {}, start_of(one), [&](Value row, std::span<const Value> values) {
          std::vector<Value> found;
          for (int32_t buffer : sums_.at(item->equation)) {
            found.push_back(builder_.load(computed_type(dtype), {buffer, 0, {{row, width_}, {lane_position(0), 1}}}));
          }
          std::size_t left = 0, right = 0;
          const Element before = take(dtype, values, left), own = take(dtype, found, right);
          const Element total = combine(builder_, *self.primitive->traits.monoid, dtype, before, own);
          return std::vector<Value>(total.parts, total.parts + total.count);
        });
    std::size_t position = 0;
    put_partials(take(dtype, sums, position), slot, chunk);
  }
}

Region RowNest::join_columns(const Partials& given) {
  open_partials(given.pieces, given.size);
  inner_size_ = static_cast<double>(given.pieces * width_);
  loop(size_of(outer_), {.parallel = true}, [&](Value position) {
    enter_all(outer_, position);
    over_inner([&] {
      const Affine place = column_place();
      std::vector<Term> terms;
      for (const auto& [symbol, factor] : place.terms) terms.push_back({symbols_[at(symbol)], factor});
      const Items sums = split_sums();
      const std::vector<Value> results =
          builder_.loop(given.pieces, {}, start_of(sums), [&](Value chunk, std::span<const Value> values) {
            std::vector<Term> here = terms;
            here.push_back({chunk, given.size});
            return joined_partials(values, here, sums);
          });
      std::size_t number = 0;
      for (const Item* item : sums) {
        const Var output = equation(item->equation).outputs[0];
        const DType dtype = type(output).dtype;
        store_element(builder_, dtype, address(output, place),
                      rounded_element(builder_, dtype, take(dtype, results, number)));
      }
    });
  });
  return finish();
}

}  // namespace capibara::cpu
