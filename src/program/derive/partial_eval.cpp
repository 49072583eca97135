// Partial evaluation: splitting a computation into the part known now and the part that waits for its inputs.
#include "program/derive/partial_eval.h"

#include "program/ir/copy.h"
#include "program/ir/dce.h"
#include "program/ir/handles.h"
#include "program/ir/source.h"
#include "program/trace/discharge.h"
#include "program/trace/staging.h"

#include <algorithm>

namespace capibara {

// ---- of a running function --------------------------------------------------------------------------------------

Array PartialEvalTrace::new_unknown(const ArrayType& type) {
  Var var = builder_.add_input(type);
  return Array(std::make_shared<const UnknownTracer>(type, shared_from_this(), var));
}

Atom PartialEvalTrace::atom(const Array& array) {
  const ArrayBody* body = array.body().get();
  if (body->trace() == this) return static_cast<const UnknownTracer*>(body)->var;
  if (is_literal_value(array)) return builder_.add_literal(array);
  auto [it, added] = residual_var_of_.try_emplace(body);
  if (added) {
    it->second = builder_.new_var(array.type());
    residual_vars_.push_back(it->second);
    residuals_.push_back(array);
  }
  return it->second;
}

Array PartialEvalTrace::value(Atom atom) {
  if (atom.is_literal()) return builder_.body().literals[static_cast<std::size_t>(atom.literal_index())];
  return Array(std::make_shared<const UnknownTracer>(builder_.type(atom), shared_from_this(), atom.var()));
}

Arrays PartialEvalTrace::record(const Primitive& primitive, std::vector<Atom> inputs, const Attrs& attrs) {
  Arrays outputs;
  for (Var var : builder_.add_equation(primitive, std::move(inputs), attrs, current_source()))
    outputs.push_back(value(var));
  return outputs;
}

Arrays PartialEvalTrace::bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  PartialEvalArgs args{primitive, {}, attrs, {}, nullptr};
  Types types;
  for (const Array& input : inputs) {
    types.push_back(input.type());
    args.unknown.push_back(unknown(input));
  }
  args.types = types;
  TraceScope scope(parent);
  if (std::find(args.unknown.begin(), args.unknown.end(), true) == args.unknown.end()) {
    return parent->bind(primitive, inputs, attrs);
  }
  // The refs of a nested program are split as values: some of their contents may be known, others not.
  if (holds_refs(attrs) && can_discharge(attrs)) {
    TraceScope own(shared_from_this());
    return bind_on_values(primitive, inputs, attrs);
  }
  if (!primitive->partial_eval) {
    std::vector<Atom> atoms;
    for (const Array& input : inputs) atoms.push_back(atom(input));
    // Refs of this trace are always unknown, and hold the trace: if they were kept here, neither would ever be freed.
    bool writes = primitive == prim::swap() || primitive == prim::addupdate();
    if (writes && inputs[0].body()->trace() != this) unknown_refs_.emplace(inputs[0].body().get(), inputs[0]);
    return record(primitive, std::move(atoms), attrs);
  }
  PartialEvalSplit split = primitive->partial_eval(args);
  Arrays operands;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!args.unknown[i]) operands.push_back(inputs[i]);
  }
  Arrays known = evaluate_program(split.known, operands);
  std::size_t known_count = known.size() - static_cast<std::size_t>(split.residual_count);
  std::vector<Atom> atoms;
  for (const PartialEvalSplit::Operand& operand : split.operands) {
    std::size_t index = static_cast<std::size_t>(operand.index);
    atoms.push_back(atom(operand.residual ? known[known_count + index] : inputs[index]));
  }
  Arrays staged;
  for (Atom output : inline_program(builder_, split.staged, atoms)) staged.push_back(value(output));
  Arrays outputs;
  std::size_t next_known = 0, next_staged = 0;
  for (bool is_unknown : split.unknown_outputs) {
    outputs.push_back(is_unknown ? staged[next_staged++] : known[next_known++]);
  }
  return outputs;
}

