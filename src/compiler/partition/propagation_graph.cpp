// Builds the graph of a program: a rule for each equation; loops and branches are edges between values.
#include "compiler/partition/propagation_graph.h"

#include <algorithm>
#include <numeric>

#include "compiler/partition/windows.h"
#include "core/sharding/placed_memory.h"
#include "lax/shard_map/shard_map.h"
#include "program/ir/handles.h"
#include "program/ir/views.h"

namespace capibara::sharding {

namespace {

RuleKind kind_of(const Primitive& primitive, bool adds_elements) {
  if (primitive->traits.elementwise != Elementwise::no || primitive == prim::reshape() ||
      primitive == prim::transpose() || primitive == prim::squeeze() || primitive == prim::copy() ||
      primitive == prim::sharding_constraint() || primitive == prim::optimization_barrier())
    return RuleKind::pass_through;
  if (primitive == prim::dynamic_slice() || primitive == prim::dynamic_update_slice()) return RuleKind::slice;
  if (primitive != prim::broadcast_in_dim()) return RuleKind::other;
  return adds_elements ? RuleKind::broadcast : RuleKind::pass_through;  // else a reshape
}

Types result_types(const Program& program, const Equation& equation, const Types& operands) {
  Types types;
  for (const Var output : equation.outputs) {
    if (output.dropped()) return equation.primitive->type(operands, equation.attrs).types;
    types.push_back(program.type(output));
  }
  return types;
}

// Each dimension is a factor that all these values share.
Factors same_factors(const Shape& shape, std::size_t operands, std::size_t results) {
  Factors factors;
  ValueFactors value;
  for (const int64_t size : shape) {
    value.emplace_back();
    if (size != 1) value.back().push_back(factors.add(size));
  }
  factors.operands.assign(operands, value);
  factors.results.assign(results, value);
  return factors;
}

}  // namespace

int PropagationGraph::add_value(const ArrayType& type, const std::optional<Demand>& demand) {
  const std::size_t rank = type.shape.size();
  PropagatedValue value{Layout(rank), std::vector<bool>(rank), type.size()};
  if (demand) {
    value.layout = demand->layout;
    for (std::size_t dim = 0; dim < rank; ++dim) value.closed[dim] = demand->open.empty() || !demand->open[dim];
  }
  values.push_back(std::move(value));
  users.emplace_back();
  return static_cast<int>(values.size()) - 1;
}

void PropagationGraph::add_rule(Rule rule) {
  for (const auto* list : {&rule.operands, &rule.results}) {
    for (const int value : *list) {
      if (value < 0) continue;
      std::vector<std::size_t>& own = users[static_cast<std::size_t>(value)];
      if (own.empty() || own.back() != rules.size()) own.push_back(rules.size());
    }
  }
  rules.push_back(std::move(rule));
}

void PropagationGraph::add_edge(std::vector<int> from, std::vector<int> to, const Shape& shape) {
  Factors factors = same_factors(shape, from.size(), to.size());
  add_rule({RuleKind::pass_through, std::move(from), std::move(to), std::move(factors)});
}

void PropagationGraph::add_slices(int stacked, int one, const Shape& stack, bool reads) {
  Factors factors = same_factors(stack, 1, 1);
  factors.results[0].erase(factors.results[0].begin());
  if (!factors.operands[0][0].empty())
    factors.factors[static_cast<std::size_t>(factors.operands[0][0][0])].use = FactorUse::whole;
  if (reads) return add_rule({RuleKind::slice, {stacked}, {one}, std::move(factors)});
  std::swap(factors.operands, factors.results);
  add_rule({RuleKind::slice, {one}, {stacked}, std::move(factors)});
}

void PropagationGraph::fix(int value, const Layout& layout, const std::vector<int64_t>& open) {
  PropagatedValue& own = values[static_cast<std::size_t>(value)];
  own.layout = layout;
  own.closed.assign(layout.size(), true);
  for (const int64_t dim : open) own.closed[static_cast<std::size_t>(dim)] = false;
}

ProgramValues PropagationGraph::add_program(const Program& program, const Demands& inputs, const Demands& outputs) {
  std::vector<int> given;
  for (std::size_t i = 0; i < program.invars().size(); ++i)
    given.push_back(add_value(program.type(program.invars()[i]), i < inputs.size() ? inputs[i] : std::nullopt));
  ProgramValues own = add_nested(program, std::move(given));
  for (std::size_t i = 0; i < program.outputs().size() && i < outputs.size(); ++i) {
    if (!outputs[i]) continue;
    const ArrayType& type = program.type(program.outputs()[i]);
    const int result = add_value(type, outputs[i]);
    if (own.outputs[i] >= 0) add_edge({own.outputs[i]}, {result}, type.shape);
    own.outputs[i] = result;
  }
  return own;
}

ProgramValues PropagationGraph::add_nested(const Program& program, std::vector<int> inputs) {
  ProgramValues own;
  own.vars.assign(static_cast<std::size_t>(program.var_count()), -1);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Var var = program.invars()[i];
    own.vars[static_cast<std::size_t>(var.id)] = inputs[i] >= 0 ? inputs[i] : add_value(program.type(var));
  }
  for (std::size_t e = 0; e < program.equations().size(); ++e) add_equation(program, own, e);
  for (const Atom output : program.outputs())
    own.outputs.push_back(output.is_literal() ? -1 : own.vars[static_cast<std::size_t>(output.code)]);
  return own;
}

