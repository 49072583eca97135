// Orders side effects by data dependence: a token is threaded through every program with an effectful host call.
#include "backends/pjrt/calls/order_effects.h"

#include <unordered_map>

#include "backends/pjrt/calls/host_calls.h"
#include "compiler/optimise/rewrite.h"
#include "program/ir/handles.h"

namespace capibara::pjrt {

namespace {

const ArrayType token_type{{}, DType::int32, false, false, {}};

class Ordering {
 public:
  Program main(const Program& program) {
    if (!has_effects(program)) return program;
    Copy copy(program);
    const int32_t zero = 0;
    Atom token = copy.builder().add_literal(Array::from_host(DType::int32, {}, &zero));
    copy_equations(copy, token);
    return copy.finish();
  }

 private:
  // Adds the token as one more input and output.
  Program threaded(const Program& program) {
    auto [it, is_new] = threaded_.try_emplace(program);
    if (!is_new) return it->second;
    Copy copy(program);
    Atom token = copy.builder().add_input(token_type);
    copy_equations(copy, token);
    Program::Body body = copy.finish().body();
    body.outputs.push_back(token);
    return threaded_[program] = Program(std::move(body));
  }

  static Program with_unused_token(const Program& program) {
    Copy copy(program);
    copy.builder().add_input(token_type);
    for (const Equation& equation : program.equations()) copy.copy(equation);
    return copy.finish();
  }

  void copy_equations(Copy& copy, Atom& token) {
    for (const Equation& equation : copy.from().equations()) {
      if (!has_effects(equation)) {
        copy.copy(equation);
        continue;
      }
      std::vector<Atom> inputs = copy(equation.inputs);
      inputs.push_back(token);
      Attrs attrs = equation.attrs;
      if (equation.primitive == prim::jit()) {
        attrs = attrs.with("jaxpr", threaded(attrs.program("jaxpr")));
      } else if (equation.primitive == prim::while_()) {
        attrs = attrs.with("cond_jaxpr", with_unused_token(attrs.program("cond_jaxpr")));
        attrs = attrs.with("body_jaxpr", threaded(attrs.program("body_jaxpr")));
      } else if (equation.primitive == prim::cond()) {
        Attr::List branches;
        for (const Program& branch : attrs.programs("branches")) branches.emplace_back(threaded(branch));
        attrs = attrs.with("branches", std::move(branches));
      } else {
        Attr::List results = attrs.list("result_types");
        results.emplace_back(token_type);
        attrs = attrs.with("result_types", std::move(results));
      }
      copy.emit(equation, std::move(inputs), std::move(attrs));
      const Var next = copy.builder().new_var(token_type);
      copy.builder().body().equations.back().outputs.push_back(next);
      token = next;
    }
  }

  bool has_effects(const Equation& equation) {
    if (equation.primitive == prim::custom_call()) {
      return equation.attrs.boolean("has_side_effect") && equation.attrs.text("call_target_name") == host_call_target;
    }
    if (equation.primitive != prim::jit() && equation.primitive != prim::while_() && equation.primitive != prim::cond())
      return false;
    return any_program(equation.attrs, [&](const Program& program) { return has_effects(program); });
  }

  bool has_effects(const Program& program) {
    if (auto known = has_effects_.find(program); known != has_effects_.end()) return known->second;
    bool found = false;
    for (const Equation& equation : program.equations()) found = found || has_effects(equation);
    return has_effects_[program] = found;
  }

  passes::ProgramMap<bool> has_effects_;
  passes::ProgramMap<Program> threaded_;
};

}  // namespace

Program order_effects(const Program& program) { return Ordering().main(program); }

}  // namespace capibara::pjrt
