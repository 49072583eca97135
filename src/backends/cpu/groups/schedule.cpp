// List scheduling of groups: the first in order, unless one that is ready releases memory.
#include "backends/cpu/groups/schedule.h"
#include "backends/cpu/kernels/exchange.h"
#include "program/ir/handles.h"

#include <algorithm>
#include <set>

namespace capibara::cpu {

namespace {

// Below this, the order of small groups matters more: neighbours are computed together in registers.
constexpr int64_t least_gain = int64_t{1} << 16;

class Schedule {
 public:
  Schedule(const Program& program, const Fusion& fusion)
      : program_(program),
        fusion_(fusion),
        values_(at(program.var_count())),
        root_(at(program.var_count())),
        nodes_(fusion.groups.size()) {
    for (std::size_t var = 0; var < root_.size(); ++var) root_[var] = static_cast<int32_t>(var);
    for (const Group& group : fusion.groups) {  // an alias represents the memory of its operand
      if (group.work != Work::alias) continue;
      const Equation& equation = program.equations()[at(group.results[0])];
      if (!equation.inputs[0].is_literal()) root_[at(equation.outputs[0].id)] = root_[at(equation.inputs[0].code)];
    }
    for (Atom output : program.outputs()) {
      if (!output.is_literal()) values_[at(root_[at(output.code)])].lives_on = true;
    }
    find_edges();
  }

  std::vector<int> order() {
    std::vector<int> result;
    for (std::size_t g = 0; g < nodes_.size(); ++g) {
      if (nodes_[g].waits_for == 0) make_ready(static_cast<int>(g));
    }
    while (!ready_.empty()) {
      const int next = gainful_.empty() ? *ready_.begin() : *gainful_.begin();
      ready_.erase(next);
      gainful_.erase(next);
      nodes_[at(next)].done = true;
      result.push_back(next);
      for (int32_t value : nodes_[at(next)].reads) {
        if (--values_[at(value)].unread == 1) consider_readers(value);
      }
      for (int after : nodes_[at(next)].followers) {
        if (--nodes_[at(after)].waits_for == 0) make_ready(after);
      }
    }
    return result;
  }

 private:
  struct ValueUse {
    std::vector<int> readers;  // groups
    int unread = 0;            // readers that have not run
    bool lives_on = false;     // a result of the program, whose memory belongs to the caller
    bool in_arena = false;
  };
  struct Node {
    std::vector<int> followers;
    std::vector<int32_t> reads, makes;
    int waits_for = 0;
    bool done = false;
  };

  void follow(int before, int after) {
    if (before < 0 || before == after) return;
    std::vector<int>& followers = nodes_[at(before)].followers;
    if (!followers.empty() && followers.back() == after) return;
    followers.push_back(after);
    ++nodes_[at(after)].waits_for;
  }

  void find_edges() {
    std::vector<std::vector<int>> members(nodes_.size());
    for (std::size_t e = 0; e < program_.equations().size(); ++e) {
      if (fusion_.home[e] >= 0) members[at(fusion_.home[e])].push_back(static_cast<int>(e));
    }
    int last_with_effects = -1;
    for (std::size_t g = 0; g < nodes_.size(); ++g) {
      const int group = static_cast<int>(g);
      Node& node = nodes_[g];
      std::set<int> before;
      std::set<int32_t> reads;
      for (int e : members[g]) {
        const Equation& equation = program_.equations()[at(e)];
        if (!equation.effects.empty()) {
          before.insert(last_with_effects);
          last_with_effects = group;
        }
        for (Atom input : equation.inputs) {
          if (input.is_literal()) continue;
          const int definition = fusion_.definition[at(input.code)];
          if (definition >= 0) before.insert(fusion_.home[at(definition)]);
          if (definition < 0 || fusion_.home[at(definition)] != group) reads.insert(root_[at(input.code)]);
        }
        if (may_run_in_place(fusion_.groups[g], equation) && !equation.inputs.empty() &&
            !equation.inputs[0].is_literal()) {
          for (int reader : values_[at(root_[at(equation.inputs[0].code)])].readers) before.insert(reader);
        }
        for (Var output : equation.outputs) {
          if (output.dropped() || fusion_.inlined(output) || root_[at(output.id)] != output.id) continue;
          values_[at(output.id)].in_arena = true;
          node.makes.push_back(output.id);
        }
      }
      for (int earlier : before) follow(earlier, group);
      node.reads.assign(reads.begin(), reads.end());
      for (int32_t value : reads) {
        values_[at(value)].readers.push_back(group);
        ++values_[at(value)].unread;
      }
    }
  }

  // Those that overwrite their first operand if no one reads it any more.
  static bool may_run_in_place(const Group& group, const Equation& equation) {
    return group.work == Work::control || equation.primitive == prim::dynamic_update_slice() ||
           equation.primitive->traits.combines == Combines::updates;
  }

  int64_t bytes(int32_t value) const {
    const ArrayType& type = program_.type(Var{value});
    return type.size() * static_cast<int64_t>(storage_size(type.dtype));
  }

  int64_t gain(int group) const {
    const Equation& first = program_.equations()[at(fusion_.groups[at(group)].results[0])];
    if (first.primitive == exchange_wait()) return 0;  // the later the better
    int64_t total = 0;
    for (int32_t value : nodes_[at(group)].reads) {
      const ValueUse& use = values_[at(value)];
      if (use.unread == 1 && use.in_arena && !use.lives_on) total += bytes(value);
    }
    for (int32_t value : nodes_[at(group)].makes) {
      if (!values_[at(value)].lives_on) total -= bytes(value);
    }
    return total;
  }

  void make_ready(int group) {
    ready_.insert(group);
    if (gain(group) >= least_gain) gainful_.insert(group);
  }

  void consider_readers(int32_t value) {
    for (int reader : values_[at(value)].readers) {
      if (ready_.contains(reader) && gain(reader) >= least_gain) gainful_.insert(reader);
    }
  }

  const Program& program_;
  const Fusion& fusion_;
  std::vector<ValueUse> values_;  // by the root variable of the memory
  std::vector<int32_t> root_;
  std::vector<Node> nodes_;
  std::set<int> ready_, gainful_;
};

}  // namespace

void schedule(const Program& program, Fusion& fusion) {
  const std::vector<int> order = Schedule(program, fusion).order();
  std::vector<Group> groups;
  std::vector<int> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[at(order[i])] = static_cast<int>(i);
    groups.push_back(std::move(fusion.groups[at(order[i])]));
  }
  fusion.groups = std::move(groups);
  for (int& home : fusion.home) {
    if (home >= 0) home = place[at(home)];
  }
}

}  // namespace capibara::cpu
