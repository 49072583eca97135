// Transposition: running a linear program backwards, from cotangents of its outputs to cotangents of its inputs.
#include <capibara/config.h>
#include <capibara/lax.h>

#include "program/derive/derive.h"
#include "program/derive/values.h"
#include "program/ir/explicit_types.h"
#include "program/ir/handles.h"
#include "program/ir/memo.h"
#include "program/ir/source.h"
#include "program/trace/trace.h"

#include <algorithm>

namespace capibara {

namespace {

// True if the transpose runs a user's rule: it is called with zeros where no cotangent arrives.
bool runs_user_rule(const Equation& equation) {
  if (equation.primitive == prim::custom_lin()) return true;
  if (equation.primitive != prim::scan()) return false;
  const Program& body = equation.attrs.program("jaxpr");
  return std::any_of(body.equations().begin(), body.equations().end(), runs_user_rule);
}

class BackwardPass {
 public:
  BackwardPass(const Program& program, const std::vector<bool>& is_linear, std::span<const Array> inputs,
               std::span<const Array> sums)
      : program_(program),
        linear_(static_cast<std::size_t>(program.var_count()), false),
        values_(static_cast<std::size_t>(program.var_count())),
        cotangents_(static_cast<std::size_t>(program.var_count())) {
    for (std::size_t i = 0; i < program.constvars().size(); ++i)
      at(values_, program.constvars()[i]) = program.constants()[i];
    for (std::size_t i = 0; i < is_linear.size(); ++i) {
      Var var = program.invars()[i];
      linear_[static_cast<std::size_t>(var.id)] = is_linear[i];
      if (!is_linear[i]) at(values_, var) = inputs[i];
      if (!sums.empty()) at(cotangents_, var) = sums[i];
    }
  }

  Arrays run(std::span<const Array> output_cotangents) {
    auto is_given = [](const Array& cotangent) { return cotangent.defined(); };
    if (std::none_of(output_cotangents.begin(), output_cotangents.end(), is_given) && program_.effects().empty())
      return results();
    run_forward();
    for (std::size_t i = 0; i < output_cotangents.size(); ++i) {
      Atom output = program_.outputs()[i];
      if (!output.is_literal()) accumulate(output.var(), output_cotangents[i]);
    }
    for (std::size_t e = program_.equations().size(); e-- > 0;) {
      if (is_linear(program_.equations()[e])) transpose(program_.equations()[e]);
    }
    return results();
  }

 private:
  Arrays results() {
    Arrays all;
    for (Var var : program_.invars()) {
      all.push_back(linear_[static_cast<std::size_t>(var.id)] ? at(cotangents_, var) : Array());
    }
    return all;
  }

  static Array& at(Arrays& values, Var var) { return values[static_cast<std::size_t>(var.id)]; }

  bool is_linear(Atom atom) const { return !atom.is_literal() && linear_[static_cast<std::size_t>(atom.code)]; }
  bool is_linear(const Equation& equation) const {
    return std::any_of(equation.inputs.begin(), equation.inputs.end(), [this](Atom input) { return is_linear(input); });
  }

  // Equations that do not depend on a linear input are computed first; the others only mark their outputs.
  void run_forward() {
    for (const Equation& equation : program_.equations()) {
      if (is_linear(equation)) {
        for (Var output : equation.outputs) {
          if (!output.dropped()) linear_[static_cast<std::size_t>(output.id)] = true;
        }
        // A ref that held a known zero becomes linear with the first linear write.
        if (equation.primitive == prim::swap() || equation.primitive == prim::addupdate()) {
          linear_[static_cast<std::size_t>(equation.inputs[0].code)] = true;
        }
        continue;
      }
      Arrays operands;
      for (Atom input : equation.inputs) operands.push_back(value(input));
      SourceScope scope(equation.source);
      Arrays results = capibara::bind(equation.primitive, operands, equation.attrs);
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (!equation.outputs[i].dropped()) at(values_, equation.outputs[i]) = results[i];
      }
    }
  }

  Array value(Atom atom) const {
    return atom.is_literal() ? program_.literal(atom) : values_[static_cast<std::size_t>(atom.code)];
  }

  void accumulate(Var var, const Array& cotangent) {
    if (!cotangent.defined() || !linear_[static_cast<std::size_t>(var.id)]) return;
    Array& sum = at(cotangents_, var);
    sum = sum.defined() ? jax::lax::add_any(sum, cotangent) : cotangent;
  }

