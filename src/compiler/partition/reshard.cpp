// Resharding: a search for the fewest bytes over intermediate layouts, by Dijkstra's algorithm.
//
// Every step leads towards the target layout: an axis is added if the dimension needs it next, or dropped if the
// dimension does not need it. So there are few intermediate layouts, and one path always exists: gather, then slice.
#include "compiler/partition/reshard.h"

#include <capibara/array.h>

#include <algorithm>
#include <queue>

#include "core/array/format.h"

namespace capibara::sharding {

namespace {

constexpr double step_cost = 256;  // bytes that saving one collective is worth
constexpr double slice_cost = 0.01;

std::string key_of(const Placed& at) {
  std::string key;
  for (const Axes& axes : at.layout) {
    for (const int axis : axes) key += static_cast<char>('a' + axis);
    key += '/';
  }
  key += '+';
  for (const int axis : at.pending) key += static_cast<char>('a' + axis);
  return key;
}

// For the same axes in another order: those of `wanted` first, in the order of `wanted`.
Axes reordered(const Axes& axes, const Axes& wanted) {
  Axes out;
  for (const int axis : wanted) {
    if (!sharding::contains(axes, axis)) break;
    out.push_back(axis);
  }
  for (const int axis : axes) {
    if (!sharding::contains(out, axis)) out.push_back(axis);
  }
  return out;
}

class Search {
 public:
  Search(const Mesh& mesh, const ArrayType& type, const Layout& to) : mesh_(mesh), type_(type), to_(to) {}

  Plan run(const Placed& from) {
    add(from, 0, "", {});
    while (!queue_.empty()) {
      const auto [cost, key] = queue_.top();
      queue_.pop();
      Node& node = nodes_.at(key);
      if (node.done) continue;
      node.done = true;
      if (node.at.layout == to_ && node.at.pending.empty()) return plan_to(key);
      const Placed at = node.at;
      expand(at, cost, key);
    }
    throw InternalError("reshard: no path between two layouts");
  }

 private:
  struct Node {
    Placed at;
    double cost = 0;
    bool done = false;
    std::string before;
    Move move;
  };

  void add(const Placed& at, double cost, const std::string& before, const Move& move) {
    const std::string key = key_of(at);
    const auto [it, added] = nodes_.try_emplace(key);
    if (!added && (it->second.done || it->second.cost <= cost)) return;
    it->second = {at, cost, false, before, move};
    queue_.emplace(cost, key);
  }

  double bytes(const Layout& layout) const {
    return static_cast<double>(type_.size() * storage_size(type_.dtype)) / static_cast<double>(parts_of(mesh_, layout));
  }
  double size(const Axes& axes) const { return static_cast<double>(parts_of(mesh_, axes)); }

  void step(const Placed& at, double cost, const std::string& key, Placed next, Move move) {
    move.from = at.layout;
    move.to = next.layout;
    const double more = move.kind == Move::Kind::slice ? slice_cost : step_cost;
    add(next, cost + move.bytes + more, key, move);
  }

  void expand(const Placed& at, double cost, const std::string& key) {
    const double own = bytes(at.layout);
    const Axes used = used_axes(at.layout);
    if (!at.pending.empty()) {
      Placed next = at;
      next.pending.clear();
      const double n = size(at.pending);
      const bool reduces = at.monoid == Monoid::add || at.monoid == Monoid::max || at.monoid == Monoid::min;
      step(at, cost, key, next,
           {Move::Kind::combine, 0, 0, at.pending, {}, {}, reduces ? 2 * own * (n - 1) / n : own * (n - 1)});
    }
    for (std::size_t dim = 0; dim < at.layout.size(); ++dim) {
      const Axes& axes = at.layout[dim];
      if (is_prefix(axes, to_[dim]) && axes.size() < to_[dim].size()) {
        const int axis = to_[dim][axes.size()];
        Placed next = at;
        next.layout[dim].push_back(axis);
        if (sharding::contains(at.pending, axis)) {
          if (at.monoid == Monoid::add) {
            std::erase(next.pending, axis);
            const double n = size({axis});
            step(at, cost, key, next, {Move::Kind::scatter, dim, 0, {axis}, {}, {}, own * (n - 1) / n});
          }
        } else if (!sharding::contains(used, axis)) {
          step(at, cost, key, next, {Move::Kind::slice, dim, 0, {axis}, {}, {}, 0});
        }
      }
      if (!is_prefix(axes, to_[dim]) && at.pending.empty()) give_up(at, cost, key, dim, own);
    }
    if (at.pending.empty() && at.layout != to_) {
      bool same = true;
      for (std::size_t dim = 0; dim < to_.size(); ++dim)
        same = same && parts_of(mesh_, at.layout[dim]) == parts_of(mesh_, to_[dim]);
      if (same) step(at, cost, key, {to_, {}, at.monoid}, {Move::Kind::permute, 0, 0, {}, {}, {}, own});
    }
  }

