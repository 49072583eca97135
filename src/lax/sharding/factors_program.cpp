// Factors of equations that hold programs: those of the program's own equations, joined; and the programs of parts.
#include "lax/sharding/factors.h"
#include "program/ir/build.h"
#include "program/ir/views.h"
#include "program/trace/stage.h"

namespace capibara {

namespace {

// A program in a graph: the factors of each of its variables.
class ProgramFactors {
 public:
  ProgramFactors(FactorGraph& graph, const Program& program) : graph_(graph), program_(program) {
    for (const ArrayType& type : program.body().var_types) vars_.push_back(graph.value(type));
    for (Var var : program.constvars()) {
      for (const DimensionFactors& dimension : of(var)) graph.require_whole(dimension);
    }
    for (const Equation& equation : program.equations()) join(equation);
  }
  const ValueFactors& of(Var var) const { return vars_[static_cast<std::size_t>(var.id)]; }
  ValueFactors of(Atom atom) const { return atom.is_literal() ? ValueFactors() : of(atom.var()); }
  std::vector<ValueFactors> inputs() const {
    std::vector<ValueFactors> values;
    for (Var var : program_.invars()) values.push_back(of(var));
    return values;
  }
  std::vector<ValueFactors> outputs() const {
    std::vector<ValueFactors> values;
    for (Atom atom : program_.outputs()) values.push_back(of(atom));
    return values;
  }
  const Program& program() const { return program_; }

 private:
  Types types(const auto& atoms) const {
    Types types;
    for (Atom atom : atoms) types.push_back(program_.type(atom));
    return types;
  }
  // Sums inside a program need their factor whole: later equations need the sum.
  void join(const Equation& equation) {
    for (Var output : equation.outputs) {
      if (output.dropped()) return whole(equation);
    }
    const Types operands = types(equation.inputs), results = types(equation.outputs);
    const Factors own = factors_of({equation.primitive, operands, results, equation.attrs});
    std::vector<DimensionFactors> nodes;
    for (const Factor& factor : own.factors) {
      nodes.push_back(graph_.dimension(factor.size));
      if (factor.use != FactorUse::free) graph_.require_whole(nodes.back());
    }
    auto match = [&](Atom atom, const ValueFactors& value) {
      if (atom.is_literal()) return;
      for (std::size_t d = 0; d < value.size(); ++d) {
        DimensionFactors dimension;
        for (int id : value[d]) {
          const DimensionFactors& one = nodes[static_cast<std::size_t>(id)];
          dimension.insert(dimension.end(), one.begin(), one.end());
        }
        graph_.match(of(atom.var())[d], dimension);
      }
    };
    for (std::size_t i = 0; i < equation.inputs.size(); ++i) match(equation.inputs[i], own.operands[i]);
    for (std::size_t i = 0; i < equation.outputs.size(); ++i) match(equation.outputs[i], own.results[i]);
  }
  void whole(const Equation& equation) {
    for (Atom input : equation.inputs) {
      for (const DimensionFactors& dimension : of(input)) graph_.require_whole(dimension);
    }
    for (Var output : equation.outputs) {
      if (output.dropped()) continue;
      for (const DimensionFactors& dimension : of(output)) graph_.require_whole(dimension);
    }
  }

  FactorGraph& graph_;
  const Program program_;
  std::vector<ValueFactors> vars_;
};

// ---- programs on parts ---------------------------------------------------------------------------------------------

// The number of parts into which each factor of a graph is split, read off the types of parts.
class Cuts {
 public:
  explicit Cuts(const FactorGraph& graph) : graph_(graph) {}
  void read(const ValueFactors& value, const ArrayType& whole, const ArrayType& part) {
    const ValueFactors factors = graph_.resolved(value);
    for (std::size_t d = 0; d < factors.size(); ++d) {
      if (part.shape[d] == 0 || part.shape[d] == whole.shape[d]) continue;
      // A dimension of one factor decides for those of several.
      if (factors[d].size() == 1)
        read(factors[d], whole.shape[d] / part.shape[d]);
      else
        open_.emplace_back(factors[d], whole.shape[d] / part.shape[d]);
    }
  }
  void settle() {
    for (const auto& [dimension, parts] : open_) read(dimension, parts);
    open_.clear();
  }
  ArrayType part(const ValueFactors& value, ArrayType type) const {
    const ValueFactors factors = graph_.resolved(value);
    for (std::size_t d = 0; d < factors.size(); ++d) {
      for (int id : factors[d]) type.shape[d] /= of(id);
    }
    return type;
  }

 private:
  int64_t of(int id) const {
    for (const auto& [known, parts] : cuts_) {
      if (known == id) return parts;
    }
    return 1;
  }
  void read(const DimensionFactors& dimension, int64_t parts) {
    for (int id : dimension) parts /= of(id);
    for (int id : dimension) {
      if (parts <= 1) return;
      if (graph_.factor(id).use == FactorUse::whole || graph_.factor(id).size % parts != 0) continue;
      cuts_.emplace_back(id, parts);
      parts = 1;
    }
  }