std::optional<Arrays> PartialEvalTrace::call(const detail::CustomCall& call, std::span<const Array> inputs) {
  const bool any = std::any_of(inputs.begin(), inputs.end(), [this](const Array& input) { return unknown(input); });
  if (any || detail::is_staged(*this)) return std::nullopt;
  TraceScope scope(parent);
  return detail::call_custom(call, inputs);
}

PartialEvalTrace::Recorded PartialEvalTrace::finish(std::span<const Array> outputs, const std::string& name) {
  std::vector<Atom> atoms;
  for (const Array& output : outputs) atoms.push_back(atom(output));
  builder_.set_outputs(std::move(atoms));
  auto& invars = builder_.body().invars;
  std::size_t unknowns = invars.size();
  invars.insert(invars.begin(), residual_vars_.begin(), residual_vars_.end());
  Program program = builder_.finish(name);
  // Equations that no output needs would be transposed in vain, and would keep their residuals alive.
  std::vector<bool> keep(residual_vars_.size(), false);
  keep.insert(keep.end(), unknowns, true);
  DceProgram pruned = dce_program(program, std::vector<bool>(outputs.size(), true), keep);
  Recorded recorded{pruned.program, {}};
  for (std::size_t i = 0; i < residuals_.size(); ++i) {
    if (pruned.used_inputs[i]) recorded.residuals.push_back(residuals_[i]);
  }
  return recorded;
}

// ---- of a program -----------------------------------------------------------------------------------------------

namespace {

class Splitter {
 public:
  Splitter(const Program& program, const SavePolicy* policy, bool save_constants)
      : program_(program), policy_(policy), save_constants_(save_constants) {}

  ProgramSplit split(const std::vector<bool>& unknown, const std::vector<bool>& instantiate) {
    classify(unknown);
    ProgramSplit result;
    for (std::size_t i = 0; i < program_.outputs().size(); ++i) {
      bool wanted = is_unknown(program_.outputs()[i]) || (!instantiate.empty() && instantiate[i]);
      result.unknown_outputs.push_back(wanted);
    }
    choose_residuals(result.unknown_outputs);
    build_known(unknown, result);
    build_staged(unknown, result);
    return result;
  }

 private:
  struct Step {
    enum Place { known, staged, divided } place = known;
    PartialEvalSplit split;            // if divided
    std::vector<Var> residual_vars;    // if divided: ids beyond the original's variables
    std::vector<bool> staged_outputs;  // if divided: those that the staged half computes
    bool recompute = false;            // known, and recomputed in the staged half
  };

  bool is_unknown(Atom atom) const { return !atom.is_literal() && unknown_[static_cast<std::size_t>(atom.code)]; }
  void mark_unknown(Var var) {
    if (!var.dropped()) unknown_[static_cast<std::size_t>(var.id)] = true;
  }

  void classify(const std::vector<bool>& unknown) {
    unknown_.assign(static_cast<std::size_t>(program_.var_count()), false);
    next_residual_ = program_.var_count();
    for (std::size_t i = 0; i < unknown.size(); ++i) {
      if (unknown[i]) mark_unknown(program_.invars()[i]);
    }
    for (const Equation& equation : program_.equations()) {
      Step step;
      PartialEvalArgs args{equation.primitive, {}, equation.attrs, {}, policy_};
      Types types;
      bool any = false;
      for (Atom input : equation.inputs) {
        types.push_back(program_.type(input));
        args.unknown.push_back(is_unknown(input));
        any |= args.unknown.back();
      }
      args.types = types;
      if (any && equation.primitive->partial_eval) {
        step.place = Step::divided;
        step.split = equation.primitive->partial_eval(args);
        const auto& outputs = step.split.known.outputs();
        for (std::size_t i = outputs.size() - static_cast<std::size_t>(step.split.residual_count); i < outputs.size();
             ++i) {
          step.residual_vars.push_back(Var{next_residual_++});
          residual_type_[step.residual_vars.back().id] = step.split.known.type(outputs[i]);
        }
        for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
          if (step.split.unknown_outputs[i]) mark_unknown(equation.outputs[i]);
        }
      } else if (any) {
        step.place = Step::staged;
        for (Var output : equation.outputs) mark_unknown(output);
      }
      steps_.push_back(std::move(step));
    }
  }

