// Tries, for every mesh axis, each factor to which some operand or result assigns it, and no factor.
#include "compiler/partition/assign.h"

#include <algorithm>
#include <limits>

namespace capibara::sharding {

namespace {

constexpr std::size_t max_tries = 4096;

class Chooser {
 public:
  Chooser(const Mesh& mesh, Resharder& resharder, const AssignmentProblem& problem)
      : mesh_(mesh), resharder_(resharder), problem_(problem) {
    for (std::size_t i = 0; i < problem.given.size(); ++i)
      values_.push_back(projected(mesh, problem.factors, problem.factors.operands[i], problem.given[i]));
    for (std::size_t i = 0; i < problem.wanted.size(); ++i)
      values_.push_back(projected(mesh, problem.factors, problem.factors.results[i], problem.wanted[i]));
    for (std::size_t axis = 0; axis < mesh.axis_names.size(); ++axis)
      choices_.push_back(choices_of(static_cast<int>(axis)));
  }

  Assignment best() {
    std::size_t tries = 1;
    for (std::vector<int>& choices : choices_) {
      if (tries * choices.size() > max_tries) choices.resize(1);  // keep the first factor that has it
      tries *= choices.size();
    }
    std::vector<std::size_t> at(choices_.size(), 0);
    while (true) {
      consider(at);
      std::size_t axis = 0;
      while (axis < at.size() && ++at[axis] == choices_[axis].size()) at[axis++] = 0;
      if (axis == at.size()) break;
    }
    return std::move(best_);
  }

 private:
  std::vector<int> choices_of(int axis) const {
    std::vector<int> choices;
    for (const Projection& value : values_) {
      for (std::size_t f = 0; f < value.axes.size(); ++f) {
        const auto factor = static_cast<int>(f);
        if (contains(value.axes[f], axis) && problem_.factors.factors[f].use != FactorUse::whole &&
            !contains(choices, factor))
          choices.push_back(factor);
      }
    }
    choices.push_back(-1);
    return choices;
  }

  // The axes of each factor, in the order of the first value that has them.
  bool axes_of(const std::vector<std::size_t>& at, std::vector<Axes>& axes) const {
    axes.assign(problem_.factors.factors.size(), {});
    for (const Projection& value : values_) {
      for (std::size_t f = 0; f < axes.size(); ++f) {
        for (const int axis : value.axes[f]) {
          const auto a = static_cast<std::size_t>(axis);
          if (choices_[a][at[a]] == static_cast<int>(f) && !contains(axes[f], axis)) axes[f].push_back(axis);
        }
      }
    }
    for (std::size_t f = 0; f < axes.size(); ++f) {
      if (problem_.factors.factors[f].size % parts_of(mesh_, axes[f]) != 0) return false;
    }
    return true;
  }

  bool layouts_of(const std::vector<ValueFactors>& values, const std::vector<Axes>& axes,
                  std::vector<Layout>& out) const {
    out.clear();
    for (const ValueFactors& value : values) {
      std::optional<Layout> layout = layout_from(mesh_, problem_.factors, value, axes);
      if (!layout) return false;
      out.push_back(std::move(*layout));
    }
    return true;
  }

  // All combined factors that are split must use the same monoid.
  bool pending_of(Assignment& tried) const {
    Monoid monoid = Monoid::add;
    for (std::size_t f = 0; f < tried.axes.size(); ++f) {
      const Factor& factor = problem_.factors.factors[f];
      if (factor.use != FactorUse::combined || tried.axes[f].empty()) continue;
      if (!tried.pending.empty() && monoid != factor.monoid) return false;
      monoid = factor.monoid;
      // The sum of booleans is their disjunction.
      const bool of_bools =
          factor.monoid == Monoid::add && !problem_.results.empty() && is_bool(problem_.results[0].dtype);
      tried.monoid = of_bools ? Monoid::bit_or : factor.monoid;
      tried.pending.insert(tried.pending.end(), tried.axes[f].begin(), tried.axes[f].end());
    }
    std::sort(tried.pending.begin(), tried.pending.end());
    return true;
  }

  double operand_cost(std::size_t i, const Layout& to) {
    const std::vector<Layout>& copies = problem_.copies[i];
    if (std::find(copies.begin(), copies.end(), to) != copies.end()) return 0;
    return resharder_.plan(problem_.operands[i], {problem_.given[i], {}, Monoid::add}, to).cost;
  }

  void consider(const std::vector<std::size_t>& at) {
    Assignment tried;
    if (!axes_of(at, tried.axes) || !pending_of(tried) ||
        !layouts_of(problem_.factors.operands, tried.axes, tried.operands) ||
        !layouts_of(problem_.factors.results, tried.axes, tried.results))
      return;
    double cost = problem_.work;
    for (std::size_t f = 0; f < tried.axes.size(); ++f)
      cost *= static_cast<double>(problem_.factors.factors[f].size / parts_of(mesh_, tried.axes[f]));
    for (std::size_t i = 0; i < tried.operands.size() && cost < least_; ++i) cost += operand_cost(i, tried.operands[i]);
    for (std::size_t i = 0; i < tried.results.size() && cost < least_; ++i)
      cost += resharder_.plan(problem_.results[i], {tried.results[i], tried.pending, tried.monoid}, problem_.wanted[i])
                  .cost;
    if (cost >= least_) return;
    least_ = cost;
    best_ = std::move(tried);
  }

  const Mesh& mesh_;
  Resharder& resharder_;
  const AssignmentProblem& problem_;
  std::vector<Projection> values_;
  std::vector<std::vector<int>> choices_;  // per axis: factors, or -1
  Assignment best_;
  double least_ = std::numeric_limits<double>::infinity();
};

}  // namespace

Assignment cheapest_assignment(const Mesh& mesh, Resharder& resharder, const AssignmentProblem& problem) {
  return Chooser(mesh, resharder, problem).best();
}

}  // namespace capibara::sharding
