// The driver of dead-code elimination, from the last equation to the first; the rules are next to their primitives.
#include "program/ir/dce.h"

#include "program/ir/copy.h"
#include "program/ir/handles.h"
#include "program/ir/memo.h"
#include "program/ir/nested.h"

#include <algorithm>

namespace capibara {

namespace {

using Mask = std::vector<bool>;

template <class T>
std::vector<T> marked(const std::vector<T>& list, const Mask& mask) {
  std::vector<T> chosen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (mask[i]) chosen.push_back(list[i]);
  }
  return chosen;
}

class Elimination {
 public:
  explicit Elimination(bool as_jax) : as_jax_(as_jax), outer_(std::exchange(under_way, this)) {}
  ~Elimination() { under_way = outer_; }
  Elimination(const Elimination&) = delete;
  Elimination& operator=(const Elimination&) = delete;

  static thread_local Elimination* under_way;  // on this thread, or null

  const DceProgram& prune(const Program& program, const Mask& used_outputs, const Mask& keep_inputs) {
    MemoKey key{program, used_outputs, keep_inputs};
    if (auto known = done_.find(key); known != done_.end()) return known->second;
    DceProgram result = make(program, used_outputs, keep_inputs);
    return done_.emplace(std::move(key), std::move(result)).first->second;
  }

  Program prune_inside(const Program& program) {
    return prune(program, Mask(program.outputs().size(), true), Mask(program.invars().size(), true)).program;
  }

 private:
  struct SameObject {
    bool operator()(const MemoKey& a, const MemoKey& b) const {
      return a.program.identity() == b.program.identity() && a.first == b.first && a.second == b.second;
    }
  };

  bool has_rule(const Equation& equation) const {
    if (!equation.primitive->dce || equation.effects.keeps_equation()) return false;
    // jax has no rule for these and prints them whole.
    return !as_jax_ || (equation.primitive != prim::while_() && equation.primitive != prim::optimization_barrier());
  }

  // The equation with only the results that are used.
  Equation smaller(const Equation& equation, const Mask& used) {
    Equation out = equation;
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) out.outputs[i] = Var{};
    }
    if (has_rule(equation)) {
      DceResult result = equation.primitive->dce(equation.attrs, used);
      out.inputs = marked(out.inputs, result.used_inputs);
      out.outputs = marked(out.outputs, result.outputs.empty() ? used : result.outputs);
      if (!(result.attrs == equation.attrs)) out.attrs = std::move(result.attrs);
    } else if (!as_jax_) {
      out.attrs = rewrite_programs(equation.attrs, [this](const Program& nested) { return prune_inside(nested); });
    }
    return out;
  }

  DceProgram make(const Program& program, const Mask& used_outputs, const Mask& keep_inputs) {
    Mask live(static_cast<std::size_t>(program.var_count()), false);
    auto is_live = [&](Var var) { return !var.dropped() && live[static_cast<std::size_t>(var.id)]; };
    auto use = [&](Atom atom) {
      if (!atom.is_literal()) live[static_cast<std::size_t>(atom.code)] = true;
    };
    const std::vector<Atom> outputs = marked(program.outputs(), used_outputs);
    std::for_each(outputs.begin(), outputs.end(), use);
    bool changed = outputs.size() != program.outputs().size();

    std::vector<Equation> kept;  // in reverse order
    for (std::size_t e = program.equations().size(); e-- > 0;) {
      const Equation& equation = program.equations()[e];
      Mask used;
      for (Var output : equation.outputs) used.push_back(is_live(output));
      if (!equation.effects.keeps_equation() && std::find(used.begin(), used.end(), true) == used.end()) {
        changed = true;
        continue;
      }
      Equation out = smaller(equation, used);
      changed |= out.outputs != equation.outputs || out.inputs.size() != equation.inputs.size() ||
                 !same_object(out.attrs, equation.attrs);
      std::for_each(out.inputs.begin(), out.inputs.end(), use);
      kept.push_back(std::move(out));
    }
    DceProgram result{program, {}};
    for (std::size_t i = 0; i < program.invars().size(); ++i) {
      result.used_inputs.push_back(is_live(program.invars()[i]) || (!keep_inputs.empty() && keep_inputs[i]));
      changed |= !result.used_inputs[i];
    }
    for (Var var : program.constvars()) changed |= !is_live(var);
    if (!changed) return result;

    ProgramBuilder builder;
    Copy copy(program, builder);
    for (std::size_t i = 0; i < program.constvars().size(); ++i) {
      Var var = program.constvars()[i];
      if (is_live(var)) copy.bind(var, builder.add_constant(program.constants()[i]));
    }
    for (Var var : marked(program.invars(), result.used_inputs)) copy.add_input(var);
    for (std::size_t e = kept.size(); e-- > 0;) copy.copy(std::move(kept[e]));
    result.program = copy.finish(copy(outputs));
    return result;
  }

  bool as_jax_;
  Elimination* outer_;
  std::unordered_map<MemoKey, DceProgram, MemoHash, SameObject> done_;
};

thread_local Elimination* Elimination::under_way = nullptr;

}  // namespace

DceProgram dce_program(const Program& program, const std::vector<bool>& used_outputs,
                       const std::vector<bool>& keep_inputs) {
  if (Elimination::under_way) return Elimination::under_way->prune(program, used_outputs, keep_inputs);
  return Elimination(true).prune(program, used_outputs, keep_inputs);
}

Program dce_beyond_jax(const Program& program) { return Elimination(false).prune_inside(program); }

}  // namespace capibara