  bool may_save(const Equation& equation) const {
    if (!policy_) return true;
    Types types;
    for (Atom input : equation.inputs) types.push_back(program_.type(input));
    return (*policy_)(equation.primitive, types, equation.attrs);
  }

  // A rule under a policy may offer the known outputs in the staged program too: those needed are taken from there,
  // and no residual of the equation's own is saved for them; the others are dropped, with the equations only they need.
  void offer_known_outputs(const Equation& equation, Step& step) {
    PartialEvalSplit& split = step.split;
    step.staged_outputs = split.unknown_outputs;
    const std::size_t outputs = equation.outputs.size();
    const auto unknowns =
        static_cast<std::size_t>(std::count(split.unknown_outputs.begin(), split.unknown_outputs.end(), true));
    if (unknowns == outputs || split.staged.outputs().size() != outputs) return;
    std::vector<bool> used(outputs, true);
    for (std::size_t i = 0, next = unknowns; i < outputs; ++i) {
      if (split.unknown_outputs[i]) continue;
      const Var var = equation.outputs[i];
      step.staged_outputs[i] = used[next++] = !var.dropped() && needed_[static_cast<std::size_t>(var.id)];
    }
    const DceProgram pruned = dce_program(split.staged, used);
    split.staged = pruned.program;
    std::vector<PartialEvalSplit::Operand> operands;
    for (std::size_t i = 0; i < split.operands.size(); ++i) {
      if (pruned.used_inputs[i]) operands.push_back(split.operands[i]);
    }
    split.operands = std::move(operands);
  }

  // From the last equation to the first: values that the staged half needs are saved, or recomputed there.
  void choose_residuals(const std::vector<bool>& unknown_outputs) {
    needed_.assign(static_cast<std::size_t>(program_.var_count()), false);
    auto need = [&](Atom atom) {
      if (!atom.is_literal() && !is_unknown(atom)) needed_[static_cast<std::size_t>(atom.code)] = true;
    };
    for (std::size_t i = 0; i < program_.outputs().size(); ++i) {
      if (unknown_outputs[i]) need(program_.outputs()[i]);
    }
    std::vector<Var> saved;
    for (std::size_t e = steps_.size(); e-- > 0;) {
      const Equation& equation = program_.equations()[e];
      Step& step = steps_[e];
      if (step.place == Step::staged) {
        for (Atom input : equation.inputs) need(input);
        continue;
      }
      if (step.place == Step::divided) {
        offer_known_outputs(equation, step);
        for (const PartialEvalSplit::Operand& operand : step.split.operands) {
          if (!operand.residual) need(equation.inputs[static_cast<std::size_t>(operand.index)]);
        }
        for (std::size_t i = equation.outputs.size(); i-- > 0;) {
          Var var = equation.outputs[i];
          if (step.staged_outputs[i] || var.dropped() || !needed_[static_cast<std::size_t>(var.id)]) continue;
          saved.push_back(var);
        }
        for (std::size_t i = step.residual_vars.size(); i-- > 0;) saved.push_back(step.residual_vars[i]);
        continue;
      }
      bool wanted = false;
      for (Var output : equation.outputs) wanted |= !output.dropped() && needed_[static_cast<std::size_t>(output.id)];
      if (!wanted) continue;
      if (equation.effects.keeps_equation() || may_save(equation)) {
        for (std::size_t i = equation.outputs.size(); i-- > 0;) {
          Var var = equation.outputs[i];
          if (!var.dropped() && needed_[static_cast<std::size_t>(var.id)]) saved.push_back(var);
        }
      } else {
        step.recompute = true;
        for (Atom input : equation.inputs) need(input);
      }
    }
    for (Var var : program_.invars()) {
      if (needed_[static_cast<std::size_t>(var.id)]) saved.push_back(var);
    }
    if (save_constants_) {
      for (Var var : program_.constvars()) {
        if (needed_[static_cast<std::size_t>(var.id)]) saved.push_back(var);
      }
    }
    order_by_first_use(saved, unknown_outputs);
  }

