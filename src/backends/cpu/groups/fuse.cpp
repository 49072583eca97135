// Fusion: visits equations from last to first; each joins the loops of its readers, opens a nest, or becomes a call.
#include "backends/cpu/groups/fuse.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "backends/cpu/elements/element.h"
#include "backends/cpu/groups/access.h"
#include "backends/cpu/groups/fuse_sharing.h"
#include "program/ir/handles.h"

namespace capibara::cpu {

namespace {

constexpr int64_t copies_of_cheap_values = 4;  // a cheap value may be recomputed this often instead of being stored
constexpr int64_t one_row = 16384;             // elements: up to here a full reduction runs as one row
constexpr int64_t min_row_length = 4;
constexpr int64_t large_space = 1024;               // elements
constexpr int64_t few_rows = 32, long_row = 65536;  // such rows are split among threads, and nothing else can join
constexpr int64_t max_accumulated = 65536;          // elements of all column sums that are accumulated along with rows
constexpr int64_t min_accumulated = 64;             // columns: with fewer, column sums share no loops
constexpr int64_t min_transposed = 4096;            // elements: smaller transposes are read without tiles

class Fuser {
 public:
  explicit Fuser(const Program& program) : program_(program) {
    const std::size_t vars = at(program.var_count()), equations = program.equations().size();
    fusion_.definition.assign(vars, -1);
    fusion_.home.assign(equations, -1);
    fusion_.stored.assign(vars, true);
    readers_.resize(vars);
    is_output_.assign(vars, false);
    copies_.assign(equations, 1);
    reduced_.assign(equations, false);
    for (std::size_t e = 0; e < equations; ++e) {
      const Equation& equation = program.equations()[e];
      for (Atom input : equation.inputs) {
        if (!input.is_literal()) readers_[at(input.code)].push_back(static_cast<int>(e));
      }
      for (Var output : equation.outputs) {
        if (!output.dropped()) fusion_.definition[at(output.id)] = static_cast<int>(e);
      }
    }
    for (Atom output : program.outputs()) {
      if (!output.is_literal()) is_output_[at(output.code)] = true;
    }
    find_shared();
  }

  Fusion run() {
    for (std::size_t e = program_.equations().size(); e-- > 0;) place(static_cast<int>(e));
    order();
    return std::move(fusion_);
  }

 private:
  const Equation& equation(int e) const { return program_.equations()[at(e)]; }
  Group& group(int g) { return fusion_.groups[at(g)]; }
  const Shape& shape(Var var) const { return program_.type(var).shape; }

  void find_shared() {
    fusion_.shared.assign(at(program_.var_count()), false);
    for (std::size_t e = program_.equations().size(); e-- > 0;) {
      for (Var output : equation(static_cast<int>(e)).outputs) {
        if (output.dropped()) continue;
        const std::vector<int>& readers = readers_[at(output.id)];
        const std::size_t count = readers.size() + (is_output_[at(output.id)] ? 1 : 0);
        const bool moved = readers.size() == 1 && moves_elements(equation(readers[0]).primitive);
        fusion_.shared[at(output.id)] = count > 1 || (moved && fusion_.shared[at(equation(readers[0]).outputs[0].id)]);
      }
    }
  }

