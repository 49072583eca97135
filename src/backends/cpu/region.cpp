// The loops of a group: dimensions that lie together in memory become one loop, rows run stage by stage.
#include "backends/cpu/region.h"

#include <algorithm>
#include <map>

#include "backends/cpu/builder.h"
#include "backends/cpu/element.h"

namespace capibara::cpu {

namespace {

constexpr int64_t largest_scratch = 64 * 1024;  // bytes of a row kept in the frame
constexpr std::size_t most_cuts = 8;            // of one loop
constexpr int64_t tile_width = 512;             // columns whose sums stay in the frame
constexpr double nanoseconds_per_equation = 0.15, nanoseconds_per_function = 1.0;

std::size_t at(int64_t position) { return static_cast<std::size_t>(position); }

// One loop: a run of dimensions of the space that every access passes in one stride.
struct Loop {
  std::size_t first, last;  // dimensions of the space
  int64_t extent;
};

class RegionWriter {
 public:
  RegionWriter(const Program& program, const Fusion& fusion, const Group& group, const Together& together)
      : program_(program), fusion_(fusion), group_(group), group_number_(number_of(fusion, group)), together_(together),
        builder_(region_.function) {
    stops_ = group.row_values;
    stops_.insert(stops_.end(), group.kept.begin(), group.kept.end());
    memo_.emplace_back();
  }

  Region loops() {
    space_rank_ = group_.space.size();
    for (std::size_t d = 0; d < group_.space.size(); ++d) symbols_.push_back(no_value);
    if (group_.row.empty()) flat();
    else rows();
    return finish();
  }

  // Writes a part of `value`, which begins at `first` and has this shape, into `target` at offset + index * stride + start.
  Region piece(Var target, Atom value, const Shape& shape, const Ints& first, const Ints& offsets, const Ints& strides,
               std::span<const Atom> starts) {
    space_rank_ = shape.size();
    for (std::size_t d = 0; d < shape.size(); ++d) symbols_.push_back(no_value);
    Index index, read;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      index.push_back(Affine::of(static_cast<Symbol>(d)));
      read.push_back(index.back());
      read.back().constant = first[d];
    }
    if (program_.type(value).shape.empty()) read.clear();
    const Shape& whole = program_.type(target).shape;
    std::vector<std::vector<int64_t>> strides_read;
    if (!value.is_literal()) add_accesses(value.var(), read, shape.size(), strides_read);
    Index stored = index;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      stored[d] = Affine(offsets[d]);
      stored[d].add(index[d], strides[d]);
    }
    strides_read.push_back(factors(linear(stored, whole), shape.size()));
    const std::vector<Loop> nest = joined(shape, {}, strides_read);
    for (std::size_t d = 0; d < starts.size(); ++d) {
      const int64_t last = whole[d] - shape[d];
      if (last > 0) stored[d].add(Affine::of(symbol(start_value(starts[d], last))));
    }
    run_flat(nest, [&] {
      const Element element = this->element(value, read);
      store_element(builder_, program_.type(target).dtype, address(target, linear(stored, whole)), element);
    });
    return finish();
  }

 private:
  using Strides = std::vector<std::vector<int64_t>>;  // per access: the factor of each dimension of the space
  using Key = std::pair<int32_t, std::vector<int64_t>>;

  static int number_of(const Fusion& fusion, const Group& group) { return static_cast<int>(&group - fusion.groups.data()); }
  const Equation& equation(int e) const { return program_.equations()[at(e)]; }
  const ArrayType& type(Var var) const { return program_.type(var); }
  bool listed(const std::vector<int>& list, int e) const { return std::find(list.begin(), list.end(), e) != list.end(); }

  Region finish() {
    int expensive = 0;
    for (std::size_t e = 0; e < program_.equations().size(); ++e) {
      if (fusion_.home[e] == group_number_ && is_expensive(program_.equations()[e].primitive)) ++expensive;
    }
    region_.function.cost = inner_size_ * (group_.size * nanoseconds_per_equation + expensive * nanoseconds_per_function);
    return std::move(region_);
  }

  // ---- which dimensions run together ----------------------------------------------------------------------------

  std::vector<int64_t> factors(const Affine& place, std::size_t rank) const {
    std::vector<int64_t> result(rank, 0);
    for (const auto& [symbol, factor] : place.terms) {
      if (at(symbol) < rank) result[at(symbol)] = factor;
    }
    return result;
  }

  void add_access(const Access& access, std::size_t rank, Strides& strides) const {
    strides.push_back(factors(access.var.dropped() ? access.index[0] : linear(access.index, type(access.var).shape), rank));
  }

  void add_accesses(Var var, const Index& index, std::size_t rank, Strides& strides) const {
    const int definition = fusion_.definition[at(var.id)];
    if (definition < 0 || !fusion_.inlined(var)) {
      add_access({var, index}, rank, strides);
      return;
    }
    for (const Access& access : accesses(program_, fusion_, equation(definition), index, stops_, static_cast<Symbol>(rank))) {
      add_access(access, rank, strides);
    }
  }

