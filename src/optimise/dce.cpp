// dce: removes equations whose results nobody reads, inside nested programs as well.
//
// A loop loses the carries that only feed themselves, a call and a branch the outputs that nobody takes. A program is
// pruned once for each set of outputs that are read.
#include "optimise/passes.h"
#include "optimise/rewrite.h"
#include "program/handles.h"

#include "program/memo.h"

#include <algorithm>

namespace capibara::passes {

namespace {

using Mask = std::vector<bool>;

Mask part(const Mask& mask, std::size_t begin, std::size_t end) {
  return Mask(mask.begin() + static_cast<std::ptrdiff_t>(begin), mask.begin() + static_cast<std::ptrdiff_t>(end));
}
Mask join(const Mask& a, const Mask& b, const Mask& c = {}) {
  Mask all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}
Mask either(Mask a, const Mask& b) {
  for (std::size_t i = 0; i < b.size(); ++i) a[i] = a[i] || b[i];
  return a;
}
int64_t count(const Mask& mask) { return std::count(mask.begin(), mask.end(), true); }

class Pruner {
 public:
  // Inputs that are not read go, unless keep_inputs names them.
  const DceProgram& prune(const Program& program, const Mask& used_outputs, const Mask& keep_inputs) {
    MemoKey key{program, used_outputs, keep_inputs};
    auto place = done_.find(key);
    if (place != done_.end()) return place->second;
    DceProgram result = make(program, used_outputs, keep_inputs);
    return done_.try_emplace(std::move(key), std::move(result)).first->second;
  }
  Program prune_inside(const Program& program) {
    return prune(program, Mask(program.outputs().size(), true), Mask(program.invars().size(), true)).program;
  }

 private:
  // An equation that yields only what is read, or nothing where it stays as it is.
  struct Smaller {
    Mask inputs, outputs;
    Attrs attrs;
  };
  using Rule = Smaller (Pruner::*)(const Equation&, const Mask&);

  Smaller prune_call(const Equation& equation, const Mask& used) {
    const DceProgram& pruned = prune(equation.attrs.program("jaxpr"), used, {});
    return {pruned.used_inputs, used, with(equation.attrs, "jaxpr", pruned.program)};
  }

  Smaller prune_branches(const Equation& equation, const Mask& used) {
    std::vector<Program> branches = equation.attrs.programs("branches");
    Mask inputs(branches[0].invars().size(), false);
    for (const Program& branch : branches) inputs = either(inputs, prune(branch, used, {}).used_inputs);
    bool changed = false;
    for (Program& branch : branches) {
      Program pruned = prune(branch, used, inputs).program;
      changed |= pruned.identity() != branch.identity();
      branch = pruned;
    }
    Attrs attrs = changed ? equation.attrs.with("branches", Attr::programs(branches)) : equation.attrs;
    return {join({true}, inputs), used, attrs};
  }

  Smaller prune_scan(const Equation& equation, const Mask& used) {
    const Program& body = equation.attrs.program("jaxpr");
    std::size_t consts = static_cast<std::size_t>(equation.attrs.integer("num_consts"));
    std::size_t carries = static_cast<std::size_t>(equation.attrs.integer("num_carry"));
    Mask carry = part(used, 0, carries), ys = part(used, carries, used.size());
    Mask no_consts(consts, false), no_xs(body.invars().size() - consts - carries, false);
    for (;;) {
      const DceProgram& pruned = prune(body, join(carry, ys), join(no_consts, carry, no_xs));
      Mask needed = part(pruned.used_inputs, consts, consts + carries);
      if (needed == carry) {
        Attrs attrs = with(equation.attrs, "jaxpr", pruned.program);
        attrs = with(attrs, "num_consts", count(part(pruned.used_inputs, 0, consts)));
        return {pruned.used_inputs, join(carry, ys), with(attrs, "num_carry", count(carry))};
      }
      carry = either(carry, needed);
    }
  }

  Smaller prune_while(const Equation& equation, const Mask& used) {
    const Program& condition = equation.attrs.program("cond_jaxpr");
    const Program& body = equation.attrs.program("body_jaxpr");
    std::size_t condition_consts = static_cast<std::size_t>(equation.attrs.integer("cond_nconsts"));
    std::size_t body_consts = static_cast<std::size_t>(equation.attrs.integer("body_nconsts"));
    Mask carry = used;
    for (;;) {
      const Mask in_condition = prune(condition, {true}, join(Mask(condition_consts, false), carry)).used_inputs;
      const Mask in_body = prune(body, carry, join(Mask(body_consts, false), carry)).used_inputs;
      Mask needed = either(part(in_condition, condition_consts, in_condition.size()),
                           part(in_body, body_consts, in_body.size()));
      if (needed == carry) break;
      carry = either(carry, needed);
    }
    DceProgram test = prune(condition, {true}, join(Mask(condition_consts, false), carry));
    DceProgram step = prune(body, carry, join(Mask(body_consts, false), carry));
    Mask test_consts = part(test.used_inputs, 0, condition_consts), step_consts = part(step.used_inputs, 0, body_consts);
    Attrs attrs = with(with(equation.attrs, "cond_jaxpr", test.program), "body_jaxpr", step.program);
    attrs = with(with(attrs, "cond_nconsts", count(test_consts)), "body_nconsts", count(step_consts));
    return {join(test_consts, step_consts, carry), carry, attrs};
  }

  Smaller prune_barrier(const Equation& equation, const Mask& used) { return {used, used, equation.attrs}; }

