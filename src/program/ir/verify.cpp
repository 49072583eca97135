// Verification: every equation keeps its primitive's typing, and every variable is defined once before it is read.
#include <capibara/primitive.h>

#include "program/ir/nested.h"

#include <set>

namespace capibara {

namespace {

class Verifier {
 public:
  void verify(const Program& program) {
    if (!visited_.insert(program.identity()).second) return;
    std::vector<bool> defined(static_cast<std::size_t>(program.var_count()), false);
    auto define = [&](Var var, const std::string& where) {
      if (var.dropped()) return;
      if (var.id >= program.var_count()) throw ProgramTypeError(concat(where, ": variable ", var.id, " has no type"));
      if (defined[static_cast<std::size_t>(var.id)])
        throw ProgramTypeError(concat(where, ": variable ", var.id, " is defined twice"));
      defined[static_cast<std::size_t>(var.id)] = true;
    };
    auto check_read = [&](Atom atom, const std::string& where) {
      if (atom.is_literal()) {
        if (atom.literal_index() >= static_cast<int32_t>(program.body().literals.size())) {
          throw ProgramTypeError(concat(where, ": literal ", atom.literal_index(), " does not exist"));
        }
      } else if (atom.code >= program.var_count() || !defined[static_cast<std::size_t>(atom.code)]) {
        throw ProgramTypeError(concat(where, ": variable ", atom.code, " is read before it is defined"));
      }
    };
    for (std::size_t i = 0; i < program.constvars().size(); ++i) {
      define(program.constvars()[i], "constants");
      if (!(program.type(program.constvars()[i]) == program.constants()[i].type())) {
        throw ProgramTypeError(concat("constant ", i, ": the variable is ",
                                      to_string(program.type(program.constvars()[i])), ", the value ",
                                      to_string(program.constants()[i].type())));
      }
    }
    for (Var var : program.invars()) define(var, "inputs");
    Effects effects;
    for (std::size_t e = 0; e < program.equations().size(); ++e) {
      const Equation& equation = program.equations()[e];
      std::string where = concat("equation ", e, " (", equation.primitive.name(), ")");
      Types inputs;
      for (Atom input : equation.inputs) {
        check_read(input, where);
        inputs.push_back(program.type(input));
      }
      check_types(program, equation, inputs, where);
      for (Var output : equation.outputs) define(output, where);
      effects.merge(equation.effects);
      for_each_program(equation.attrs, [this](const Program& nested) { verify(nested); });
    }
    for (Atom output : program.outputs()) check_read(output, "outputs");
    if (!(effects == program.effects())) throw ProgramTypeError("the program's effects are not those of its equations");
  }

 private:
  static void check_types(const Program& program, const Equation& equation, const Types& inputs,
                          const std::string& where) {
    TypeResult result = [&] {
      try {
        return equation.primitive->type(inputs, equation.attrs);
      } catch (const Error& error) {
        throw ProgramTypeError(concat(where, ": ", error.what()));
      }
    }();
    if (result.types.size() != equation.outputs.size()) {
      throw ProgramTypeError(
          concat(where, ": ", result.types.size(), " outputs expected, got ", equation.outputs.size()));
    }
    for (std::size_t i = 0; i < result.types.size(); ++i) {
      if (equation.outputs[i].dropped()) continue;
      const ArrayType& got = program.type(equation.outputs[i]);
      if (got.shape != result.types[i].shape || got.dtype != result.types[i].dtype || got.ref != result.types[i].ref) {
        throw ProgramTypeError(
            concat(where, ": output ", i, " must be ", to_string(result.types[i]), ", got ", to_string(got)));
      }
    }
    if (!(result.effects == equation.effects)) throw ProgramTypeError(concat(where, ": an effect is missing"));
  }

  std::set<const void*> visited_;
};

}  // namespace

void verify(const Program& program) { Verifier().verify(program); }

}  // namespace capibara