  static std::vector<Loop> joined(const Shape& space, const std::vector<bool>& row, const Strides& strides) {
    std::vector<Loop> loops;
    for (std::size_t d = 0; d < space.size(); ++d) {
      if (space[d] == 1 && space.size() > 1 && !(loops.empty() && d + 1 == space.size())) continue;
      bool joins = !loops.empty() && (row.empty() || row[loops.back().last] == row[d]);
      if (joins) {
        for (std::size_t between = loops.back().last + 1; between < d; ++between) joins = joins && (row.empty() || row[between] == row[d] || space[between] == 1);
        for (const std::vector<int64_t>& factor : strides) {
          if (factor[loops.back().last] != factor[d] * space[d]) joins = false;
        }
      }
      if (joins) {
        loops.back().last = d;
        loops.back().extent *= space[d];
      } else {
        loops.push_back({d, d, space[d]});
      }
    }
    return loops;
  }

  // Sets the symbols of a loop's dimensions: its index counts in steps of the last one.
  void enter(const Loop& loop, Value index) {
    for (std::size_t d = loop.first; d < loop.last; ++d) symbols_[d] = builder_.index(0);
    symbols_[loop.last] = index;
  }

  void zero_unset() {
    for (Value& value : symbols_) {
      if (value == no_value) value = builder_.index(0);
    }
  }

  // ---- flat groups ----------------------------------------------------------------------------------------------

  void flat() {
    if (group_.results.size() == 1 && group_.kept.empty() && is_reduction(equation(group_.results[0]).primitive) && !group_.space.empty()) {
      columns(equation(group_.results[0]));
      return;
    }
    const std::size_t rank = group_.space.size();
    Index index;
    for (std::size_t d = 0; d < rank; ++d) index.push_back(Affine::of(static_cast<Symbol>(d)));
    Strides strides;
    for (int e : members()) {
      for (const Access& access : accesses(program_, fusion_, equation(e), index, stops_, static_cast<Symbol>(rank))) {
        if (access.var.dropped() || own_result(access.var) == -1) add_access(access, rank, strides);
      }
    }
    strides.push_back(factors(linear(index, group_.space), rank));
    const std::vector<Loop> nest = joined(group_.space, {}, strides);
    if (group_.guarded && !nest.empty()) find_cuts(nest.back(), index);
    run_flat(nest, [&] {
      // Everything is read before anything is written: a result may lie where an operand lay.
      std::vector<std::pair<Var, Element>> values;
      for (int e : members()) {
        const Element value = computed(e, index);
        if (listed(group_.results, e)) values.emplace_back(equation(e).outputs[0], value);
      }
      for (const auto& [output, value] : values) {
        store_element(builder_, type(output).dtype, address(output, linear(index, group_.space)), value);
      }
    });
  }

  // ---- a reduction that keeps the last dimension ------------------------------------------------------------------

