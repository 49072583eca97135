// Inlines calls and duplicates constants.
//
//   z = broadcast_in_dim[shape=(8,)] 0.0;  a = add x z;  b = mul y z
// becomes
//   z = broadcast_in_dim[shape=(8,)] 0.0;  a = add x z;  w = broadcast_in_dim[shape=(8,)] 0.0;  b = mul y w
#include "compiler/partition/flatten.h"

#include <map>

#include "program/ir/copy.h"
#include "program/ir/dce.h"
#include "program/ir/handles.h"
#include "program/ir/memo.h"
#include "program/ir/nested.h"
#include "program/ir/views.h"

namespace capibara::sharding {

namespace {

bool is_inlined(const Equation& equation) {
  const Program* called = called_program(equation);
  return called && called->invars().size() == equation.inputs.size();
}

Program with_calls_inlined(const Program& program);

void add_inlined(Copy& copy, const Equation& equation) {
  if (is_inlined(equation)) {
    const Program called = with_calls_inlined(*called_program(equation));
    const std::vector<Atom> outputs = copy.splice(called, copy(equation.inputs));
    copy.bind(equation.outputs, outputs);
    return;
  }
  Equation own = equation;
  if (!equation.primitive->traits.own_partition) own.attrs = rewrite_programs(equation.attrs, with_calls_inlined);
  copy.copy(own);
}

Program with_calls_inlined(const Program& program) {
  static Memo<Program> memo;
  return memo.get({program, {}, {}, 0, {}, 0, {}}, [&] {
    Copy copy(program);
    for (const Equation& equation : program.equations()) add_inlined(copy, equation);
    return copy.finish();
  });
}

// Cheap equations of literals and of each other.
class Constants {
 public:
  explicit Constants(const Program& program) : program_(program) {
    for (std::size_t e = 0; e < program.equations().size(); ++e) {
      const Equation& equation = program.equations()[e];
      if (is_constant(equation)) made_by_[equation.outputs[0].id] = e;
    }
  }

  Program repeated() {
    if (made_by_.empty()) return with_nested(program_);
    Copy copy(program_);
    for (const Equation& equation : program_.equations()) {
      if (equation.outputs.size() == 1 && made_by_.count(equation.outputs[0].id)) continue;
      remake(copy, equation.inputs);
      Equation own = equation;
      own.attrs = nested(equation);
      copy.copy(own);
    }
    remake(copy, program_.outputs());
    return copy.finish();
  }

 private:
  bool is_constant(const Equation& equation) const {
    if (equation.outputs.size() != 1 || equation.outputs[0].dropped() || !equation.effects.empty()) return false;
    const Traits& traits = equation.primitive->traits;
    const bool cheap = equation.primitive == prim::iota() || equation.primitive == prim::broadcast_in_dim() ||
                       (traits.elementwise != Elementwise::no && traits.repeatable && !holds_programs(equation.attrs));
    if (!cheap) return false;
    for (const Atom input : equation.inputs) {
      if (!input.is_literal() && !made_by_.count(input.code)) return false;
    }
    return true;
  }
  void remake(Copy& copy, std::span<const Atom> atoms) {
    for (const Atom atom : atoms) {
      if (atom.is_literal()) continue;
      const auto it = made_by_.find(atom.code);
      if (it == made_by_.end()) continue;
      const Equation& equation = program_.equations()[it->second];
      remake(copy, equation.inputs);
      const std::vector<Var> made =
          copy.builder().add_equation(equation.primitive, copy(equation.inputs), equation.attrs, equation.source);
      copy.bind(equation.outputs[0], made[0]);
    }
  }
  static Attrs nested(const Equation& equation) {
    if (equation.primitive->traits.own_partition) return equation.attrs;
    return rewrite_programs(equation.attrs, [](const Program& program) { return Constants(program).repeated(); });
  }
  static Program with_nested(const Program& program) {
    Copy copy(program);
    for (const Equation& equation : program.equations()) {
      Equation own = equation;
      own.attrs = nested(equation);
      copy.copy(own);
    }
    return copy.finish();
  }

  const Program program_;
  std::map<int32_t, std::size_t> made_by_;  // variables of constants, by equation
};

}  // namespace

Program flattened(const Program& program) {
  static Memo<Program> memo;
  return memo.get({program, {}, {}, 0, {}, 0, {}}, [&] { return Constants(with_calls_inlined(program)).repeated(); });
}

}  // namespace capibara::sharding