  void place(int e) {
    const Equation& reader = equation(e);
    const Work work = work_of(program_, reader);
    const bool needed =
        !reader.effects.empty() || std::any_of(reader.outputs.begin(), reader.outputs.end(), [&](Var output) {
          return !output.dropped() && (is_output_[at(output.id)] || !readers_[at(output.id)].empty());
        });
    if (!needed) return;
    if (work == Work::pieces && joins_guarded(e)) return;
    if (work != Work::loops) return open(e, work, {}, {});
    const Var output = reader.outputs[0];
    std::vector<int> homes;
    int64_t copies = copies_read(output, homes);
    if (!is_output_[at(output.id)] && homes.size() == 1) {
      Group& reading = group(homes[0]);
      const bool opens_loops = reading.work == Work::loops || reading.work == Work::pieces;
      const bool transposes = transposes_rows(reader);
      if (opens_loops && has_room(program_, fusion_, e, homes[0]) && inlines(e, copies) &&
          !(transposes && !reading.row.empty()) && !hinders_update(e, reading)) {
        reading.transposed = reading.transposed || transposes;
        fusion_.stored[at(output.id)] = false;
        fusion_.home[at(e)] = homes[0];
        copies_[at(e)] = copies;
        reduced_[at(e)] = std::any_of(readers_[at(output.id)].begin(), readers_[at(output.id)].end(),
                                      [&](int r) { return is_reduction(equation(r).primitive) || reduced_[at(r)]; });
        ++reading.size;
        return;
      }
      if (joins_rows(e, homes[0])) {
        fusion_.stored[at(output.id)] = false;
        join_rows(e, homes[0]);
        return;
      }
    }
    store(e, homes);
  }

  // A pad or concatenation read by a single nest without rows is computed there instead of being stored first.
  bool joins_guarded(int e) {
    const Equation& self = equation(e);
    const Var output = self.outputs[0];
    if (!is_guarded(program_, self) || is_output_[at(output.id)]) return false;
    std::vector<int> homes;
    copies_read(output, homes);
    if (homes.size() != 1) return false;
    Group& reading = group(homes[0]);
    if (reading.work != Work::loops || !reading.row.empty() || reading.size >= max_group) return false;
    for (int result : reading.results) {
      if (is_reduction(equation(result).primitive)) return false;
    }
    reading.guarded = true;
    fusion_.stored[at(output.id)] = false;
    fusion_.home[at(e)] = homes[0];
    copies_[at(e)] = 1;
    ++reading.size;
    return true;
  }

  // How often each element of the variable would be computed if its readers did so; and the groups of the readers.
  int64_t copies_read(Var var, std::vector<int>& homes) {
    int64_t sum = 0, most = 0;
    bool same_place = true;
    const int64_t size = std::max<int64_t>(1, element_count(shape(var)));
    for (int e : readers_[at(var.id)]) {
      const int home = fusion_.home[at(e)];
      if (home < 0) continue;
      if (std::find(homes.begin(), homes.end(), home) == homes.end()) homes.push_back(home);
      const Equation& reader = equation(e);
      if (work_of(program_, reader) != Work::loops) {
        same_place = false;
        ++sum;
        continue;
      }
      const int64_t read = is_reduction(reader.primitive) ? size : element_count(shape(reader.outputs[0]));
      const int64_t stretch = std::max<int64_t>(1, read / size);
      sum += copies_[at(e)] * stretch;
      most = std::max(most, copies_[at(e)] * stretch);
      if (moves_elements(reader.primitive) || is_reduction(reader.primitive) || read != size) same_place = false;
      // A value that feeds a reduction and one that is used after it, within the row, are computed at different times.
      if (reduced_[at(e)] != reduced_[at(readers_[at(var.id)].front())]) same_place = false;
    }
    return same_place ? most : sum;
  }

  bool inlines(int e, int64_t copies) const {
    const Equation& self = equation(e);
    if (is_reduction(self.primitive)) return false;
    if (moves_elements(self.primitive) || self.primitive == prim::iota()) return true;
    if (is_expensive(self.primitive)) return copies == 1;
    return copies <= copies_of_cheap_values;
  }

  // A slice of an array that the group updates elsewhere:
  // if it is read before, the update can be done in place.
  bool hinders_update(int e, const Group& reading) const {
    const Equation& self = equation(e);
    if (reading.work != Work::pieces || self.primitive != prim::dynamic_slice()) return false;
    const Equation& update = equation(reading.results[0]);
    if (update.primitive != prim::dynamic_update_slice() || update.inputs[0] != self.inputs[0]) return false;
    const bool same_place =
        std::equal(self.inputs.begin() + 1, self.inputs.end(), update.inputs.begin() + 2, update.inputs.end()) &&
        shape(self.outputs[0]) == program_.type(update.inputs[1]).shape;
    return !same_place && element_count(shape(self.outputs[0])) * 4 <= program_.type(self.inputs[0]).size();
  }