  // Sums of columns gather in a tile of the frame while whole rows of it stream by.
  void columns(const Equation& self) {
    const Var output = self.outputs[0];
    const DType dtype = type(output).dtype;
    const Shape& shape = program_.type(self.inputs[0]).shape;
    const std::vector<bool> kept = kept_dimensions(program_, self);
    const std::size_t rank = group_.space.size();
    Index index, place(shape.size());
    for (std::size_t d = 0; d < rank; ++d) index.push_back(Affine::of(static_cast<Symbol>(d)));
    std::vector<std::size_t> reduced;
    std::size_t next = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (kept[d]) place[d] = index[next++];
      else reduced.push_back(d);
    }
    for (std::size_t d : reduced) {
      place[d] = Affine::of(static_cast<Symbol>(symbols_.size()));
      symbols_.push_back(no_value);
    }
    Strides strides;
    for (const Access& access : operand_reads(self.inputs[0], place, static_cast<Symbol>(symbols_.size()))) add_access(access, rank, strides);
    strides.push_back(factors(linear(index, group_.space), rank));
    std::vector<Loop> nest = joined(group_.space, {}, strides);
    if (nest.empty()) nest.push_back({rank - 1, rank - 1, 1});
    const Loop inner = nest.back();
    nest.pop_back();
    const Monoid monoid = *monoid_of(self.primitive);
    const int parts = part_count(dtype);
    const Scalar held = computed_type(dtype);
    const int64_t width = std::min(inner.extent, tile_width), tiles = (inner.extent + width - 1) / width;
    int64_t rows = 1;
    for (std::size_t d : reduced) rows *= shape[d];
    inner_size_ = static_cast<double>(width * rows);
    std::vector<int32_t> sums;
    for (int part = 0; part < parts; ++part) sums.push_back(builder_.local(width * byte_size(held)));
    int64_t count = tiles;
    for (const Loop& loop : nest) count *= loop.extent;
    builder_.loop(count, {.parallel = true}, {}, [&](Value position, std::span<const Value>) {
      Scoped scope(*this);
      const Value all = builder_.index(tiles);
      const Value tile = tiles == 1 ? builder_.index(0) : builder_.compute(Op::remainder_unsigned, position, all);
      Value rest = tiles == 1 ? position : builder_.compute(Op::divide_unsigned, position, all);
      for (std::size_t k = nest.size(); k-- > 0;) {
        const Value extent = builder_.index(nest[k].extent);
        enter(nest[k], k == 0 ? rest : builder_.compute(Op::remainder_unsigned, rest, extent));
        if (k > 0) rest = builder_.compute(Op::divide_unsigned, rest, extent);
      }
      const Value begin = builder_.compute(Op::mul, tile, builder_.index(width));
      Value length = no_value;
      if (inner.extent % width != 0) {
        const Value left = builder_.compute(Op::sub, builder_.index(inner.extent), begin);
        const Value full = builder_.index(width);
        length = builder_.compute(Op::select, builder_.compute(Op::lt, left, full), left, full);
      }
      // The tile's own dimension: where it begins, and the position in it.
      auto over_tile = [&](auto&& write) {
        builder_.loop(width, {.lanes = true, .extent_value = length}, {}, [&](Value lane, std::span<const Value>) {
          Scoped inside(*this);
          enter(inner, lane);
          zero_unset();
          write(lane);
          return std::vector<Value>();
        });
      };
      auto sum_address = [&](int part, Value lane) { return Address{sums[at(part)], 0, {{lane, 1}}}; };
      const Symbol tile_start = symbol(begin);
      for (Affine& entry : place) {
        if (const int64_t factor = entry.factor(static_cast<Symbol>(inner.last))) entry.add(Affine::of(tile_start), factor);
      }
      for (Affine& entry : index) {
        if (const int64_t factor = entry.factor(static_cast<Symbol>(inner.last))) entry.add(Affine::of(tile_start), factor);
      }
      const Element identity = identity_element(builder_, monoid, dtype);
      over_tile([&](Value lane) {
        for (int part = 0; part < parts; ++part) builder_.store(identity.parts[part], sum_address(part, lane));
      });
      over_rows(reduced, 0, shape, rank, [&] {
        over_tile([&](Value lane) {
          Element sum;
          sum.count = parts;
          for (int part = 0; part < parts; ++part) sum.parts[part] = builder_.load(held, sum_address(part, lane));
          const Element total = combine(builder_, monoid, dtype, sum, element(self.inputs[0], place));
          for (int part = 0; part < parts; ++part) builder_.store(total.parts[part], sum_address(part, lane));
        });
      });
      over_tile([&](Value lane) {
        Element sum;
        sum.count = parts;
        for (int part = 0; part < parts; ++part) sum.parts[part] = builder_.load(held, sum_address(part, lane));
        store_element(builder_, dtype, address(output, linear(index, group_.space)), rounded_element(builder_, dtype, sum));
      });
      return std::vector<Value>();
    });
  }

  template <class Write>
  void over_rows(const std::vector<std::size_t>& reduced, std::size_t depth, const Shape& shape, std::size_t rank, Write&& write) {
    if (depth == reduced.size()) {
      write();
      return;
    }
    builder_.loop(shape[reduced[depth]], {}, {}, [&](Value position, std::span<const Value>) {
      Scoped scope(*this);
      symbols_[rank + depth] = position;
      over_rows(reduced, depth + 1, shape, rank, write);
      return std::vector<Value>();
    });
  }

  std::vector<int> members() const {
    std::vector<int> all = group_.results;
    all.insert(all.end(), group_.kept.begin(), group_.kept.end());
    std::sort(all.begin(), all.end());
    return all;
  }

  // Where the inner loop passes from one part of a pad or concatenation to the next.
  void find_cuts(const Loop& inner, const Index& index) {
    const Symbol lane = static_cast<Symbol>(inner.last);
    for (int e : members()) {
      for (const Access& access : accesses(program_, fusion_, equation(e), index, stops_, static_cast<Symbol>(index.size()))) {
        if (!access.var.dropped() || access.index.size() != 2) continue;
        const Affine& place = access.index[0];
        if (place.terms.size() != 1 || place.terms[0].first != lane || place.terms[0].second != 1) continue;
        for (int64_t cut : {-place.constant, access.index[1].constant - place.constant}) {
          if (cut > 0 && cut < inner.extent) cuts_.push_back(cut);
        }
      }
    }
    std::sort(cuts_.begin(), cuts_.end());
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
    if (cuts_.size() > most_cuts) cuts_.clear();
  }

  template <class Write>
  void run_flat(const std::vector<Loop>& nest, Write&& write) {
    offsets_.assign(symbols_.size(), 0);
    extents_.assign(symbols_.size(), 1);
    for (const Loop& loop : nest) extents_[loop.last] = loop.extent;
    if (nest.empty()) {
      zero_unset();
      write();
      return;
    }
    const Loop& inner = nest.back();
    auto run_inner = [&](bool parallel, int64_t begin, int64_t end) {
      offsets_[inner.last] = begin;
      extents_[inner.last] = end - begin;
      builder_.loop(end - begin, {.lanes = true, .parallel = parallel}, {}, [&](Value position, std::span<const Value>) {
        Scoped scope(*this);
        enter(inner, position);
        zero_unset();
        write();
        return std::vector<Value>();
      });
    };
    if (nest.size() == 1 && cuts_.empty()) {
      run_inner(true, 0, inner.extent);
      return;
    }
    inner_size_ = static_cast<double>(inner.extent);
    outer_loop(std::span(nest).first(nest.size() - 1), [&] {
      int64_t begin = 0;
      for (int64_t cut : cuts_) {
        run_inner(false, begin, cut);
        begin = cut;
      }
      run_inner(false, begin, inner.extent);
    });
  }

  // The least and the greatest value of an index; nothing where it depends on numbers found at run time.
  std::optional<std::pair<int64_t, int64_t>> range_of(const Affine& place) const {
    int64_t least = place.constant, most = place.constant;
    for (const auto& [symbol, factor] : place.terms) {
      if (at(symbol) >= extents_.size()) return std::nullopt;
      const int64_t first = offsets_[at(symbol)] * factor, last = (offsets_[at(symbol)] + extents_[at(symbol)] - 1) * factor;
      least += std::min(first, last);
      most += std::max(first, last);
    }
    return std::pair(least, most);
  }

  // The place inside a part along one dimension, kept in bounds; `inside` tells whether it was.
  Affine bounded(const Affine& place, int64_t size, Value& inside) {
    const Value position = value_of(place), zero = builder_.index(0), last = builder_.index(size - 1);
    const Value below = builder_.compute(Op::lt, position, zero), above = builder_.compute(Op::gt, position, last);
    const Value out = builder_.compute(Op::bit_or, below, above);
    const Value in = builder_.compute(Op::bit_xor, out, builder_.constant_int(Scalar::i1, 1));
    inside = inside == no_value ? in : builder_.compute(Op::bit_and, inside, in);
    return Affine::of(symbol(builder_.compute(Op::select, below, zero, builder_.compute(Op::select, above, last, position))));
  }

  // An element of a pad or concatenation: the part that its index falls into.
  Element guarded(const Equation& self, const Index& index) {
    const bool pads = self.primitive.is("pad");
    std::optional<Element> value;
    if (pads) value = element(self.inputs[1], {});
    for (const GuardedPart& part : guarded_parts(program_, self)) {
      const Shape& own = program_.type(self.inputs[part.operand]).shape;
      Index place = index;
      Value inside = no_value;
      bool outside = false;
      for (std::size_t d = 0; d < own.size() && !outside; ++d) {
        place[d].constant -= part.begin[d];
        if (own[d] == type(self.outputs[0]).shape[d]) continue;
        const auto range = range_of(place[d]);
        if (own[d] == 0 || (range && (range->second < 0 || range->first >= own[d]))) outside = true;
        else if (!range || range->first < 0 || range->second >= own[d]) place[d] = bounded(place[d], own[d], inside);
      }
      if (outside) continue;
      const Element found = element(self.inputs[part.operand], place);
      value = inside == no_value || !value ? found : select_element(builder_, inside, found, *value);
    }
    return *value;
  }

  // A parallel loop over all positions of these loops.
  template <class Write>
  void outer_loop(std::span<const Loop> outer, Write&& write) {
    int64_t count = 1;
    for (const Loop& loop : outer) count *= loop.extent;
    builder_.loop(count, {.parallel = true}, {}, [&](Value position, std::span<const Value>) {
      Scoped scope(*this);
      Value rest = position;
      for (std::size_t k = outer.size(); k-- > 1;) {
        const Value extent = builder_.index(outer[k].extent);
        enter(outer[k], builder_.compute(Op::remainder_unsigned, rest, extent));
        rest = builder_.compute(Op::divide_unsigned, rest, extent);
      }
      if (!outer.empty()) enter(outer[0], rest);
      write();
      return std::vector<Value>();
    });
  }

  // ---- groups with rows -----------------------------------------------------------------------------------------

  void rows() {
    const std::size_t rank = group_.space.size();
    Index index, row_index;
    for (std::size_t d = 0; d < rank; ++d) {
      index.push_back(Affine::of(static_cast<Symbol>(d)));
      if (group_.row[d]) row_index.push_back(index.back());
    }
    plan_stages(index);
    Strides strides;
    strides.push_back(factors(linear(index, group_.space), rank));
    Shape row_shape;
    for (std::size_t d = 0; d < rank; ++d) {
      if (group_.row[d]) row_shape.push_back(group_.space[d]);
    }
    strides.push_back(factors(linear(row_index, row_shape), rank));
    for (const Item& item : items_) {
      for (const Access& access : item.reads) {
        if (access.var.dropped() || own_result(access.var) == -1) add_access(access, rank, strides);
      }
    }
    std::vector<Loop> outer;
    std::vector<Loop>& inner = inner_;
    for (const Loop& loop : joined(group_.space, group_.row, strides)) (group_.row[loop.last] ? outer : inner).push_back(loop);
    if (inner.empty()) inner.push_back({rank - 1, rank - 1, 1});
    inner_size_ = 1;
    for (const Loop& loop : inner) inner_size_ *= static_cast<double>(loop.extent);
    inner_strides_.assign(inner.size(), 1);
    for (std::size_t k = inner.size(); k-- > 1;) inner_strides_[k - 1] = inner_strides_[k] * inner[k].extent;
    make_scratch();
    outer_loop(outer, [&] {
      for (std::size_t d = 0; d < rank; ++d) {
        if (group_.row[d] && symbols_[d] == no_value) symbols_[d] = builder_.index(0);
      }
      row_known_.clear();
      finish_row_values(0, row_index);
      for (int stage = 1; stage <= stages_; ++stage) {
        run_stage(stage, index);
        finish_row_values(stage, row_index);
      }
      for (int e : group_.results) {
        if (!listed(group_.row_values, e)) continue;
        const Var output = equation(e).outputs[0];
        store_element(builder_, type(output).dtype, address(output, linear(row_index, row_shape)), row_known_.at(output.id));
      }
      for (std::size_t d = 0; d < rank; ++d) symbols_[d] = no_value;
    });
  }

  // Something a group with rows computes: a value of the row, or one at each position of it.
  struct Item {
    int equation;
    bool per_row, reduces;
    int level = 0;  // a value of the row is known after this stage; one per position is computed in it
    std::vector<Access> reads;
  };

  void plan_stages(const Index& index) {
    std::vector<int> all = members();
    for (int e : group_.row_values) {
      if (!listed(all, e)) all.push_back(e);
    }
    std::sort(all.begin(), all.end());
    std::map<int, int> level, stage;  // of row values, of positions
    const Symbol first_free = static_cast<Symbol>(index.size());
    for (int e : all) {
      Item item{e, listed(group_.row_values, e), false, 0, {}};
      const Equation& self = equation(e);
      item.reduces = item.per_row && is_reduction(self.primitive);
      if (item.reduces) item.reads = operand_reads(self.inputs[0], index, first_free);
      else item.reads = accesses(program_, fusion_, self, item.per_row ? shaped_row_index(self.outputs[0], index) : index, stops_, first_free);
      int row_level = 0, position_stage = 0;
      for (const Access& access : item.reads) {
        if (access.var.dropped()) continue;
        const int definition = fusion_.definition[at(access.var.id)];
        if (level.count(definition)) row_level = std::max(row_level, level[definition]);
        else if (stage.count(definition)) position_stage = std::max(position_stage, stage[definition]);
      }
      if (item.per_row && !item.reduces) {
        item.level = level[e] = row_level;
      } else {
        item.level = std::max(row_level + 1, position_stage);
        (item.reduces ? level : stage)[e] = item.level;
        stages_ = std::max(stages_, item.level);
      }
      items_.push_back(std::move(item));
    }
    for (const Item& item : items_) {
      for (const Access& access : item.reads) {
        if (access.var.dropped()) continue;
        const int definition = fusion_.definition[at(access.var.id)];
        auto own = stage.find(definition);
        if (own != stage.end() && item.level > own->second && !(item.per_row && !item.reduces)) read_later_.push_back(definition);
      }
    }
  }

  std::vector<Access> operand_reads(Atom atom, const Index& index, Symbol first_free) const {
    if (atom.is_literal()) return {};
    const int definition = fusion_.definition[at(atom.code)];
    if (definition < 0 || !fusion_.inlined(atom.var()) || listed(stops_, definition)) return {{atom.var(), index}};
    return accesses(program_, fusion_, equation(definition), index, stops_, first_free);
  }

  Index shaped_row_index(Var var, const Index& index) const {
    Index row, shaped;
    for (std::size_t d = 0; d < group_.space.size(); ++d) {
      if (group_.row[d]) row.push_back(index[d]);
    }
    std::size_t next = 0;
    const Shape& shape = type(var).shape;
    for (int64_t size : shape) {
      if (size == 1 && shape.size() != row.size()) shaped.push_back(Affine());
      else shaped.push_back(next < row.size() ? row[next++] : Affine());
    }
    return shaped;
  }

  void make_scratch() {
    for (int e : group_.kept) {
      if (!listed(read_later_, e)) continue;
      const DType dtype = type(equation(e).outputs[0]).dtype;
      const int64_t bytes = static_cast<int64_t>(inner_size_) * storage_size(dtype);
      if (bytes <= largest_scratch) scratch_[e] = builder_.local(bytes);
    }
  }

  void finish_row_values(int level, const Index&) {
    for (const Item& item : items_) {
      if (!item.per_row || item.reduces || item.level != level) continue;
      const Var output = equation(item.equation).outputs[0];
      Index place;
      for (std::size_t d = 0; d < group_.space.size(); ++d) place.push_back(Affine::of(static_cast<Symbol>(d)));
      row_known_[output.id] = element_of(equation(item.equation), shaped_row_index(output, place));
    }
  }

  void run_stage(int stage, const Index& index) {
    std::vector<const Item*> reductions, positions;
    for (const Item& item : items_) {
      if (item.level != stage) continue;
      if (item.reduces) reductions.push_back(&item);
      else if (!item.per_row) positions.push_back(&item);
    }
    stage_ = stage;
    std::vector<Builder::Initial> carried;
    for (const Item* item : reductions) {
      const Equation& self = equation(item->equation);
      const DType dtype = type(self.outputs[0]).dtype;
      const Monoid monoid = *monoid_of(self.primitive);
      const Element identity = identity_element(builder_, monoid, dtype);
      const Op join = combine_op(monoid, dtype).value_or(Op::constant);
      for (int part = 0; part < identity.count; ++part) carried.push_back({identity.parts[part], join, identity.parts[part]});
    }
    const std::vector<Value> results = inner_nest(0, carried, [&](std::span<const Value> values) {
      for (const Item* item : positions) {
        const Var output = equation(item->equation).outputs[0];
        const Element value = computed(item->equation, index);
        if (listed(group_.results, item->equation)) {
          store_element(builder_, type(output).dtype, address(output, linear(index, group_.space)), value);
        } else if (auto place = scratch_.find(item->equation); place != scratch_.end()) {
          store_element(builder_, type(output).dtype, scratch_address(place->second), value);
        }
      }
      std::vector<Value> next;
      std::size_t position = 0;
      for (const Item* item : reductions) {
        const Equation& self = equation(item->equation);
        const DType dtype = type(self.outputs[0]).dtype;
        Element sum = take(dtype, values, position);
        const Element joined = combine(builder_, *monoid_of(self.primitive), dtype, sum, element(self.inputs[0], index));
        for (int part = 0; part < joined.count; ++part) next.push_back(joined.parts[part]);
      }
      return next;
    });
    std::size_t position = 0;
    for (const Item* item : reductions) {
      const Var output = equation(item->equation).outputs[0];
      row_known_[output.id] = rounded_element(builder_, type(output).dtype, take(type(output).dtype, results, position));
    }
  }

  Element take(DType dtype, std::span<const Value> values, std::size_t& position) const {
    Element element;
    element.count = part_count(dtype);
    for (int part = 0; part < element.count; ++part) element.parts[part] = values[position++];
    return element;
  }

  template <class Write>
  std::vector<Value> inner_nest(std::size_t depth, const std::vector<Builder::Initial>& carried, Write&& write) {
    const bool innermost = depth + 1 == inner_.size();
    return builder_.loop(inner_[depth].extent, {.lanes = innermost}, carried, [&](Value position, std::span<const Value> values) {
      Scoped scope(*this);
      enter(inner_[depth], position);
      if (innermost) {
        zero_unset();
        return write(values);
      }
      std::vector<Builder::Initial> further = carried;
      for (std::size_t i = 0; i < further.size(); ++i) further[i].value = values[i];
      return inner_nest(depth + 1, further, write);
    });
  }

  Address scratch_address(int32_t buffer) const {
    Address address{buffer, 0, {}};
    for (std::size_t k = 0; k < inner_.size(); ++k) address.terms.push_back({symbols_[inner_[k].last], inner_strides_[k]});
    return address;
  }

  // ---- elements -------------------------------------------------------------------------------------------------

  // Values found inside a loop are unknown outside of it.
  struct Scoped {
    explicit Scoped(RegionWriter& writer) : writer(writer), symbols(writer.symbols_) { writer.memo_.emplace_back(); }
    ~Scoped() {
      writer.memo_.pop_back();
      writer.symbols_ = std::move(symbols);
    }
    RegionWriter& writer;
    std::vector<Value> symbols;
  };

  static Key key_of(Var var, const Index& index) {
    std::vector<int64_t> words;
    for (const Affine& entry : index) {
      words.push_back(entry.constant);
      words.push_back(static_cast<int64_t>(entry.terms.size()));
      for (const auto& [symbol, factor] : entry.terms) words.insert(words.end(), {symbol, factor});
    }
    return {var.id, std::move(words)};
  }

  // The equation of this group that computes a variable, -1 where it comes from elsewhere.
  int own_result(Var var) const {
    const int definition = fusion_.definition[at(var.id)];
    return definition >= 0 && fusion_.home[at(definition)] == group_number_ ? definition : -1;
  }

  Element element(Atom atom, const Index& index) {
    if (atom.is_literal()) {
      const Array& literal = program_.literal(atom);
      return constant_element(builder_, literal.dtype(), literal.raw_data());
    }
    const Var var = atom.var();
    if (auto row = row_known_.find(var.id); row != row_known_.end()) return row->second;
    Key key = key_of(var, index);
    for (auto scope = memo_.rbegin(); scope != memo_.rend(); ++scope) {
      if (auto place = scope->find(key); place != scope->end()) return place->second;
    }
    const int own = own_result(var);
    Element found;
    if (own >= 0 && stage_ > 0 && finished_before(own)) {
      auto scratch = scratch_.find(own);
      if (scratch != scratch_.end()) found = load_element(builder_, type(var).dtype, scratch_address(scratch->second));
      else if (listed(group_.results, own)) found = load_element(builder_, type(var).dtype, address(var, linear(index, type(var).shape)));
      else found = element_of(equation(own), index);
    } else if (own >= 0) {
      found = element_of(equation(own), index);
    } else {
      found = load_element(builder_, type(var).dtype, address(var, linear(index, type(var).shape)));
    }
    memo_.back().emplace(std::move(key), found);
    return found;
  }

  bool finished_before(int e) const {
    for (const Item& item : items_) {
      if (item.equation == e) return !item.per_row && item.level < stage_;
    }
    return false;
  }

  Element computed(int e, const Index& index) { return element(Atom(equation(e).outputs[0]), index); }

  Element element_of(const Equation& self, const Index& index) {
    const Var output = self.outputs[0];
    const DType dtype = type(output).dtype;
    if (self.primitive.is("iota")) {
      return convert_element(builder_, DType::int64, dtype, Element(value_of(index[at(self.attrs.integer("dimension"))])));
    }
    if (moves_elements(self.primitive)) {
      std::optional<Index> place =
          moved_index(self, index, program_.type(self.inputs[0]).shape, type(output).shape,
                      [&](const Equation& slice, int64_t dimension, int64_t last) {
                        return symbol(start_value(slice.inputs[at(dimension) + 1], last));
                      });
      if (!place) throw InternalError(concat("cpu: ", self.primitive.name(), " was fused where its index is no sum"));
      return element(self.inputs[0], *place);
    }
    if (self.primitive.is("pad") || self.primitive.is("concatenate")) return guarded(self, index);
    if (is_reduction(self.primitive)) return reduced(self, index);
    std::vector<Element> inputs;
    std::vector<DType> dtypes;
    for (Atom input : self.inputs) {
      dtypes.push_back(program_.type(input).dtype);
      inputs.push_back(element(input, stretched_index(index, program_.type(input).shape)));
    }
    return apply_elementwise(builder_, self.primitive, self.attrs, dtypes, dtype, inputs);
  }

  // A reduction over loops of its own, inside those of the group.
  Element reduced(const Equation& self, const Index& index) {
    const DType dtype = type(self.outputs[0]).dtype;
    const Shape& shape = program_.type(self.inputs[0]).shape;
    const std::vector<bool> kept = kept_dimensions(program_, self);
    Index place(shape.size());
    std::vector<std::size_t> loops;
    std::size_t next = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (kept[d]) place[d] = index[next++];
      else loops.push_back(d);
    }
    const Element identity = identity_element(builder_, *monoid_of(self.primitive), dtype);
    std::vector<Value> initial(identity.parts, identity.parts + identity.count);
    std::vector<Value> sums = reduce_nest(self, dtype, loops, 0, shape, place, initial);
    std::size_t position = 0;
    return rounded_element(builder_, dtype, take(dtype, sums, position));
  }

  std::vector<Value> reduce_nest(const Equation& self, DType dtype, const std::vector<std::size_t>& loops, std::size_t depth,
                                 const Shape& shape, Index place, const std::vector<Value>& initial) {
    if (depth == loops.size()) {
      std::size_t position = 0;
      const Element sum = take(dtype, initial, position);
      const Element joined = combine(builder_, *monoid_of(self.primitive), dtype, sum, element(self.inputs[0], place));
      return {joined.parts, joined.parts + joined.count};
    }
    std::vector<Builder::Initial> carried;
    for (Value value : initial) carried.push_back({value});
    return builder_.loop(shape[loops[depth]], {}, carried, [&](Value position, std::span<const Value> values) {
      Scoped scope(*this);
      symbols_.push_back(position);
      place[loops[depth]] = Affine::of(static_cast<Symbol>(symbols_.size()) - 1);
      return reduce_nest(self, dtype, loops, depth + 1, shape, place, {values.begin(), values.end()});
    });
  }

  // ---- indices --------------------------------------------------------------------------------------------------

  Symbol symbol(Value value) {
    for (std::size_t s = space_rank_; s < symbols_.size(); ++s) {
      if (symbols_[s] == value) return static_cast<Symbol>(s);
    }
    symbols_.push_back(value);
    return static_cast<Symbol>(symbols_.size()) - 1;
  }

  // A start of a dynamic slice as it is used: at least 0, at most where the slice still fits.
  Value start_value(Atom atom, int64_t last) {
    const Element start = element(atom, {});
    const bool is_signed_start = is_signed(program_.type(atom).dtype);
    const Value wide = builder_.convert(is_signed_start ? Op::sign_extend : Op::zero_extend, Scalar::i64, start.parts[0]);
    const Value zero = builder_.index(0), limit = builder_.index(last);
    Value value = wide;
    if (is_signed_start) value = builder_.compute(Op::select, builder_.compute(Op::lt, wide, zero), zero, wide);
    const Op above = is_signed_start ? Op::gt : Op::gt_unsigned;
    return builder_.compute(Op::select, builder_.compute(above, value, limit), limit, value);
  }

  Value value_of(const Affine& place) {
    Value sum = builder_.index(place.constant + offset_of(place));
    for (const auto& [symbol, factor] : place.terms) {
      const Value scaled = builder_.compute(Op::mul, symbols_[at(symbol)], builder_.index(factor));
      sum = builder_.compute(Op::add, sum, scaled);
    }
    return sum;
  }

  Address address(Var var, const Affine& place) {
    Address result{parameter(var), place.constant + offset_of(place), {}};
    for (const auto& [symbol, factor] : place.terms) result.terms.push_back({symbols_[at(symbol)], factor});
    return result;
  }

  // Loops count from 0 also where they begin later.
  int64_t offset_of(const Affine& place) const {
    int64_t sum = 0;
    for (const auto& [symbol, factor] : place.terms) {
      if (at(symbol) < offsets_.size()) sum += offsets_[at(symbol)] * factor;
    }
    return sum;
  }

  int32_t parameter(Var var) {
    if (auto other = together_.find(var.id); other != together_.end()) var = Var{other->second};
    auto [place, inserted] = parameters_.try_emplace(var.id, 0);
    if (inserted) {
      const ArrayType& own = type(var);
      place->second = builder_.parameter(own.size() * storage_size(own.dtype), false);
      region_.parameters.push_back(var);
    }
    return place->second;
  }

  const Program& program_;
  const Fusion& fusion_;
  const Group& group_;
  const int group_number_;
  const Together& together_;
  Region region_;
  Builder builder_;
  std::vector<int> stops_;
  std::vector<Value> symbols_;
  std::vector<std::map<Key, Element>> memo_;
  std::map<int32_t, int32_t> parameters_;
  std::vector<int64_t> offsets_, extents_;  // where the loops of the space begin, and how long they are
  std::vector<int64_t> cuts_;               // of the inner loop
  double inner_size_ = 1;
  std::size_t space_rank_ = 0;  // symbols below are dimensions of the space

  std::vector<Item> items_;
  std::vector<int> read_later_;
  std::map<int, int32_t> scratch_;
  std::map<int32_t, Element> row_known_;
  std::vector<int64_t> inner_strides_;
  std::vector<Loop> inner_;
  int stages_ = 0, stage_ = 0;
};

