// fuse_attention: replaces attention written out in a program by fused attention, if a backend has a kernel for it.
//
//   s = dot q k; t = mul s scale; ...; p = div exponentials sums; o = dot p v    ->    o lse = flash_attention q k v
//
// The reverse derivative written out in the same program becomes flash_attention_grad. Either both or none are
// replaced: the other would still need the queries by keys array. conditions.cpp proves that this changes no value.
#include "kernels/fuse.h"
#include "compiler/optimise/rewrite.h"
#include "kernels/attention/conditions.h"
#include "kernels/attention/fused_form.h"
#include "program/ir/handles.h"
#include "program/trace/stage.h"
#include "program/trace/trace.h"

#include <algorithm>
#include <map>

namespace capibara::kernels {

namespace {

// The replacement of one attention of a program.
class Replacement {
 public:
  // Null if the equations mean something else, or if the backend has no kernel.
  static std::unique_ptr<Replacement> find(const Equations& equations, int quotient, const passes::Keep& claims,
                                           Special special) {
    std::optional<PlainAttention> plain = read_attention(equations, quotient);
    if (!plain) return nullptr;
    std::unique_ptr<Replacement> found(new Replacement(equations, std::move(*plain), special));
    const AttentionMatch match{found->plain_, found->gradient_, found->inner_, found->last_, found->form_.operands()};
    return is_proven(equations, match) && found->make(claims) ? std::move(found) : nullptr;
  }

  std::span<const int> inner() const { return inner_; }
  std::span<const int> last() const { return last_; }

  // Called at each of the last equations.
  void emit(Copy& copy, int at) {
    if (saved_.empty()) emit_forward(copy);
    if (at != plain_.result && !std::exchange(emitted_, true)) emit_gradient(copy);
  }

 private:
  Replacement(const Equations& equations, PlainAttention plain, Special special)
      : equations_(equations),
        plain_(std::move(plain)),
        gradient_(read_gradient(equations, plain_)),
        form_(equations, plain_, special),
        inner_(plain_.inner) {
    if (plain_.result >= 0) last_.push_back(plain_.result);
    if (!gradient_) return;
    if (plain_.result < 0) plain_.values = gradient_->values;
    inner_.insert(inner_.end(), gradient_->inner.begin(), gradient_->inner.end());
    for (const PlainCotangent& result : gradient_->results) last_.push_back(result.equation);
  }

  const ArrayType& result_type(int at) const { return equations_.type(equations_[at].outputs[0]); }

  Types operand_types() const {
    Types types;
    for (Atom atom : form_.operands()) types.push_back(equations_.type(atom).strong());
    return types;
  }

  bool make(const passes::Keep& claims) {
    Types types = operand_types();
    std::optional<Shape> result;
    if (plain_.result >= 0) result = result_type(plain_.result).shape;
    forward_ = staged([&](std::span<const Array> in) { return form_.forward(in, result); }, types);
    if (!claimed(forward_, claims)) return false;
    if (!gradient_) return true;
    const Types outputs = forward_.output_types();
    types.insert(types.end(), outputs.begin(), outputs.begin() + saved_count);
    types.push_back(equations_.type(gradient_->cotangent.atom).strong());
    Types results;
    for (const PlainCotangent& result : gradient_->results) results.push_back(result_type(result.equation));
    backward_ = staged([&](std::span<const Array> in) { return form_.gradient(in, *gradient_, results); }, types);
    return claimed(backward_, claims);
  }

  static Program staged(const FlatFunction& function, const Types& types) {
    TraceScope scope(evaluation_trace());
    return passes::strengthen(stage(function, types, "attention").program);
  }

  // True if the backend has kernels for all fused operations, including those in branches.
  static bool claimed(const Program& program, const passes::Keep& claims) {
    const auto& all = program.equations();
    return std::all_of(all.begin(), all.end(), [&](const Equation& equation) {
      return (!FusedForm::is_call(equation) || claims(program, equation)) &&
             !any_program(equation.attrs, [&](const Program& held) { return !claimed(held, claims); });
    });
  }