  // A transpose that moves the last dimension of an array large enough for a tiled nest of its own.
  bool transposes_rows(const Equation& self) const {
    if (self.primitive != prim::transpose() || program_.type(self.outputs[0]).size() < min_transposed) return false;
    return self.attrs.ints("permutation").back() + 1 != static_cast<int64_t>(shape(self.outputs[0]).size());
  }

  // The index of the space itself, one symbol per dimension.
  static Index loop_index(const Group& group) {
    Index index;
    for (std::size_t d = 0; d < group.space.size(); ++d) index.push_back(Affine::of(static_cast<Symbol>(d)));
    return index;
  }

  static Index row_index(const Group& group) {
    Index index;
    for (std::size_t d = 0; d < group.space.size(); ++d) {
      if (group.row[d]) index.push_back(Affine::of(static_cast<Symbol>(d)));
    }
    return index;
  }

  // All indices at which a group reads a variable, over the group's loops.
  std::vector<Index> places_read(int g, Var var) {
    Group& reading = group(g);
    std::vector<Index> places;
    const int definition = fusion_.definition[at(var.id)];
    std::vector<int> stops = reading.row_values;
    stops.insert(stops.end(), reading.kept.begin(), reading.kept.end());
    stops.push_back(definition);
    std::vector<int> members = reading.results;
    members.insert(members.end(), reading.row_values.begin(), reading.row_values.end());
    members.insert(members.end(), reading.kept.begin(), reading.kept.end());
    members.insert(members.end(), reading.columns.begin(), reading.columns.end());
    for (int e : members) {
      const bool by_row = !reading.row.empty() && std::find(reading.row_values.begin(), reading.row_values.end(), e) !=
                                                      reading.row_values.end();
      Index index = by_row ? shaped_row_index(reading, equation(e).outputs[0]) : loop_index(reading);
      // Row reductions and column sums run over the group's own loops.
      const bool column = std::find(reading.columns.begin(), reading.columns.end(), e) != reading.columns.end();
      if (column || (by_row && is_reduction(equation(e).primitive))) {
        collect(equation(e).inputs[0], loop_index(reading), stops, var, places);
        continue;
      }
      for (Access& access :
           accesses(program_, fusion_, equation(e), index, stops, static_cast<Symbol>(reading.space.size()))) {
        if (access.var == var) places.push_back(std::move(access.index));
      }
    }
    return places;
  }

  void collect(Atom atom, const Index& index, const std::vector<int>& stops, Var var, std::vector<Index>& places) {
    if (atom.is_literal()) return;
    const int definition = fusion_.definition[at(atom.code)];
    if (atom.var() == var) {
      places.push_back(index);
      return;
    }
    if (definition < 0 || !fusion_.inlined(atom.var()) ||
        std::find(stops.begin(), stops.end(), definition) != stops.end())
      return;
    for (Access& access :
         accesses(program_, fusion_, equation(definition), index, stops, static_cast<Symbol>(index.size()))) {
      if (access.var == var) places.push_back(std::move(access.index));
    }
  }

  // The row's index for a variable that may have dimensions of size 1 in between.
  Index shaped_row_index(const Group& group, Var var) const {
    Index row = row_index(group), index;
    std::size_t next = 0;
    for (int64_t size : shape(var)) {
      if (size == 1 && shape(var).size() != row.size())
        index.push_back(Affine());
      else
        index.push_back(next < row.size() ? row[next++] : Affine());
    }
    return index;
  }

  // The loops that an index consists of, in ascending order; nullopt for any other index.
  static std::optional<std::vector<bool>> plain_loops(const Index& index, std::span<const int64_t> shape,
                                                      const Shape& space) {
    std::vector<bool> named(space.size(), false);
    Symbol last = -1;
    for (std::size_t d = 0; d < index.size(); ++d) {
      if (shape[d] == 1 && index[d] == Affine()) continue;
      if (index[d].constant != 0 || index[d].terms.size() != 1 || index[d].terms[0].second != 1) return std::nullopt;
      const Symbol symbol = index[d].terms[0].first;
      if (symbol <= last || at(symbol) >= space.size() || space[at(symbol)] != shape[d]) return std::nullopt;
      named[at(symbol)] = true;
      last = symbol;
    }
    return named;
  }

