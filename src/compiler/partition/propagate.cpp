// Propagation of layouts along factors, to a fixed point.
//
// The order is that of Shardy (openxla.org/shardy/propagation): first through operations that only pass elements on, in
// both directions, and forwards through slices; then along all factors for which parts of operands give parts of
// results; finally along sums and dimensions that must be whole. If several factors compete for an axis of one value,
// the one that comes from the largest value gets it. Axes are used only if they divide a dimension evenly.
#include "compiler/partition/propagate.h"

#include <algorithm>

#include "compiler/partition/propagation_graph.h"

namespace capibara::sharding {

namespace {

constexpr int phases = 3;
enum class Direction { none, forward, backward, both };

Direction direction_of(const Rule& rule, const Factor& factor, int phase) {
  if (phase >= 2) return Direction::both;
  Direction first = Direction::none;
  if (rule.kind == RuleKind::pass_through) first = Direction::both;
  if (rule.kind == RuleKind::slice) first = Direction::forward;
  if (phase == 0 || first == Direction::both || factor.use != FactorUse::free) return first;
  return rule.kind == RuleKind::broadcast ? Direction::backward : Direction::both;
}

// The common prefix of two lists of axes; the longer list if one is a prefix of the other and `expand` allows it.
bool merge(Axes& known, const Axes& more, bool expand) {
  std::size_t same = 0;
  while (same < known.size() && same < more.size() && known[same] == more[same]) ++same;
  if (same < known.size() && same < more.size()) {
    known.resize(same);
    return false;
  }
  if (expand && more.size() > known.size()) known = more;
  return expand;
}

class Worklist {
 public:
  explicit Worklist(std::size_t count) : waiting_(count, true) {
    for (std::size_t i = count; i-- > 0;) stack_.push_back(i);
  }
  void push(std::size_t rule) {
    if (waiting_[rule]) return;
    waiting_[rule] = true;
    stack_.push_back(rule);
  }
  bool empty() const { return stack_.empty(); }
  std::size_t pop() {
    const std::size_t rule = stack_.back();
    stack_.pop_back();
    waiting_[rule] = false;
    return rule;
  }

 private:
  std::vector<bool> waiting_;
  std::vector<std::size_t> stack_;
};

class Propagation {
 public:
  Propagation(PropagationGraph& graph, const Mesh& mesh) : graph_(graph), mesh_(mesh) {}

  void run() {
    for (int phase = 0; phase < phases; ++phase) {
      Worklist work(graph_.rules.size());
      while (!work.empty()) {
        const std::size_t rule = work.pop();
        for (const int value : apply(graph_.rules[rule], phase)) wake(work, rule, value);
      }
    }
  }

 private:
  // Pushes the rule that defines the value, then its readers, the first of them on top.
  void wake(Worklist& work, std::size_t current, int value) const {
    const std::vector<std::size_t>& users = graph_.users[static_cast<std::size_t>(value)];
    if (users.empty()) return;
    if (users[0] != current) work.push(users[0]);
    for (std::size_t i = users.size(); i-- > 1;) {
      if (users[i] != current) work.push(users[i]);
    }
  }

  struct Member {
    int value;
    const ValueFactors* factors;
    Projection projection;
  };