  // All steps by which a dimension can lose axes that its target lacks.
  void give_up(const Placed& at, double cost, const std::string& key, std::size_t dim, double own) {
    const Axes& axes = at.layout[dim];
    std::size_t kept = 0;
    while (kept < axes.size() && kept < to_[dim].size() && axes[kept] == to_[dim][kept]) ++kept;
    for (std::size_t count = axes.size() - 1; count + 1 > kept; --count) {
      Placed next = at;
      next.layout[dim].resize(count);
      const Axes gone(axes.begin() + static_cast<std::ptrdiff_t>(count), axes.end());
      step(at, cost, key, next, {Move::Kind::gather, dim, 0, gone, {}, {}, own * (size(gone) - 1)});
      if (count == 0) break;
    }
    const int last = axes.back();
    for (std::size_t other = 0; other < to_.size(); ++other) {
      if (other == dim || !is_prefix(at.layout[other], to_[other]) || at.layout[other].size() >= to_[other].size() ||
          to_[other][at.layout[other].size()] != last)
        continue;
      Placed next = at;
      next.layout[dim].pop_back();
      next.layout[other].push_back(last);
      step(at, cost, key, next,
           {Move::Kind::exchange, dim, other, {last}, {}, {}, own * (size({last}) - 1) / size({last})});
    }
    const Axes order = reordered(axes, to_[dim]);
    if (order != axes) {
      Placed next = at;
      next.layout[dim] = order;
      step(at, cost, key, next, {Move::Kind::permute, dim, 0, {}, {}, {}, own});
    }
  }

  Plan plan_to(std::string key) const {
    Plan plan;
    plan.cost = nodes_.at(key).cost;
    while (!nodes_.at(key).before.empty()) {
      plan.moves.insert(plan.moves.begin(), nodes_.at(key).move);
      key = nodes_.at(key).before;
    }
    return plan;
  }

  const Mesh& mesh_;
  const ArrayType& type_;
  const Layout& to_;
  std::map<std::string, Node> nodes_;
  std::priority_queue<std::pair<double, std::string>, std::vector<std::pair<double, std::string>>, std::greater<>>
      queue_;
};

}  // namespace

Plan Resharder::search(const ArrayType& type, const Placed& from, const Layout& to) const {
  return Search(mesh_, type, to).run(from);
}

const Plan& Resharder::plan(const ArrayType& type, const Placed& from, const Layout& to) {
  static const Plan nothing;
  if (from.pending.empty() && from.layout == to) return nothing;
  if (from.layout.size() != to.size())
    throw InternalError(concat("reshard: ", to_string(type), " has layouts of ", from.layout.size(), " and ", to.size(),
                               " dimensions"));
  const std::string key = concat(key_of(from), static_cast<int>(from.monoid), ">", key_of({to, {}, from.monoid}), " ",
                                 type.size() * storage_size(type.dtype));
  const auto [it, added] = known_.try_emplace(key);
  if (added) it->second = search(type, from, to);
  return it->second;
}

}  // namespace capibara::sharding