  // True if a value that is read once per row can be computed once per row of its reading group.
  bool joins_rows(int e, int g) {
    Group& reading = group(g);
    if (reading.work != Work::loops || reading.guarded || reading.transposed || reading.size >= max_group) return false;
    if (reading.space.empty()) return false;
    const Equation& self = equation(e);
    const Var output = self.outputs[0];
    std::vector<bool> mask;
    for (const Index& place : places_read(g, output)) {
      std::optional<std::vector<bool>> named = plain_loops(place, shape(output), reading.space);
      if (!named || (!mask.empty() && *named != mask)) return false;
      mask = *named;
    }
    if (mask.empty() || mask.back()) return false;
    return fits_rows(e, reading, mask);
  }

  bool fits_rows(int e, const Group& reading, const std::vector<bool>& mask) const {
    const Equation& self = equation(e);
    if (!reading.row.empty() && reading.row != mask) return false;
    // The mask cannot distinguish dimensions of size 1 that belong to no loop.
    int64_t rows = 1, length = 1, named = 1;
    for (std::size_t d = 0; d < mask.size(); ++d) (mask[d] ? rows : length) *= reading.space[d];
    for (int64_t size : shape(self.outputs[0])) named *= size;
    if (named != rows || length < min_row_length) return false;
    if (std::find(mask.begin(), mask.end(), true) == mask.end() && length > one_row) return false;
    if (rows <= few_rows && length >= long_row) return false;
    if (static_cast<int64_t>(reading.columns.size()) * length > max_accumulated) return false;
    if (is_reduction(self.primitive)) {
      return program_.type(self.inputs[0]).shape == reading.space && kept_dimensions(program_, self) == mask;
    }
    // Results of the group keep their shape: only reductions and values of a single row mix.
    return true;
  }

  void join_rows(int e, int g) {
    Group& reading = group(g);
    if (reading.row.empty()) {
      std::vector<bool> mask;
      const Var output = equation(e).outputs[0];
      mask = *plain_loops(places_read(g, output)[0], shape(output), reading.space);
      reading.row = mask;
    }
    reading.row_values.insert(reading.row_values.begin(), e);
    fusion_.home[at(e)] = g;
    ++reading.size;
  }

  bool reads_in_place(int g, Var var) {
    const Index own = loop_index(group(g));
    for (const Index& place : places_read(g, var)) {
      if (place.size() != own.size()) return false;
      for (std::size_t d = 0; d < own.size(); ++d) {
        if (place[d] != own[d] && !(group(g).space[d] == 1)) return false;
      }
    }
    return true;
  }