  const FactorGraph& graph_;
  std::vector<std::pair<int, int64_t>> cuts_;
  std::vector<std::pair<DimensionFactors, int64_t>> open_;
};

Program part_of(const ProgramFactors& factors, Cuts& cuts) {
  cuts.settle();
  Program::Body body = factors.program().body();
  for (std::size_t v = 0; v < body.var_types.size(); ++v)
    body.var_types[v] = cuts.part(factors.of(Var{static_cast<int32_t>(v)}), body.var_types[v]);
  for (Equation& equation : body.equations) {
    if (!equation.primitive->localise) continue;
    Types operands, results;
    for (Atom input : equation.inputs) {
      operands.push_back(input.is_literal() ? factors.program().type(input)
                                            : body.var_types[static_cast<std::size_t>(input.code)]);
    }
    for (Var output : equation.outputs) results.push_back(body.var_types[static_cast<std::size_t>(output.id)]);
    equation.attrs = equation.primitive->localise({equation.primitive, operands, results, equation.attrs});
  }
  return Program(std::move(body));
}

std::vector<ValueFactors> inner(const ValueFactors& loop, const std::vector<ValueFactors>& values, std::size_t first) {
  std::vector<ValueFactors> out = values;
  for (std::size_t i = first; i < out.size(); ++i) out[i].insert(out[i].begin(), loop[0]);
  return out;
}

const char* program_name(const EquationTypes& equation) { return equation.primitive->traits.called_program; }

ArrayType slice_type(ArrayType type) {
  type.shape.erase(type.shape.begin());
  return type;
}

}  // namespace

// ---- calls ---------------------------------------------------------------------------------------------------------

Factors call_factors(const EquationTypes& equation) {
  const Program program = equation.attrs.program(program_name(equation));
  if (program.invars().size() != equation.operands.size()) return whole_factors(equation);
  FactorGraph graph;
  const ProgramFactors body(graph, program);
  return graph.finish(body.inputs(), body.outputs());
}

Attrs localise_call(const EquationTypes& equation) {
  const Program program = equation.attrs.program(program_name(equation));
  if (program.invars().size() != equation.operands.size()) return equation.attrs;
  FactorGraph graph;
  const ProgramFactors body(graph, program);
  Cuts cuts(graph);
  for (std::size_t i = 0; i < equation.operands.size(); ++i)
    cuts.read(body.inputs()[i], program.type(program.invars()[i]), equation.operands[i]);
  for (std::size_t i = 0; i < equation.results.size(); ++i)
    cuts.read(body.outputs()[i], program.type(program.outputs()[i]), equation.results[i]);
  return equation.attrs.with(program_name(equation), part_of(body, cuts));
}

namespace {

Staged staged_lowering(const EquationTypes& equation, std::span<const ArrayType> operands) {
  return stage_open([&](std::span<const Array> inputs) { return equation.primitive->lower(inputs, equation.attrs); },
                    operands, equation.primitive.name());
}

bool same_steps(const Program& a, const Program& b) {
  if (a.equations().size() != b.equations().size() || a.body().literals.size() != b.body().literals.size())
    return false;
  for (std::size_t e = 0; e < a.equations().size(); ++e) {
    if (!(a.equations()[e].primitive == b.equations()[e].primitive)) return false;
  }
  for (std::size_t i = 0; i < a.body().literals.size(); ++i) {
    const Array &x = a.body().literals[i], &y = b.body().literals[i];
    if (x.dtype() != y.dtype() || x.to_string() != y.to_string()) return false;
  }
  return true;
}

// A composition may contain sizes as numbers, and a type rule may relate sizes to one another: parts must be typed and
// composed as the whole is.
bool holds_for_parts(const EquationTypes& equation, const Factors& factors, int factor, const Program& whole) {
  int64_t parts = 2;
  while (factors.factors[static_cast<std::size_t>(factor)].size % parts != 0) ++parts;
  const PartTypes part = part_types(equation, factors, factor, parts);
  try {
    const Types results = equation.primitive->type(part.operands, equation.attrs).types;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].shape != part.results[i].shape) return false;
    }
    return same_steps(staged_lowering(equation, part.operands).program, whole);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

Factors lowered_factors(const EquationTypes& equation) {
  const Staged staged = staged_lowering(equation, equation.operands);
  if (!staged.captured.empty() || staged.program.outputs().size() != equation.results.size())
    return whole_factors(equation);
  for (const Equation& inner : staged.program.equations()) {
    if (inner.primitive == equation.primitive) return whole_factors(equation);
  }
  FactorGraph graph;
  const ProgramFactors body(graph, staged.program);
  Factors factors = graph.finish(body.inputs(), body.outputs());
  for (std::size_t f = 0; f < factors.factors.size(); ++f) {
    Factor& factor = factors.factors[f];
    if (factor.use == FactorUse::free && !holds_for_parts(equation, factors, static_cast<int>(f), staged.program))
      factor.use = FactorUse::whole;
  }
  return factors;
}

// ---- scan: the leading dimension of what it reads and stacks is whole ----------------------------------------------

namespace {

struct ScanFactors {
  explicit ScanFactors(const EquationTypes& equation)
      : view(equation.attrs), body(graph, view.body()), length(graph.dimension(view.length())) {
    graph.require_whole(length);
    for (std::size_t i = 0; i < view.carry(); ++i) graph.match(body.inputs()[view.consts() + i], body.outputs()[i]);
  }
  FactorGraph graph;
  ScanView view;
  ProgramFactors body;
  DimensionFactors length;
};

}  // namespace

Factors scan_factors(const EquationTypes& equation) {
  const ScanFactors scan(equation);
  return scan.graph.finish(inner({scan.length}, scan.body.inputs(), scan.view.first_xs()),
                           inner({scan.length}, scan.body.outputs(), scan.view.carry()));
}

Attrs localise_scan(const EquationTypes& equation) {
  const ScanFactors scan(equation);
  const Program& program = scan.view.body();
  Cuts cuts(scan.graph);
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    const ArrayType part = i < scan.view.first_xs() ? equation.operands[i] : slice_type(equation.operands[i]);
    cuts.read(scan.body.inputs()[i], program.type(program.invars()[i]), part);
  }
  for (std::size_t i = 0; i < equation.results.size(); ++i) {
    const ArrayType part = i < scan.view.carry() ? equation.results[i] : slice_type(equation.results[i]);
    cuts.read(scan.body.outputs()[i], program.type(program.outputs()[i]), part);
  }
  return equation.attrs.with("jaxpr", part_of(scan.body, cuts));
}