  // Residuals come in the order in which the staged half first reads them.
  void order_by_first_use(const std::vector<Var>& saved, const std::vector<bool>& unknown_outputs) {
    std::unordered_map<int32_t, bool> waiting;
    for (Var var : saved) waiting[var.id] = true;
    auto visit = [&](Atom atom) {
      if (atom.is_literal()) return;
      auto it = waiting.find(atom.code);
      if (it == waiting.end() || !it->second) return;
      it->second = false;
      residuals_.push_back(atom.var());
    };
    for (std::size_t e = 0; e < steps_.size(); ++e) {
      const Equation& equation = program_.equations()[e];
      const Step& step = steps_[e];
      if (step.place == Step::staged || step.recompute) {
        for (Atom input : equation.inputs) visit(input);
      } else if (step.place == Step::divided) {
        for (const PartialEvalSplit::Operand& operand : step.split.operands) {
          std::size_t index = static_cast<std::size_t>(operand.index);
          visit(operand.residual ? Atom(step.residual_vars[index]) : equation.inputs[index]);
        }
      }
    }
    for (std::size_t i = 0; i < program_.outputs().size(); ++i) {
      if (unknown_outputs[i]) visit(program_.outputs()[i]);
    }
  }

  const ArrayType& type(Var var) const {
    return var.id < program_.var_count() ? program_.type(var) : residual_type_.at(var.id);
  }

  // A saved value is rounded to its own precision, so that the known half computes with the same value as the staged
  // half.
  void round_saved(Copy& half, const Equation& equation) {
    static const Primitive reduce_precision = primitive("reduce_precision");
    for (Var output : equation.outputs) {
      if (output.dropped() || !is_floating(program_.type(output).dtype)) continue;
      if (std::find(residuals_.begin(), residuals_.end(), output) == residuals_.end() || !read_by_known(output))
        continue;
      const DTypeRow& row = dtype_row(program_.type(output).dtype);
      std::vector<Var> copy = half.builder().add_equation(
          reduce_precision, {half(Atom(output))},
          {{"exponent_bits", int64_t{row.exponent_bits}}, {"mantissa_bits", int64_t{row.mantissa_bits}}},
          equation.source);
      half.bind(output, copy[0]);
    }
  }

  bool read_by_known(Var var) const {
    for (std::size_t e = 0; e < steps_.size(); ++e) {
      if (steps_[e].place == Step::staged) continue;
      const auto& inputs = program_.equations()[e].inputs;
      if (std::find(inputs.begin(), inputs.end(), Atom(var)) != inputs.end()) return true;
    }
    return std::find(program_.outputs().begin(), program_.outputs().end(), Atom(var)) != program_.outputs().end();
  }