// A part of an operand and where it goes.
struct Part {
  Atom value;
  Shape shape;
  Ints first, offsets, strides;
  std::span<const Atom> starts;
};

int64_t ceil_div(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

std::vector<Part> parts_of(const Program& program, const Equation& self, bool in_place) {
  std::vector<Part> parts;
  const Shape& whole = program.type(self.outputs[0]).shape;
  const Ints zeros(whole.size(), 0), ones(whole.size(), 1);
  if (self.primitive.is("concatenate")) {
    Ints offsets = zeros;
    const std::size_t dimension = at(self.attrs.integer("dimension"));
    for (Atom input : self.inputs) {
      parts.push_back({input, program.type(input).shape, zeros, offsets, ones, {}});
      offsets[dimension] += program.type(input).shape[dimension];
    }
  } else if (self.primitive.is("dynamic_update_slice")) {
    if (!in_place) parts.push_back({self.inputs[0], whole, zeros, zeros, ones, {}});
    parts.push_back({self.inputs[1], program.type(self.inputs[1]).shape, zeros, zeros, ones, std::span(self.inputs).subspan(2)});
  } else {  // pad
    parts.push_back({self.inputs[1], whole, zeros, zeros, ones, {}});
    Part inner{self.inputs[0], program.type(self.inputs[0]).shape, zeros, zeros, ones, {}};
    const Attr::List& config = self.attrs.list("padding_config");
    for (std::size_t d = 0; d < whole.size(); ++d) {
      const Ints& padding = *config[d].get_if<Ints>();
      const int64_t low = padding[0], stride = padding[2] + 1;
      const int64_t begin = std::max<int64_t>(0, ceil_div(-low, stride));
      const int64_t end = std::min(inner.shape[d], whole[d] > low ? (whole[d] - 1 - low) / stride + 1 : 0);
      inner.first[d] = begin;
      inner.shape[d] = std::max<int64_t>(0, end - begin);
      inner.offsets[d] = low + begin * stride;
      inner.strides[d] = stride;
    }
    parts.push_back(std::move(inner));
  }
  return parts;
}

}  // namespace

std::vector<Region> write_regions(const Program& program, const Fusion& fusion, const Group& group,
                                  const Together& together, bool in_place) {
  std::vector<Region> regions;
  if (group.work == Work::loops) {
    regions.push_back(RegionWriter(program, fusion, group, together).loops());
    return regions;
  }
  const Equation& self = program.equations()[at(group.results[0])];
  for (const Part& part : parts_of(program, self, in_place)) {
    if (element_count(part.shape) == 0) continue;
    regions.push_back(RegionWriter(program, fusion, group, together)
                          .piece(self.outputs[0], part.value, part.shape, part.first, part.offsets, part.strides, part.starts));
  }
  return regions;
}

}  // namespace capibara::cpu