// ---- while and cond ------------------------------------------------------------------------------------------------

namespace {

struct WhileFactors {
  explicit WhileFactors(const EquationTypes& equation)
      : view(equation.attrs), condition(graph, view.condition()), body(graph, view.body()) {
    for (std::size_t i = 0; i < view.carry(); ++i) {
      graph.match(body.inputs()[view.body_consts() + i], body.outputs()[i]);
      graph.match(body.inputs()[view.body_consts() + i], condition.inputs()[view.cond_consts() + i]);
    }
  }
  std::vector<ValueFactors> operands() const {
    std::vector<ValueFactors> all = condition.inputs();
    all.resize(view.cond_consts());
    for (const ValueFactors& value : body.inputs()) all.push_back(value);
    return all;
  }
  FactorGraph graph;
  WhileView view;
  ProgramFactors condition, body;
};

struct CondFactors {
  explicit CondFactors(const EquationTypes& equation) : view(equation.attrs) {
    for (const Program& branch : view.branches()) {
      branches.push_back(std::make_unique<ProgramFactors>(graph, branch));
      for (std::size_t i = 0; i < branch.invars().size(); ++i)
        graph.match(branches[0]->inputs()[i], branches.back()->inputs()[i]);
      for (std::size_t i = 0; i < branch.outputs().size(); ++i)
        graph.match(branches[0]->outputs()[i], branches.back()->outputs()[i]);
    }
  }
  std::vector<ValueFactors> operands() const {
    std::vector<ValueFactors> all = branches[0]->inputs();
    all.insert(all.begin(), ValueFactors());
    return all;
  }
  FactorGraph graph;
  CondView view;
  std::vector<std::unique_ptr<ProgramFactors>> branches;
};

}  // namespace

Factors while_factors(const EquationTypes& equation) {
  const WhileFactors loop(equation);
  return loop.graph.finish(loop.operands(), loop.body.outputs());
}

Attrs localise_while(const EquationTypes& equation) {
  const WhileFactors loop(equation);
  Cuts cuts(loop.graph);
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    const Program& program = i < loop.view.cond_consts() ? loop.view.condition() : loop.view.body();
    const std::size_t at = i < loop.view.cond_consts() ? i : i - loop.view.cond_consts();
    cuts.read(loop.operands()[i], program.type(program.invars()[at]), equation.operands[i]);
  }
  return equation.attrs.with("cond_jaxpr", part_of(loop.condition, cuts)).with("body_jaxpr", part_of(loop.body, cuts));
}

Factors cond_factors(const EquationTypes& equation) {
  const CondFactors cond(equation);
  return cond.graph.finish(cond.operands(), cond.branches[0]->outputs());
}

Attrs localise_cond(const EquationTypes& equation) {
  const CondFactors cond(equation);
  const Program& first = cond.view.branches()[0];
  Cuts cuts(cond.graph);
  for (std::size_t i = 0; i < first.invars().size(); ++i)
    cuts.read(cond.branches[0]->inputs()[i], first.type(first.invars()[i]), equation.operands[i + 1]);
  for (std::size_t i = 0; i < first.outputs().size(); ++i)
    cuts.read(cond.branches[0]->outputs()[i], first.type(first.outputs()[i]), equation.results[i]);
  std::vector<Program> parts;
  for (const auto& branch : cond.branches) parts.push_back(part_of(*branch, cuts));
  return equation.attrs.with("branches", Attr::programs(parts));
}

}  // namespace capibara