  void build_known(const std::vector<bool>& unknown, ProgramSplit& result) {
    ProgramBuilder builder;
    Copy half(program_, builder);
    half.bind_constants();
    for (std::size_t i = 0; i < unknown.size(); ++i) {
      if (!unknown[i]) half.add_input(program_.invars()[i]);
    }
    for (std::size_t e = 0; e < steps_.size(); ++e) {
      const Equation& equation = program_.equations()[e];
      const Step& step = steps_[e];
      if (step.place == Step::known) {
        half.copy(equation);
        if (policy_) round_saved(half, equation);
      }
      if (step.place != Step::divided) continue;
      std::vector<Atom> inputs;
      for (Atom input : equation.inputs) {
        if (!is_unknown(input)) inputs.push_back(half(input));
      }
      std::vector<Atom> outputs = half.splice(step.split.known, inputs);
      std::size_t next = 0;
      for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
        if (step.split.unknown_outputs[i]) continue;
        half.bind(equation.outputs[i], outputs[next++]);
      }
      for (Var var : step.residual_vars) half.bind(var, outputs[next++]);
    }
    std::vector<Atom> outputs;
    for (std::size_t i = 0; i < program_.outputs().size(); ++i) {
      if (!result.unknown_outputs[i]) outputs.push_back(half(program_.outputs()[i]));
    }
    for (Var var : residuals_) {
      result.residual_types.push_back(type(var));
      auto constant = std::find(program_.constvars().begin(), program_.constvars().end(), var);
      if (constant != program_.constvars().end()) {
        result.residual_inputs.push_back(-2 - static_cast<int>(constant - program_.constvars().begin()));
        continue;
      }
      outputs.push_back(half(Atom(var)));
      auto it = std::find(program_.invars().begin(), program_.invars().end(), var);
      result.residual_inputs.push_back(
          it == program_.invars().end() ? -1 : static_cast<int>(it - program_.invars().begin()));
    }
    const Program known = half.finish(std::move(outputs));
    const std::vector<bool> all_outputs(known.outputs().size(), true), all_inputs(known.invars().size(), true);
    result.known = dce_program(known, all_outputs, all_inputs).program;
  }

  void build_staged(const std::vector<bool>& unknown, ProgramSplit& result) {
    ProgramBuilder builder;
    Copy half(program_, builder);
    if (!save_constants_) half.bind_constants();
    for (Var var : residuals_) half.bind(var, builder.add_input(type(var)));
    for (std::size_t i = 0; i < unknown.size(); ++i) {
      if (unknown[i]) half.add_input(program_.invars()[i]);
    }
    for (std::size_t e = 0; e < steps_.size(); ++e) {
      const Equation& equation = program_.equations()[e];
      const Step& step = steps_[e];
      if (step.place == Step::staged || step.recompute) half.copy(equation);
      if (step.place != Step::divided) continue;
      std::vector<Atom> inputs;
      for (const PartialEvalSplit::Operand& operand : step.split.operands) {
        std::size_t index = static_cast<std::size_t>(operand.index);
        inputs.push_back(operand.residual ? half(Atom(step.residual_vars[index])) : half(equation.inputs[index]));
      }
      std::vector<Atom> outputs = half.splice(step.split.staged, inputs);
      std::size_t next = 0;
      for (bool unknown_output : {true, false}) {
        for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
          if (!step.staged_outputs[i] || step.split.unknown_outputs[i] != unknown_output) continue;
          half.bind(equation.outputs[i], outputs[next++]);
        }
      }
    }
    std::vector<Atom> outputs;
    for (std::size_t i = 0; i < program_.outputs().size(); ++i) {
      if (result.unknown_outputs[i]) outputs.push_back(half(program_.outputs()[i]));
    }
    result.staged = half.finish(std::move(outputs));
  }

  const Program& program_;
  const SavePolicy* policy_;
  bool save_constants_;
  std::vector<bool> unknown_, needed_;
  std::vector<Step> steps_;
  std::vector<Var> residuals_;
  std::unordered_map<int32_t, ArrayType> residual_type_;
  int32_t next_residual_ = 0;
};

}  // namespace

ProgramSplit partial_eval_program(const Program& program, const std::vector<bool>& unknown,
                                  const std::vector<bool>& instantiate, const SavePolicy* policy) {
  // A policy decides about single operations, so calls are inlined first.
  Program opened = policy ? inline_jit_calls(program) : program;
  return Splitter(opened, policy, false).split(unknown, instantiate);
}

ProgramSplit partial_eval_call(const Program& program, const std::vector<bool>& unknown) {
  return Splitter(program, nullptr, true).split(unknown, {});
}

}  // namespace capibara