void PropagationGraph::add_equation(const Program& program, ProgramValues& own, std::size_t index) {
  const Equation& equation = program.equations()[index];
  std::vector<int> operands, results;
  Types types;
  for (const Atom input : equation.inputs) {
    operands.push_back(input.is_literal() ? -1 : own.vars[static_cast<std::size_t>(input.code)]);
    types.push_back(program.type(input));
  }
  const Types out = result_types(program, equation, types);
  for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
    results.push_back(add_value(out[i]));
    if (!equation.outputs[i].dropped()) own.vars[static_cast<std::size_t>(equation.outputs[i].id)] = results.back();
  }
  switch (equation.primitive->traits.control) {
    case Control::scan:
      return add_scan(equation, own, index, operands, results);
    case Control::while_loop:
      return add_while(equation, own, index, operands, results);
    case Control::cond:
      return add_cond(equation, own, index, operands, results);
    case Control::device_map:
      return add_map(equation, types, operands, results);
    default:
      break;
  }
  if (out.empty()) return;  // the split of a callback's operands is not known
  if (equation.primitive == prim::sharding_constraint()) add_constraint(equation, out[0], operands[0], results[0]);
  const bool adds_elements = types.empty() || types[0].size() != out[0].size();
  if (equation.primitive->traits.elementwise != Elementwise::no) add_broadcasts(types, operands, out[0]);
  add_rule({kind_of(equation.primitive, adds_elements), operands, results,
            propagated_factors({equation.primitive, types, out, equation.attrs})});
}

// Operands that an elementwise operation broadcasts along dimensions of size one are broadcast explicitly, as in the
// text that Shardy sees: their splits are weaker than those of operands of full size.
void PropagationGraph::add_broadcasts(Types& types, std::vector<int>& operands, const ArrayType& result) {
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (operands[i] < 0 || types[i].rank() != result.rank() || types[i].shape == result.shape) continue;
    Factors factors = same_factors(result.shape, 1, 1);
    for (std::size_t dim = 0; dim < types[i].shape.size(); ++dim) {
      if (types[i].shape[dim] != result.shape[dim]) factors.operands[0][dim].clear();
    }
    const int given = operands[i];
    types[i].shape = result.shape;
    operands[i] = add_value(types[i]);
    add_rule({RuleKind::broadcast, {given}, {operands[i]}, std::move(factors)});
  }
}

void PropagationGraph::add_constraint(const Equation& equation, const ArrayType& type, int operand, int result) {
  const auto attr = equation.attrs.opaque<PlacementAttr>("sharding");
  const NamedSharding& placement = *attr->placement;
  if (!(placement.mesh.axis_names == mesh_.axis_names) || !(placement.mesh.axis_sizes == mesh_.axis_sizes)) return;
  const std::optional<Layout> layout = layout_of(mesh_, placement.spec, type.shape.size());
  if (!layout || !divides(mesh_, type.shape, *layout)) return;
  const Ints& open = equation.attrs.ints("unconstrained_dims");
  fix(result, *layout, open);
  // If the operand is not constrained otherwise, it is computed in the layout of the constraint.
  if (operand < 0) return;
  PropagatedValue& given = values[static_cast<std::size_t>(operand)];
  const bool said = !used_axes(given.layout).empty() ||
                    std::find(given.closed.begin(), given.closed.end(), true) != given.closed.end();
  if (!said && open.empty()) given.layout = *layout;
}

// The function of shard_map sees its operands in the layouts of its specifications; the same holds for its results.
void PropagationGraph::add_map(const Equation& equation, const Types& types, const std::vector<int>& operands,
                               const std::vector<int>& results) {
  const ShardMapView map(equation.attrs);
  if (map.mesh().axis_names != mesh_.axis_names) return;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::optional<Layout> layout = layout_of(mesh_, map.in_specs()[i], types[i].shape.size());
    if (operands[i] < 0 || !layout) continue;
    const int wanted = add_value(types[i]);
    fix(wanted, *layout);
    add_edge({operands[i]}, {wanted}, types[i].shape);
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::size_t rank = values[static_cast<std::size_t>(results[i])].layout.size();
    if (const std::optional<Layout> layout = layout_of(mesh_, map.out_specs()[i], rank)) fix(results[i], *layout);
  }
}

// ---- loops and branches --------------------------------------------------------------------------------------------