  void store(int e, const std::vector<int>& homes) {
    const Equation& self = equation(e);
    const Var output = self.outputs[0];
    int deepest = 0;
    for (int home : homes) deepest = std::max(deepest, group(home).depth);
    auto others_later = [&](int g) {
      return std::all_of(homes.begin(), homes.end(),
                         [&](int home) { return home == g || group(home).depth < group(g).depth; });
    };
    const bool reduces = is_reduction(self.primitive), transposes = transposes_rows(self);
    for (int home : homes) {
      Group& reading = group(home);
      if (reading.work != Work::loops || reading.depth != deepest || !has_room(program_, fusion_, e, home) ||
          !others_later(home))
        continue;
      if (transposes && !reading.row.empty()) continue;
      if (!reduces && reading.space == shape(output) && reads_in_place(home, output)) {
        const bool only_here = homes.size() == 1 && !is_output_[at(output.id)];
        (only_here ? reading.kept : reading.results).insert((only_here ? reading.kept : reading.results).begin(), e);
        if (only_here) fusion_.stored[at(output.id)] = false;
        fusion_.home[at(e)] = home;
        reading.transposed = reading.transposed || transposes;
        ++reading.size;
        return;
      }
      if (joins_rows(e, home)) {
        join_rows(e, home);
        group(home).results.insert(group(home).results.begin(), e);
        return;
      }
    }
    const std::vector<bool> kept = reduces ? kept_dimensions(program_, self) : std::vector<bool>();
    if (reduces && !kept.empty() && kept.back()) return accumulate_columns(e, kept, deepest);
    const bool by_rows = reduces && !kept.empty() && row_length(self, kept) >= min_row_length;
    const Shape& space = by_rows ? program_.type(self.inputs[0]).shape : shape(output);
    // A neighbour that runs before all readers and has the same loops.
    const int neighbour = find_neighbour(e, space, deepest, [&](const Group& other) {
      if (by_rows) return other.row == kept && fits_rows(e, other, kept);
      return !reduces && (other.row.empty() || (!other.columns.empty() && !transposes));
    });
    if (neighbour < 0) return open(e, Work::loops, space, by_rows ? kept : std::vector<bool>());
    if (by_rows) {
      join_rows(e, neighbour);
    } else {
      fusion_.home[at(e)] = neighbour;
      group(neighbour).transposed = group(neighbour).transposed || transposes;
      ++group(neighbour).size;
    }
    group(neighbour).results.insert(group(neighbour).results.begin(), e);
  }

  // Column sums: accumulated by a neighbour that runs over all rows anyway, or by a nest of their own.
  void accumulate_columns(int e, const std::vector<bool>& kept, int deepest) {
    const Shape& space = program_.type(equation(e).inputs[0]).shape;
    std::vector<bool> summed(kept.size()), row(kept.size(), true);
    for (std::size_t d = 0; d < kept.size(); ++d) summed[d] = !kept[d];
    for (std::size_t d = kept.size(); d-- > 0 && kept[d];) row[d] = false;
    const int neighbour = element_count(space) == 0 ? -1 : find_neighbour(e, space, deepest, [&](const Group& other) {
      const std::vector<bool>& rows = other.row.empty() ? row : other.row;
      int64_t width = 1;
      for (std::size_t d = 0; d < rows.size(); ++d) {
        if (!rows[d] && summed[d]) return false;
        if (!rows[d]) width *= space[d];
      }
      if (other.guarded || other.transposed || (!other.columns.empty() && other.summed != summed)) return false;
      const int64_t sums = static_cast<int64_t>(other.columns.size()) + 1;
      return width >= min_accumulated && sums <= 8 && (other.row_values.empty() || sums * width <= max_accumulated);
    });
    if (neighbour < 0) open(e, Work::loops, space, row);
    Group& summing = neighbour < 0 ? fusion_.groups.back() : group(neighbour);
    if (neighbour < 0) {
      summing.row_values.clear();
    } else {
      summing.results.insert(summing.results.begin(), e);
      fusion_.home[at(e)] = neighbour;
      ++summing.size;
    }
    if (summing.row.empty()) summing.row = row;
    summing.summed = summed;
    summing.columns.insert(summing.columns.begin(), e);
  }

  // A nest over this space, among the last few, that runs before all readers; -1 if there is none. Over large spaces
  // the two must read something in common: otherwise one nest saves nothing, and keeps the operands of both alive.
  template <class Fits>
  int find_neighbour(int e, const Shape& space, int deepest, Fits&& fits) {
    const auto it = by_space_.find(space);
    if (it == by_space_.end()) return -1;
    int looked_at = 0;
    for (auto g = it->second.rbegin(); g != it->second.rend() && looked_at < 4; ++g, ++looked_at) {
      const Group& other = group(*g);
      if (other.depth <= deepest || other.size >= max_group || !fits(other)) continue;
      if (element_count(space) < large_space || reads_with(program_, fusion_, readers_, e, *g)) return *g;
    }
    return -1;
  }