  void emit_forward(Copy& copy) {
    const std::vector<Atom> results = copy.splice(forward_, copy(form_.operands()));
    if (plain_.result >= 0) copy.bind(equations_[plain_.result].outputs[0], results[saved_count]);
    saved_.assign(results.begin(), results.begin() + saved_count);
  }

  void emit_gradient(Copy& copy) {
    std::vector<Atom> inputs = copy(form_.operands());
    inputs.insert(inputs.end(), saved_.begin(), saved_.end());
    inputs.push_back(copy(gradient_->cotangent.atom));
    const std::vector<Atom> results = copy.splice(backward_, inputs);
    for (std::size_t i = 0; i < results.size(); ++i) {
      copy.bind(equations_[gradient_->results[i].equation].outputs[0], results[i]);
    }
  }

  const Equations& equations_;
  PlainAttention plain_;
  const std::optional<PlainGradient> gradient_;
  const FusedForm form_;
  std::vector<int> inner_, last_;
  Program forward_, backward_;
  static constexpr std::ptrdiff_t saved_count = 3;
  std::vector<Atom> saved_;  // the output by heads, the log-sum-exp, a flag for ordinary calls
  bool emitted_ = false;
};

// In the program itself, not in nested ones.
bool has_parts(const Program& program) {
  const auto& all = program.equations();
  const auto count = [&](const Primitive& primitive) {
    return std::count_if(all.begin(), all.end(),
                         [&](const Equation& equation) { return equation.primitive == primitive; });
  };
  return count(prim::dot_general()) >= 2 && count(prim::exp()) >= 1;
}

bool any_within(const Program& program, const std::function<bool(const Equation&)>& holds) {
  const auto& all = program.equations();
  return std::any_of(all.begin(), all.end(), [&](const Equation& equation) {
    bool found = holds(equation);
    for_each_program(equation.attrs, [&](const Program& nested) { found = found || any_within(nested, holds); });
    return found;
  });
}

Program fused(const Program& program, passes::NestedPass& nested, const passes::Keep& claims, Special special) {
  const auto none = [](const Equation&) { return false; };
  const bool may_hold = has_parts(program);
  if (!may_hold && !passes::changes(program, nested, none)) return program;
  const Equations equations(program);
  std::vector<std::unique_ptr<Replacement>> found;
  std::map<int, Replacement*> inner, last;
  for (int at = 0; may_hold && at < static_cast<int>(program.equations().size()); ++at) {
    if (equations[at].primitive != prim::div()) continue;
    std::unique_ptr<Replacement> one = Replacement::find(equations, at, claims, special);
    const auto is_taken = [&](int i) { return inner.contains(i) || last.contains(i); };
    if (!one || std::any_of(one->inner().begin(), one->inner().end(), is_taken) ||
        std::any_of(one->last().begin(), one->last().end(), is_taken)) {
      continue;
    }
    for (int i : one->inner()) inner[i] = one.get();
    for (int i : one->last()) last[i] = one.get();
    found.push_back(std::move(one));
  }
  if (found.empty() && !passes::changes(program, nested, none)) return program;
  Copy copy(program);
  for (int at = 0; at < static_cast<int>(program.equations().size()); ++at) {
    if (const auto it = last.find(at); it != last.end()) {
      it->second->emit(copy, at);
    } else if (!inner.contains(at)) {
      copy.emit(equations[at], copy(equations[at].inputs), nested(equations[at].attrs));
    }
  }
  return copy.finish();
}

}  // namespace

bool may_attend(const Program& program) {
  const auto holds = [&](const Primitive& primitive) {
    return any_within(program, [&](const Equation& equation) { return equation.primitive == primitive; });
  };
  return holds(prim::exp()) && holds(prim::dot_general());
}

bool holds_fused_attention(const Program& program) { return any_within(program, FusedForm::is_call); }

Program fuse_attention(const Program& program, const passes::Keep& claims, Special special) {
  return passes::NestedPass(
      [&](const Program& one, passes::NestedPass& nested) { return fused(one, nested, claims, special); })(program);
}

}  // namespace capibara::kernels