  static Attrs with(const Attrs& attrs, const char* name, const Program& program) {
    return attrs.program(name).identity() == program.identity() ? attrs : attrs.with(name, program);
  }
  static Attrs with(const Attrs& attrs, const char* name, int64_t number) {
    return attrs.integer(name) == number ? attrs : attrs.with(name, number);
  }

  static Rule rule_of(const Primitive& primitive) {
    if (primitive == prim::scan()) return &Pruner::prune_scan;
    if (primitive == prim::while_()) return &Pruner::prune_while;
    if (primitive == prim::cond()) return &Pruner::prune_branches;
    if (primitive == prim::optimization_barrier()) return &Pruner::prune_barrier;
    if (primitive == prim::jit() || primitive == prim::remat2()) return &Pruner::prune_call;
    return nullptr;
  }

  DceProgram make(const Program& program, const Mask& used_outputs, const Mask& keep_inputs) {
    Mask live(static_cast<std::size_t>(program.var_count()), false);
    auto use = [&](Atom atom) {
      if (!atom.is_literal()) live[static_cast<std::size_t>(atom.code)] = true;
    };
    bool changed = false;
    for (std::size_t i = 0; i < program.outputs().size(); ++i) {
      if (used_outputs[i]) use(program.outputs()[i]);
      changed |= !used_outputs[i];
    }
    std::vector<Equation> kept;
    for (std::size_t e = program.equations().size(); e-- > 0;) {
      const Equation& equation = program.equations()[e];
      bool any = equation.effects.keeps_equation(), newly_dropped = false;
      Mask used;
      for (Var output : equation.outputs) {
        used.push_back(!output.dropped() && live[static_cast<std::size_t>(output.id)]);
        any |= used.back();
        newly_dropped |= !used.back() && !output.dropped();
      }
      if (!any) {
        changed = true;
        continue;
      }
      Equation out = equation;
      Rule rule = equation.effects.keeps_equation() ? nullptr : rule_of(equation.primitive);
      if (rule) {
        Smaller smaller = (this->*rule)(equation, used);
        out.inputs.clear();
        out.outputs.clear();
        for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
          if (smaller.inputs[i]) out.inputs.push_back(equation.inputs[i]);
        }
        for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
          if (smaller.outputs[i]) out.outputs.push_back(used[i] ? equation.outputs[i] : Var{});
        }
        out.attrs = smaller.attrs;
      } else {
        for (std::size_t i = 0; i < used.size(); ++i) {
          if (!used[i]) out.outputs[i] = Var{};
        }
        out.attrs = rewrite_programs(equation.attrs, [this](const Program& nested) { return prune_inside(nested); });
      }
      changed |= newly_dropped || !same_object(out.attrs, equation.attrs) || out.inputs.size() != equation.inputs.size() ||
                 out.outputs.size() != equation.outputs.size();
      for (Atom input : out.inputs) use(input);
      kept.push_back(std::move(out));
    }

    DceProgram result;
    for (std::size_t i = 0; i < program.invars().size(); ++i) {
      bool keep = live[static_cast<std::size_t>(program.invars()[i].id)] || (!keep_inputs.empty() && keep_inputs[i]);
      result.used_inputs.push_back(keep);
      changed |= !keep;
    }
    for (Var var : program.constvars()) changed |= !live[static_cast<std::size_t>(var.id)];
    result.program = changed ? rebuilt(program, live, result.used_inputs, used_outputs, std::move(kept)) : program;
    return result;
  }

  static Program rebuilt(const Program& program, const Mask& live, const Mask& used_inputs, const Mask& used_outputs,
                         std::vector<Equation> kept) {
    std::reverse(kept.begin(), kept.end());
    Program::Body body;
    body.name = program.name();
    std::vector<int32_t> now(live.size(), -1), literal_now(program.body().literals.size(), -1);
    auto define = [&](Var var) {
      if (var.dropped()) return var;
      body.var_types.push_back(program.type(var));
      now[static_cast<std::size_t>(var.id)] = static_cast<int32_t>(body.var_types.size()) - 1;
      return Var{now[static_cast<std::size_t>(var.id)]};
    };
    auto read = [&](Atom atom) -> Atom {
      if (!atom.is_literal()) return Var{now[static_cast<std::size_t>(atom.code)]};
      int32_t& index = literal_now[static_cast<std::size_t>(atom.literal_index())];
      if (index < 0) {
        body.literals.push_back(program.literal(atom));
        index = static_cast<int32_t>(body.literals.size()) - 1;
      }
      return Atom::literal(index);
    };
    for (std::size_t i = 0; i < program.constvars().size(); ++i) {
      if (!live[static_cast<std::size_t>(program.constvars()[i].id)]) continue;
      body.constvars.push_back(define(program.constvars()[i]));
      body.constants.push_back(program.constants()[i]);
    }
    for (std::size_t i = 0; i < program.invars().size(); ++i) {
      if (used_inputs[i]) body.invars.push_back(define(program.invars()[i]));
    }
    for (Equation& equation : kept) {
      for (Atom& input : equation.inputs) input = read(input);
      for (Var& output : equation.outputs) output = define(output);
      body.effects.merge(equation.effects);
    }
    body.equations = std::move(kept);
    for (std::size_t i = 0; i < program.outputs().size(); ++i) {
      if (used_outputs[i]) body.outputs.push_back(read(program.outputs()[i]));
    }
    return Program(std::move(body));
  }

  std::unordered_map<MemoKey, DceProgram, MemoHash> done_;
};

}  // namespace

Program dce(const Program& program) { return Pruner().prune_inside(program); }

}  // namespace capibara::passes
