// lift_constants: turns constants inside loops, branches and calls into operands, so that only the outer program has
// any: they are stored, compared and passed to the code in one place.
#include "compiler/optimise/passes.h"
#include "compiler/optimise/rewrite.h"
#include "program/ir/handles.h"
#include "program/ir/views.h"

namespace capibara::passes {

namespace {

class Lifter {
 public:
  explicit Lifter(const Program& program) : copy_(program) {}

  Program operator()(NestedPass& nested) {
    auto concerns = [](const Equation& equation) {
      return equation.primitive == prim::jit() || equation.primitive == prim::scan() ||
             equation.primitive == prim::while_() || equation.primitive == prim::cond();
    };
    if (!changes(copy_.from(), nested, concerns)) return copy_.from();
    bool changed = false;
    for (const Equation& equation : copy_.from().equations()) {
      Attrs attrs = nested(equation.attrs);
      std::vector<Atom> inputs = copy_(equation.inputs);
      if (equation.primitive == prim::jit()) lift_one(inputs, attrs, "jaxpr", 0, nullptr);
      if (equation.primitive == prim::scan()) lift_one(inputs, attrs, "jaxpr", 0, "num_consts");
      if (equation.primitive == prim::while_()) {
        lift_one(inputs, attrs, "body_jaxpr", WhileView(attrs).cond_consts(), "body_nconsts");
        lift_one(inputs, attrs, "cond_jaxpr", 0, "cond_nconsts");
      }
      if (equation.primitive == prim::cond()) lift_branches(inputs, attrs);
      changed |= !same_object(attrs, equation.attrs);
      copy_.emit(equation, std::move(inputs), std::move(attrs));
    }
    return changed ? copy_.finish() : copy_.from();
  }

 private:
  // The constants become the program's first inputs, and operands from `at` on.
  void lift_one(std::vector<Atom>& inputs, Attrs& attrs, const char* name, std::size_t at, const char* count) {
    const Program nested = attrs.program(name);
    if (nested.constants().empty()) return;
    insert(inputs, at, nested.constants());
    attrs = attrs.with(name, constants_to_inputs(nested));
    if (count) attrs = attrs.with(count, attrs.integer(count) + static_cast<int64_t>(nested.constants().size()));
  }

  // Every branch takes the constants of all branches.
  void lift_branches(std::vector<Atom>& inputs, Attrs& attrs) {
    std::vector<Program> branches = attrs.programs("branches");
    Arrays all;
    for (const Program& branch : branches) all.insert(all.end(), branch.constants().begin(), branch.constants().end());
    if (all.empty()) return;
    std::size_t before = 0;
    for (Program& branch : branches) {
      Program::Body body = branch.body();
      std::vector<Var> added;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (i >= before && i < before + body.constvars.size()) {
          added.push_back(body.constvars[i - before]);
        } else {
          body.var_types.push_back(all[i].type());
          added.push_back(Var{static_cast<int32_t>(body.var_types.size()) - 1});
        }
      }
      before += body.constvars.size();
      body.invars.insert(body.invars.begin(), added.begin(), added.end());
      body.constvars.clear();
      body.constants.clear();
      branch = Program(std::move(body));
    }
    insert(inputs, 1, all);
    attrs = attrs.with("branches", Attr::programs(branches));
  }

  void insert(std::vector<Atom>& inputs, std::size_t at, const Arrays& constants) {
    std::vector<Atom> atoms;
    for (const Array& constant : constants) atoms.push_back(copy_.builder().add_constant(constant));
    inputs.insert(inputs.begin() + static_cast<std::ptrdiff_t>(at), atoms.begin(), atoms.end());
  }

  Copy copy_;
};

}  // namespace

Program lift_constants(const Program& program) {
  return NestedPass([](const Program& one, NestedPass& nested) { return Lifter(one)(nested); })(program);
}

}  // namespace capibara::passes