  std::vector<Member> members(const Rule& rule) const {
    std::vector<Member> all;
    auto add = [&](const std::vector<int>& values, const std::vector<ValueFactors>& factors) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] < 0) continue;
        const Layout& layout = graph_.values[static_cast<std::size_t>(values[i])].layout;
        all.push_back({values[i], &factors[i], projected(mesh_, rule.factors, factors[i], layout)});
      }
    };
    add(rule.operands, rule.factors.operands);
    add(rule.results, rule.factors.results);
    return all;
  }

  Axes compatible(const std::vector<Member>& all, std::size_t operands, std::size_t factor, Direction direction) const {
    Axes axes;
    bool expand = true;
    auto merge_range = [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        if (all[i].projection.present[factor]) expand = merge(axes, all[i].projection.axes[factor], expand);
      }
    };
    const bool backward = direction == Direction::backward;
    merge_range(backward ? operands : 0, backward ? all.size() : operands);
    if (direction != Direction::both) expand = false;
    merge_range(backward ? 0 : operands, backward ? operands : all.size());
    return axes;
  }

  // Returns the values that changed.
  std::vector<int> apply(const Rule& rule, int phase) {
    std::vector<Member> all = members(rule);
    const auto operands = static_cast<std::size_t>(
        std::count_if(rule.operands.begin(), rule.operands.end(), [](int value) { return value >= 0; }));
    struct Candidate {
      std::size_t factor;
      Axes axes;
      int64_t size;        // elements of the largest value that the axes come from
      std::size_t source;  // position of that value
    };
    std::vector<Candidate> candidates;
    for (std::size_t f = 0; f < rule.factors.factors.size(); ++f) {
      const Direction direction = direction_of(rule, rule.factors.factors[f], phase);
      if (direction == Direction::none) continue;
      Candidate candidate{f, compatible(all, operands, f, direction), -1, 0};
      if (candidate.axes.empty()) continue;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (!all[i].projection.present[f] || all[i].projection.axes[f] != candidate.axes) continue;
        const int64_t size = graph_.values[static_cast<std::size_t>(all[i].value)].elements;
        if (size <= candidate.size) continue;
        candidate.size = size;
        candidate.source = i;
      }
      candidates.push_back(std::move(candidate));
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.size != b.size ? a.size > b.size : a.source < b.source;
    });
    std::vector<bool> touched(all.size());
    for (const Candidate& candidate : candidates) {
      for (std::size_t i = 0; i < all.size(); ++i)
        touched[i] = touched[i] | extend(rule, all[i], candidate.factor, candidate.axes);
    }
    std::vector<int> changed;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (touched[i] && write_back(rule, all[i])) changed.push_back(all[i].value);
    }
    return changed;
  }

  // Splits one factor of one value by more of the axes, as far as there is no conflict.
  bool extend(const Rule& rule, Member& member, std::size_t factor, const Axes& axes) const {
    Projection& own = member.projection;
    if (!own.present[factor] || own.overflow[factor] || is_closed(member, factor)) return false;
    if (!is_prefix(own.axes[factor], axes) || own.axes[factor].size() == axes.size()) return false;
    Axes taken = own.axes[factor];
    const Axes used = used_axes(graph_.values[static_cast<std::size_t>(member.value)].layout);
    for (std::size_t i = taken.size(); i < axes.size(); ++i) {
      if (contains(used, axes[i])) break;
      bool elsewhere = false;
      for (std::size_t f = 0; f < own.axes.size(); ++f)
        elsewhere = elsewhere || (f != factor && contains(own.axes[f], axes[i]));
      if (elsewhere) break;
      taken.push_back(axes[i]);
      if (rule.factors.factors[factor].size % parts_of(mesh_, taken) != 0) {
        taken.pop_back();
        break;
      }
    }
    if (taken.size() == own.axes[factor].size()) return false;
    own.axes[factor] = std::move(taken);
    return true;
  }

  bool is_closed(const Member& member, std::size_t factor) const {
    const PropagatedValue& value = graph_.values[static_cast<std::size_t>(member.value)];
    for (std::size_t dim = 0; dim < member.factors->size(); ++dim) {
      for (const int id : (*member.factors)[dim]) {
        if (static_cast<std::size_t>(id) == factor) return value.closed[dim];
      }
    }
    return true;
  }

  // Up to the first factor whose parts would not be contiguous in the dimension.
  bool write_back(const Rule& rule, const Member& member) {
    PropagatedValue& value = graph_.values[static_cast<std::size_t>(member.value)];
    bool changed = false;
    for (std::size_t dim = 0; dim < member.factors->size(); ++dim) {
      Axes axes;
      bool overflow = false;
      for (const int id : (*member.factors)[dim]) {
        const auto f = static_cast<std::size_t>(id);
        overflow = overflow || member.projection.overflow[f];
        axes.insert(axes.end(), member.projection.axes[f].begin(), member.projection.axes[f].end());
        if (parts_of(mesh_, member.projection.axes[f]) != rule.factors.factors[f].size) break;
      }
      // If the equation reads an operand twice, these axes may by now split another dimension of it.
      Axes& own = value.layout[dim];
      if (overflow || axes.size() <= own.size() || !is_prefix(own, axes)) continue;
      const Axes used = used_axes(value.layout);
      const std::size_t before = own.size();
      for (std::size_t i = before; i < axes.size() && !contains(used, axes[i]); ++i) own.push_back(axes[i]);
      changed = changed || own.size() > before;
    }
    return changed;
  }

  PropagationGraph& graph_;
  const Mesh& mesh_;
};

Shardings shardings_of(const PropagationGraph& graph, const ProgramValues& values, const Program& program) {
  Shardings out;
  for (std::size_t var = 0; var < values.vars.size(); ++var) {
    const int value = values.vars[var];
    out.vars.push_back(value < 0 ? Layout(program.body().var_types[var].shape.size())
                                 : graph.values[static_cast<std::size_t>(value)].layout);
  }
  for (std::size_t i = 0; i < program.outputs().size(); ++i) {
    const int value = values.outputs[i];
    out.outputs.push_back(value < 0 ? Layout(program.type(program.outputs()[i]).shape.size())
                                    : graph.values[static_cast<std::size_t>(value)].layout);
  }
  for (const auto& [equation, programs] : values.nested) {
    for (const auto& [nested, own] : programs) out.nested[equation].push_back(shardings_of(graph, own, nested));
  }
  return out;
}

}  // namespace

Shardings propagate(const Program& program, const Mesh& mesh, const Demands& inputs, const Demands& outputs) {
  PropagationGraph graph(mesh);
  const ProgramValues values = graph.add_program(program, inputs, outputs);
  Propagation(graph, mesh).run();
  return shardings_of(graph, values, program);
}

}  // namespace capibara::sharding