  int64_t row_length(const Equation& self, const std::vector<bool>& kept) const {
    int64_t length = 1;
    const Shape& operand = program_.type(self.inputs[0]).shape;
    for (std::size_t d = 0; d < kept.size(); ++d) {
      if (!kept[d]) length *= operand[d];
    }
    return length;
  }

  void open(int e, Work work, const Shape& space, const std::vector<bool>& row) {
    const Equation& self = equation(e);
    int deepest = 0;
    for (Var output : self.outputs) {
      if (output.dropped()) continue;
      for (int reader : readers_[at(output.id)]) {
        const int home = fusion_.home[at(reader)];
        if (home >= 0) deepest = std::max(deepest, group(home).depth);
      }
    }
    if (!self.effects.empty()) deepest = std::max(deepest, deepest_of_all_);
    Group opened;
    opened.work = work;
    opened.results = {e};
    opened.space = space;
    opened.row = row;
    if (!row.empty()) opened.row_values = {e};
    opened.transposed = work == Work::loops && transposes_rows(self);
    opened.depth = deepest + 1;
    opened.size = 1;
    deepest_of_all_ = std::max(deepest_of_all_, opened.depth);
    fusion_.home[at(e)] = static_cast<int>(fusion_.groups.size());
    if (work == Work::loops) by_space_[space].push_back(static_cast<int>(fusion_.groups.size()));
    fusion_.groups.push_back(std::move(opened));
  }

  // A group runs as soon as its operands exist, in the order of the equations.
  void order() {
    const std::size_t count = fusion_.groups.size();
    std::vector<std::set<int>> later(count);
    std::vector<int> waiting(count, 0);
    std::vector<int> last_effect;
    for (std::size_t e = 0; e < program_.equations().size(); ++e) {
      const int home = fusion_.home[e];
      if (home < 0) continue;
      for (Atom input : program_.equations()[e].inputs) {
        if (input.is_literal()) continue;
        const int definition = fusion_.definition[at(input.code)];
        if (definition < 0) continue;
        const int from = fusion_.home[at(definition)];
        if (from != home && later[at(from)].insert(home).second) ++waiting[at(home)];
      }
      if (!program_.equations()[e].effects.empty()) {
        if (!last_effect.empty() && last_effect.back() != home && later[at(last_effect.back())].insert(home).second)
          ++waiting[at(home)];
        last_effect.push_back(home);
      }
    }
    auto position = [&](int g) { return fusion_.groups[at(g)].results.back(); };
    auto after = [&](int a, int b) { return position(a) > position(b); };
    std::priority_queue<int, std::vector<int>, decltype(after)> ready(after);
    for (std::size_t g = 0; g < count; ++g) {
      if (waiting[g] == 0) ready.push(static_cast<int>(g));
    }
    std::vector<Group> ordered;
    std::vector<int> place(count, -1);
    while (!ready.empty()) {
      const int g = ready.top();
      ready.pop();
      place[at(g)] = static_cast<int>(ordered.size());
      ordered.push_back(std::move(fusion_.groups[at(g)]));
      for (int next : later[at(g)]) {
        if (--waiting[at(next)] == 0) ready.push(next);
      }
    }
    if (ordered.size() != count) throw InternalError("cpu: groups of a program wait for each other");
    fusion_.groups = std::move(ordered);
    for (int& home : fusion_.home) {
      if (home >= 0) home = place[at(home)];
    }
    for (Group& group : fusion_.groups) {
      std::sort(group.results.begin(), group.results.end());
      std::sort(group.row_values.begin(), group.row_values.end());
      std::sort(group.kept.begin(), group.kept.end());
      std::sort(group.columns.begin(), group.columns.end());
    }
  }

  const Program& program_;
  Fusion fusion_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> is_output_;
  std::vector<int64_t> copies_;
  std::vector<bool> reduced_;                   // computed within its readers, which end in a reduction
  std::map<Shape, std::vector<int>> by_space_;  // groups of loops
  int deepest_of_all_ = 0;
};

}  // namespace

Fusion fuse(const Program& program) { return Fuser(program).run(); }

}  // namespace capibara::cpu
