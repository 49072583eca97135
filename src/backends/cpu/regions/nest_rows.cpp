// Nests with rows: reductions over the inner dimensions and their readers run row by row, stage by stage; sums of
// columns are accumulated in the frame as the rows are computed.
//
//   for each row:  stage 1: m = max x        stage 2: e = exp(x - m), s = sum e        stage 3: y = e / s
#include <algorithm>

#include "backends/cpu/regions/nest_rows.h"

namespace capibara::cpu {

namespace {

constexpr int64_t max_scratch = 64 * 1024;  // bytes of a row kept in the frame
constexpr int64_t min_prefetched = 1024;    // bytes: shorter rows are prefetched by the hardware

enum Kind : int { inner_kind, row_kind, summed_kind };

}  // namespace

RowNest::RowNest(const Program& program, const Fusion& fusion, const Group& group, const Aliases& aliases)
    : NestWriter(program, fusion, group, aliases) {
  const std::size_t rank = group.space.size();
  open_space(rank);
  for (std::size_t d = 0; d < rank; ++d) index_.push_back(Affine::of(static_cast<Symbol>(d)));
  plan_stages();
  choose_loops();
}

std::vector<Region> RowNest::write() {
  std::vector<Region> regions;
  if (!group_.columns.empty()) {
    write_columns();
  } else if (has_long_rows()) {
    write_pieces();
  } else {
    make_scratch();
    loop(size_of(outer_), {.parallel = true}, [&](Value position) {
      enter_all(outer_, position);
      write_row();
    });
  }
  const std::optional<Partials> partials = partials_;
  regions.push_back(finish());
  if (partials) {
    RowNest second(program_, fusion_, group_, aliases_);
    regions.push_back(group_.columns.empty() ? second.join_pieces(*partials) : second.join_columns(*partials));
  }
  return regions;
}

// ---- stages of the values -----------------------------------------------------------------------------------------

void RowNest::plan_stages() {
  std::vector<int> all = members();
  for (const std::vector<int>& further : {group_.row_values, group_.columns}) {
    for (int e : further) {
      if (!listed(all, e)) all.push_back(e);
    }
  }
  std::sort(all.begin(), all.end());
  std::map<int, int> level, stage;  // of row values, of positions
  const Symbol first_free = static_cast<Symbol>(index_.size());
  for (int e : all) {
    Item item{e, listed(group_.row_values, e), false, listed(group_.columns, e), 0, {}};
    const Equation& self = equation(e);
    item.reduces = item.per_row && is_reduction(self.primitive);
    if (item.reduces || item.column)
      item.reads = reads_of(self.inputs[0], index_, first_free);
    else
      item.reads =
          accesses(program_, fusion_, self, item.per_row ? row_index(self.outputs[0]) : index_, stops_, first_free);
    int row_level = 0, position_stage = 0;
    for (const Access& access : item.reads) {
      if (access.var.dropped()) continue;
      const int definition = fusion_.definition[at(access.var.id)];
      if (level.count(definition))
        row_level = std::max(row_level, level[definition]);
      else if (stage.count(definition))
        position_stage = std::max(position_stage, stage[definition]);
    }
    if (item.per_row && !item.reduces) {
      item.level = level[e] = row_level;
    } else {
      item.level = std::max(row_level + 1, position_stage);
      if (item.reduces)
        level[e] = item.level;
      else if (!item.column)
        stage[e] = item.level;
      stages_ = std::max(stages_, item.level);
    }
    items_.push_back(std::move(item));
  }
  for (const Item& item : items_) {
    if (item.per_row && !item.reduces) continue;
    for (const Access& access : item.reads) {
      if (access.var.dropped()) continue;
      int& last = last_read_[access.var.id];
      last = std::max(last, item.level);
      const int definition = fusion_.definition[at(access.var.id)];
      auto own = stage.find(definition);
      if (own != stage.end() && item.level > own->second) read_later_.push_back(definition);
    }
  }
}

// The row's index for a variable that may have dimensions of size 1 in between.
Index RowNest::row_index(Var var) const {
  Index row, shaped;
  for (std::size_t d = 0; d < group_.space.size(); ++d) {
    if (group_.row[d]) row.push_back(index_[d]);
  }
  std::size_t next = 0;
  const Shape& shape = type(var).shape;
  for (int64_t size : shape) {
    if (size == 1 && shape.size() != row.size())
      shaped.push_back(Affine());
    else
      shaped.push_back(next < row.size() ? row[next++] : Affine());
  }
  return shaped;
}

void RowNest::choose_loops() {
  const std::size_t rank = group_.space.size();
  Strides strides;
  strides.push_back(factors(linear(index_, group_.space), rank));
  for (const Item& item : items_) {
    for (const Access& access : item.reads) {
      if (access.var.dropped() || own_result(access.var) == -1) add_access(access, rank, strides);
    }
  }
  std::vector<int> kinds(rank, inner_kind);
  for (std::size_t d = 0; d < rank; ++d) {
    if (group_.row[d]) kinds[d] = !group_.summed.empty() && group_.summed[d] ? summed_kind : row_kind;
  }
  Strides without_rows = strides;
  Index row;
  Shape row_shape;
  for (std::size_t d = 0; d < rank; ++d) {
    if (!group_.row[d]) continue;
    row.push_back(index_[d]);
    row_shape.push_back(group_.space[d]);
  }
  strides.push_back(factors(linear(row, row_shape), rank));
  for (const Loop& loop : joined(group_.space, kinds, strides)) {
    (kinds[loop.last] == inner_kind ? inner_ : kinds[loop.last] == summed_kind ? summed_ : outer_).push_back(loop);
  }
  if (inner_.empty()) inner_.push_back({rank - 1, rank - 1, 1});
  // Summed rows and their inner dimensions as one run.
  std::vector<int> merged = kinds;
  for (int& kind : merged) kind = kind == row_kind ? row_kind : inner_kind;
  const std::vector<Loop> runs = joined(group_.space, merged, without_rows);
  if (!runs.empty() && merged[runs.back().last] == inner_kind &&
      runs.back().extent == size_of(summed_) * size_of(inner_)) {
    run_ = runs.back();
  }
  width_ = size_of(inner_);
  inner_size_ = static_cast<double>(width_);
  inner_strides_.assign(inner_.size(), 1);
  for (std::size_t k = inner_.size(); k-- > 1;) inner_strides_[k - 1] = inner_strides_[k] * inner_[k].extent;
}

void RowNest::make_scratch() {
  for (int e : group_.kept) {
    if (!listed(read_later_, e)) continue;
    const int64_t bytes = width_ * storage_size(type(equation(e).outputs[0]).dtype);
    if (bytes <= max_scratch) scratch_[e] = builder_.local(bytes);
  }
}

void RowNest::zero_rows() {
  for (std::size_t d = 0; d < group_.space.size(); ++d) {
    if (group_.row[d] && symbols_[d] == no_value) symbols_[d] = builder_.index(0);
  }
}

// ---- one row ------------------------------------------------------------------------------------------------------

void RowNest::write_row() {
  zero_rows();
  row_known_.clear();
  finish_row_values(0);
  for (int stage = 1; stage <= stages_; ++stage) {
    run_stage(stage);
    finish_row_values(stage);
  }
  store_row_values();
}

void RowNest::finish_row_values(int level) {
  for (const Item& item : items_) {
    if (!item.per_row || item.reduces || item.level != level) continue;
    const Var output = equation(item.equation).outputs[0];
    row_known_[output.id] = element_of(equation(item.equation), row_index(output));
  }
}

void RowNest::store_row_values() {
  for (int e : group_.results) {
    if (!listed(group_.row_values, e)) continue;
    const Var output = equation(e).outputs[0];
    store_element(builder_, type(output).dtype, address(output, linear(row_index(output), type(output).shape)),
                  row_known_.at(output.id));
  }
}

std::vector<Builder::Initial> RowNest::start_of(const Items& reductions) {
  std::vector<Builder::Initial> carried;
  for (const Item* item : reductions) {
    const Equation& self = equation(item->equation);
    const DType dtype = type(self.outputs[0]).dtype;
    const Monoid monoid = *self.primitive->traits.monoid;
    const Element identity = identity_element(builder_, monoid, dtype);
    const Op join = combine_op(monoid, dtype).value_or(Op::constant);
    for (int part = 0; part < identity.count; ++part)
      carried.push_back({identity.parts[part], join, identity.parts[part]});
  }
  return carried;
}

// The sums of an iteration combined with the elements at the current position.
std::vector<Value> RowNest::joined_sums(const Items& reductions, std::span<const Value> values) {
  std::vector<Value> next;
  std::size_t position = 0;
  for (const Item* item : reductions) {
    const Equation& self = equation(item->equation);
    const DType dtype = type(self.outputs[0]).dtype;
    const Element sum = take(dtype, values, position);
    const Element joined =
        combine(builder_, *self.primitive->traits.monoid, dtype, sum, element(self.inputs[0], index_));
    next.insert(next.end(), joined.parts, joined.parts + joined.count);
  }
  return next;
}

void RowNest::know_sums(const Items& reductions, std::span<const Value> sums) {
  std::size_t position = 0;
  for (const Item* item : reductions) {
    const Var output = equation(item->equation).outputs[0];
    row_known_[output.id] = rounded_element(builder_, type(output).dtype, take(type(output).dtype, sums, position));
  }
}

// Runs through the row once; returns the reductions of the stage and their sums.
std::pair<RowNest::Items, std::vector<Value>> RowNest::stage_sums(int stage) {
  Items reductions, positions;
  for (const Item& item : items_) {
    if (item.level != stage) continue;
    if (item.reduces)
      reductions.push_back(&item);
    else if (!item.per_row)
      positions.push_back(&item);
  }
  if (reductions.empty() && positions.empty()) return {};
  stage_ = stage;
  std::vector<Value> sums = inner_nest(0, start_of(reductions), [&](std::span<const Value> values) {
    // All reads precede all writes: a result may reuse the memory of an operand.
    std::vector<std::pair<const Item*, Element>> written;
    for (const Item* item : positions) {
      const Equation& self = equation(item->equation);
      if (!item->column) {
        written.emplace_back(item, computed(item->equation, index_));
        continue;
      }
      const Element value = element(self.inputs[0], index_);
      written.emplace_back(item, combine(builder_, *self.primitive->traits.monoid, type(self.outputs[0]).dtype,
                                         sum_at(item->equation), value));
    }
    const std::vector<Value> next = joined_sums(reductions, values);
    for (const auto& [item, value] : written) {
      const Var output = equation(item->equation).outputs[0];
      if (item->column) {
        store_sum(item->equation, value);
      } else if (listed(group_.results, item->equation)) {
        store_element(builder_, type(output).dtype, address(output, linear(index_, group_.space)), value);
      } else if (auto it = scratch_.find(item->equation); it != scratch_.end()) {
        store_element(builder_, type(output).dtype, scratch_address(it->second), value);
      }
    }
    return next;
  });
  return {std::move(reductions), std::move(sums)};
}

void RowNest::run_stage(int stage) {
  const auto [reductions, sums] = stage_sums(stage);
  know_sums(reductions, sums);
}

Address RowNest::scratch_address(int32_t buffer) const {
  Address address{buffer, 0, {}};
  for (std::size_t k = 0; k < inner_.size(); ++k) address.terms.push_back({lane_position(k), inner_strides_[k]});
  return address;
}

std::optional<Element> RowNest::held(Var var, int own, const Index& index) {
  if (own < 0 || stage_ == 0 || !finished_before(own)) return std::nullopt;
  if (auto scratch = scratch_.find(own); scratch != scratch_.end())
    return load_element(builder_, type(var).dtype, scratch_address(scratch->second));
  if (listed(group_.results, own))
    return load_element(builder_, type(var).dtype, address(var, linear(index, type(var).shape)));
  return std::nullopt;
}

// Stages after the first find the row in cache: the last of them prefetches the next row at the same time.
int64_t RowNest::ahead_of(Var var, const Affine& place) const {
  const auto last = last_read_.find(var.id);
  const std::vector<Loop>& rows = summed_.empty() ? outer_ : summed_;
  if (stage_ < 2 || last == last_read_.end() || last->second != stage_ || rows.empty()) return 0;
  const int64_t step = place.factor(static_cast<Symbol>(rows.back().last));
  return step * storage_size(type(var).dtype) >= min_prefetched ? step : 0;
}

bool RowNest::finished_before(int e) const {
  return std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
    return item.equation == e && !item.per_row && !item.column && item.level < stage_;
  });
}

std::vector<Region> write_row_nest(const Program& program, const Fusion& fusion, const Group& group,
                                   const Aliases& aliases) {
  return RowNest(program, fusion, group, aliases).write();
}

}  // namespace capibara::cpu