void PropagationGraph::add_scan(const Equation& equation, ProgramValues& own, std::size_t index,
                                const std::vector<int>& operands, const std::vector<int>& results) {
  const ScanView loop(equation);
  const Program& body = loop.body();
  std::vector<int> inputs(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(loop.consts()));
  auto stack_shape = [&](const ArrayType& slice) {
    Shape shape = slice.shape;
    shape.insert(shape.begin(), loop.length());
    return shape;
  };
  for (std::size_t i = loop.consts(); i < operands.size(); ++i) {
    const ArrayType& type = body.type(body.invars()[i]);
    inputs.push_back(add_value(type));
    if (i >= loop.first_xs() && operands[i] >= 0) add_slices(operands[i], inputs.back(), stack_shape(type), true);
  }
  const std::vector<int> carried(inputs.begin() + static_cast<std::ptrdiff_t>(loop.consts()), inputs.end());
  ProgramValues nested = add_nested(body, std::move(inputs));
  for (std::size_t i = 0; i < loop.carry(); ++i) {
    const ArrayType& type = body.type(body.invars()[loop.consts() + i]);
    add_edge({operands[loop.consts() + i], nested.outputs[i]}, {carried[i], results[i]}, type.shape);
  }
  for (std::size_t i = loop.carry(); i < results.size(); ++i) {
    if (nested.outputs[i] >= 0)
      add_slices(results[i], nested.outputs[i], stack_shape(body.type(body.outputs()[i])), false);
  }
  own.nested[index].emplace_back(body, std::move(nested));
}

void PropagationGraph::add_while(const Equation& equation, ProgramValues& own, std::size_t index,
                                 const std::vector<int>& operands, const std::vector<int>& results) {
  const WhileView loop(equation);
  const auto first = operands.begin();
  std::vector<int> of_condition(first, first + static_cast<std::ptrdiff_t>(loop.cond_consts()));
  std::vector<int> of_body(first + static_cast<std::ptrdiff_t>(loop.cond_consts()),
                           first + static_cast<std::ptrdiff_t>(loop.first_carry()));
  std::vector<int> carried;
  for (std::size_t i = 0; i < loop.carry(); ++i)
    carried.push_back(add_value(loop.body().type(loop.body().invars()[loop.body_consts() + i])));
  of_condition.insert(of_condition.end(), carried.begin(), carried.end());
  of_body.insert(of_body.end(), carried.begin(), carried.end());
  ProgramValues condition = add_nested(loop.condition(), std::move(of_condition));
  ProgramValues body = add_nested(loop.body(), std::move(of_body));
  for (std::size_t i = 0; i < loop.carry(); ++i) {
    const ArrayType& type = loop.body().type(loop.body().invars()[loop.body_consts() + i]);
    add_edge({operands[loop.first_carry() + i], body.outputs[i]}, {carried[i], results[i]}, type.shape);
  }
  own.nested[index].emplace_back(loop.condition(), std::move(condition));
  own.nested[index].emplace_back(loop.body(), std::move(body));
}

void PropagationGraph::add_cond(const Equation& equation, ProgramValues& own, std::size_t index,
                                const std::vector<int>& operands, const std::vector<int>& results) {
  const CondView cond(equation);
  const std::vector<int> given(operands.begin() + 1, operands.end());
  std::vector<std::vector<int>> outputs(results.size());
  for (const Program& branch : cond.branches()) {
    ProgramValues nested = add_nested(branch, given);
    for (std::size_t i = 0; i < results.size(); ++i) outputs[i].push_back(nested.outputs[i]);
    own.nested[index].emplace_back(branch, std::move(nested));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ArrayType type = cond.branches()[0].output_types()[i];
    add_edge(outputs[i], {results[i]}, type.shape);
  }
}

// ---- factors -------------------------------------------------------------------------------------------------------

namespace {

// Operations that move elements along a dimension: operands and results are all split alike.
bool shifts(const Primitive& primitive) {
  return primitive == prim::slice() || primitive == prim::pad() || primitive == prim::concatenate() ||
         primitive == prim::rev();
}

}  // namespace

Factors propagated_factors(const EquationTypes& equation) {
  Factors factors = factors_of(equation);
  join_slid_dimensions(slid_dimensions(equation), equation, factors);
  if (!shifts(equation.primitive)) return factors;
  for (std::size_t dim = 0; dim < equation.results[0].shape.size(); ++dim) {
    int64_t size = equation.results[0].shape[dim];
    for (const ArrayType& operand : equation.operands) {
      if (operand.rank() > 0) size = std::gcd(size, operand.shape[dim]);
    }
    const DimensionFactors& own = factors.results[0][dim];
    const bool is_whole = own.size() == 1 && factors.factors[static_cast<std::size_t>(own[0])].use == FactorUse::whole;
    if (size <= 1 || !is_whole) continue;
    const int joined = factors.add(size, FactorUse::whole);
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      if (equation.operands[i].rank() > 0) factors.operands[i][dim] = {joined};
    }
    factors.results[0][dim] = {joined};
  }
  return factors;
}

}  // namespace capibara::sharding