  // Refs: the cotangent of a ref is the contribution of its later reads.
  bool transpose_ref(const Equation& equation) {
    const Primitive& primitive = equation.primitive;
    auto taken = [&](Var var) {
      if (var.dropped()) return Array();
      Array cotangent = std::move(at(cotangents_, var));
      at(cotangents_, var) = Array();
      return cotangent;
    };
    if (primitive == prim::new_ref()) {
      accumulate_atom(equation.inputs[0], taken(equation.outputs[0]));
    } else if (primitive == prim::get() || primitive == prim::freeze()) {
      accumulate_atom(equation.inputs[0], taken(equation.outputs[0]));
    } else if (primitive == prim::swap()) {
      Array of_written = taken(equation.inputs[0].var());
      accumulate_atom(equation.inputs[0], taken(equation.outputs[0]));
      accumulate_atom(equation.inputs[1], of_written);
    } else if (primitive == prim::addupdate()) {
      accumulate_atom(equation.inputs[1], at(cotangents_, equation.inputs[0].var()));
    } else {
      return false;
    }
    return true;
  }

  void accumulate_atom(Atom atom, const Array& cotangent) {
    if (!atom.is_literal()) accumulate(atom.var(), cotangent);
  }

  void transpose(const Equation& equation) {
    if (transpose_ref(equation)) return;
    Arrays cotangents;
    bool any = false;
    for (Var output : equation.outputs) {
      cotangents.push_back(output.dropped() ? Array() : std::move(at(cotangents_, output)));
      if (!output.dropped()) at(cotangents_, output) = Array();
      any |= cotangents.back().defined();
    }
    if (!any && !equation.effects.keeps_equation() && !runs_user_rule(equation)) return;
    const Primitive& primitive = equation.primitive;
    if (!primitive->transpose) {
      throw NotImplementedError(
          concat("Transpose rule (for reverse-mode differentiation) for '", primitive.name(), "' not implemented"));
    }
    Arrays inputs;
    Types types;
    for (Atom input : equation.inputs) {
      types.push_back(program_.type(input));
      inputs.push_back(is_linear(input) ? Array() : value(input));
    }
    SourceScope scope(equation.source);
    Arrays results = primitive->transpose({primitive, cotangents, inputs, types, equation.attrs});
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (is_linear(equation.inputs[i])) accumulate(equation.inputs[i].var(), as_primal(results[i], types[i]));
    }
  }

  // Cotangents are sharded as their primal values are.
  static Array as_primal(const Array& cotangent, const ArrayType& primal) {
    if (!cotangent.defined() || !primal.sharding.is_explicit() || primal.shape.empty()) return cotangent;
    const Sharding wanted = cotangent_sharding(primal.sharding);
    if (cotangent.type().sharding == wanted || !wanted.mesh().any_is(AxisType::Explicit)) return cotangent;
    return bind1(prim::reshard(), {cotangent}, {{"dst_sharding", sharding_attr(wanted)}});
  }

  const Program& program_;
  std::vector<bool> linear_;
  Arrays values_, cotangents_;
};

Memo<TransposedProgram>& transposed_memo() {
  static Memo<TransposedProgram> instance;
  return instance;
}

}  // namespace

Arrays backward_pass(const Program& program, const std::vector<bool>& is_linear, std::span<const Array> inputs,
                     std::span<const Array> cotangents, std::span<const Array> sums) {
  return BackwardPass(program, is_linear, inputs, sums).run(cotangents);
}

TransposedProgram transpose_program(const Program& program, const std::vector<bool>& is_linear,
                                    const std::vector<bool>& nonzero_cotangents, bool instantiate_all) {
  return transposed_memo().get({program, is_linear, nonzero_cotangents, instantiate_all, "", config().key()}, [&] {
    Types types;
    for (std::size_t i = 0; i < is_linear.size(); ++i) {
      if (!is_linear[i]) types.push_back(program.type(program.invars()[i]));
    }
    std::size_t fixed = types.size();
    for (std::size_t i = 0; i < nonzero_cotangents.size(); ++i) {
      if (nonzero_cotangents[i]) types.push_back(cotangent_type(program.type(program.outputs()[i])));
    }
    TransposedProgram result;
    Staged staged = stage(
        [&](std::span<const Array> arguments) {
          Arrays inputs(is_linear.size()), cotangents(nonzero_cotangents.size());
          std::size_t next = 0;
          for (std::size_t i = 0; i < is_linear.size(); ++i) {
            if (!is_linear[i]) inputs[i] = arguments[next++];
          }
          next = fixed;
          for (std::size_t i = 0; i < cotangents.size(); ++i) {
            if (nonzero_cotangents[i]) cotangents[i] = arguments[next++];
          }
          Arrays all = backward_pass(program, is_linear, inputs, cotangents);
          Arrays outputs;
          for (std::size_t i = 0; i < is_linear.size(); ++i) {
            if (!is_linear[i]) continue;
            bool wanted = instantiate_all || all[i].defined();
            result.nonzero_results.push_back(wanted);
            if (wanted)
              outputs.push_back(all[i].defined() ? all[i]
                                                 : jax::lax::zeros(cotangent_type(program.type(program.invars()[i]))));
          }
          return outputs;
        },
        types, program.name());
    result.program = staged.program;
    return result;
  });
}

}  // namespace capibara
