// Loops, indices and addresses of a nest: dimensions that are contiguous in memory become a single loop.
#include "backends/cpu/regions/nest.h"

#include <algorithm>
#include <unordered_map>

namespace capibara::cpu {

namespace {

constexpr double nanoseconds_per_equation = 0.15, nanoseconds_per_function = 1.0;

// Inlined functions run slightly faster than calls, but each copy takes milliseconds to compile: at most this many
// copies of one function, and of all functions together.
constexpr int max_copies = 8, max_all_copies = 24;

}  // namespace

NestWriter::NestWriter(const Program& program, const Fusion& fusion, const Group& group, const Aliases& aliases)
    : program_(program),
      fusion_(fusion),
      group_(group),
      group_number_(static_cast<int>(&group - fusion.groups.data())),
      aliases_(aliases),
      builder_(region_.function) {
  stops_ = group.row_values;
  stops_.insert(stops_.end(), group.kept.begin(), group.kept.end());
  memo_.emplace_back();
  std::unordered_map<const PrimitiveRecord*, int> copies;
  int all = 0;
  for (int e : fusion_.members[at(group_number_)]) {
    const Primitive& primitive = program_.equations()[at(e)].primitive;
    if (!is_expensive(primitive)) continue;
    ++copies[&primitive.record()];
    ++all;
  }
  for (const auto& [record, count] : copies) {
    if (count > max_copies || (all > max_all_copies && count > 1)) shared_.insert(record);
  }
}

std::vector<int> NestWriter::members() const {
  std::vector<int> all = group_.results;
  all.insert(all.end(), group_.kept.begin(), group_.kept.end());
  std::sort(all.begin(), all.end());
  return all;
}

Region NestWriter::finish() {
  int expensive = 0;
  for (std::size_t e = 0; e < program_.equations().size(); ++e) {
    if (fusion_.home[e] != group_number_) continue;
    const Primitive& primitive = program_.equations()[e].primitive;
    if (is_expensive(primitive)) ++expensive;
  }
  region_.function.cost = inner_size_ * (group_.size * nanoseconds_per_equation + expensive * nanoseconds_per_function);
  return std::move(region_);
}

// ---- loops --------------------------------------------------------------------------------------------------------

void NestWriter::open_space(std::size_t rank) {
  space_rank_ = rank;
  symbols_.assign(rank, no_value);
}

std::vector<int64_t> NestWriter::factors(const Affine& place, std::size_t rank) {
  std::vector<int64_t> result(rank, 0);
  for (const auto& [symbol, factor] : place.terms) {
    if (at(symbol) < rank) result[at(symbol)] = factor;
  }
  return result;
}

void NestWriter::add_access(const Access& access, std::size_t rank, Strides& strides) const {
  strides.push_back(
      factors(access.var.dropped() ? access.index[0] : linear(access.index, type(access.var).shape), rank));
}

std::vector<Access> NestWriter::reads_of(Atom atom, const Index& index, Symbol first_free) const {
  if (atom.is_literal()) return {};
  const int definition = fusion_.definition[at(atom.code)];
  if (definition < 0 || !fusion_.inlined(atom.var()) || listed(stops_, definition)) return {{atom.var(), index}};
  return accesses(program_, fusion_, equation(definition), index, stops_, first_free);
}

std::vector<Loop> NestWriter::joined(const Shape& space, std::span<const int> kinds, const Strides& strides) {
  std::vector<Loop> loops;
  auto kind = [&](std::size_t d) { return kinds.empty() ? 0 : kinds[d]; };
  for (std::size_t d = 0; d < space.size(); ++d) {
    if (space[d] == 1 && space.size() > 1 && !(loops.empty() && d + 1 == space.size())) continue;
    bool joins = !loops.empty() && kind(loops.back().last) == kind(d);
    for (std::size_t between = joins ? loops.back().last + 1 : d; between < d; ++between) {
      joins = joins && (kind(between) == kind(d) || space[between] == 1);
    }
    joins = joins && std::all_of(strides.begin(), strides.end(), [&](const std::vector<int64_t>& factor) {
              return factor[loops.back().last] == factor[d] * space[d];
            });
    if (joins) {
      loops.back().last = d;
      loops.back().extent *= space[d];
    } else {
      loops.push_back({d, d, space[d]});
    }
  }
  return loops;
}

void NestWriter::enter(const Loop& loop, Value index) {
  for (std::size_t d = loop.first; d < loop.last; ++d) symbols_[d] = builder_.index(0);
  symbols_[loop.last] = index;
}

void NestWriter::enter_all(std::span<const Loop> loops, Value position) {
  for (std::size_t k = loops.size(); k-- > 1;) {
    const Value extent = builder_.index(loops[k].extent);
    enter(loops[k], builder_.compute(Op::remainder_unsigned, position, extent));
    position = builder_.compute(Op::divide_unsigned, position, extent);
  }
  if (!loops.empty()) enter(loops[0], position);
}

void NestWriter::zero_unset() {
  for (Value& value : symbols_) {
    if (value == no_value) value = builder_.index(0);
  }
}

int64_t NestWriter::size_of(std::span<const Loop> loops) {
  int64_t size = 1;
  for (const Loop& loop : loops) size *= loop.extent;
  return size;
}

// ---- indices ------------------------------------------------------------------------------------------------------

Symbol NestWriter::symbol(Value value) {
  for (std::size_t s = space_rank_; s < symbols_.size(); ++s) {
    if (symbols_[s] == value) return static_cast<Symbol>(s);
  }
  symbols_.push_back(value);
  return static_cast<Symbol>(symbols_.size()) - 1;
}

// The clamped start of a dynamic slice: at least 0, at most the last one at which the slice fits.
Value NestWriter::start_value(Atom atom, int64_t last) {
  const Element start = element(atom, {});
  const bool is_signed_start = is_signed(program_.type(atom).dtype);
  const Value wide = builder_.convert(is_signed_start ? Op::sign_extend : Op::zero_extend, Scalar::i64, start.parts[0]);
  const Value zero = builder_.index(0), limit = builder_.index(last);
  Value value = wide;
  if (is_signed_start) value = builder_.compute(Op::select, builder_.compute(Op::lt, wide, zero), zero, wide);
  const Op above = is_signed_start ? Op::gt : Op::gt_unsigned;
  return builder_.compute(Op::select, builder_.compute(above, value, limit), limit, value);
}

Value NestWriter::value_of(const Affine& place) {
  Value sum = builder_.index(place.constant + offset_of(place));
  for (const auto& [symbol, factor] : place.terms) {
    const Value scaled = builder_.compute(Op::mul, symbols_[at(symbol)], builder_.index(factor));
    sum = builder_.compute(Op::add, sum, scaled);
  }
  return sum;
}

Address NestWriter::address(Var var, const Affine& place) {
  Address result{parameter(var), place.constant + offset_of(place), {}};
  for (const auto& [symbol, factor] : place.terms) result.terms.push_back({symbols_[at(symbol)], factor});
  return result;
}

// Loops count from 0 even if they begin later.
int64_t NestWriter::offset_of(const Affine& place) const {
  int64_t sum = 0;
  for (const auto& [symbol, factor] : place.terms) {
    if (at(symbol) < offsets_.size()) sum += offsets_[at(symbol)] * factor;
  }
  return sum;
}

int32_t NestWriter::parameter(Var var) {
  if (auto other = aliases_.find(var.id); other != aliases_.end()) var = Var{other->second};
  auto [it, inserted] = parameters_.try_emplace(var.id, 0);
  if (inserted) {
    const ArrayType& own = type(var);
    it->second = builder_.parameter(own.size() * storage_size(own.dtype), false);
    region_.parameters.push_back(var);
  }
  return it->second;
}

int32_t NestWriter::temporary(int64_t bytes) {
  region_.temporary_bytes = bytes;
  region_.parameters.push_back(Var());
  return builder_.parameter(bytes, false);
}

}  // namespace capibara::cpu
