// For each equation: chooses the split factors that move the fewest bytes, reshards operands to that, runs the same
// primitive on parts, and combines pending results on the way to the layout that propagation gave the result.
#include "compiler/partition/partitioner.h"

#include <capibara/control.h>
#include <capibara/lax.h>

#include "compiler/partition/flatten.h"
#include "lax/shard_map/shard_map.h"
#include "lax/sharding/user_partition.h"
#include "program/ir/handles.h"
#include "program/ir/nested.h"
#include "program/ir/plain_types.h"
#include "program/ir/source.h"
#include "program/ir/views.h"
#include "program/trace/stage.h"

namespace capibara::sharding {

namespace {

// Bytes that can be sent in the time that one element of an equation takes to compute.
constexpr double element_work = 0.02;

Layout stack_layout(Layout layout) {
  layout.insert(layout.begin(), Axes{});
  return layout;
}

Locals localised(std::span<const Array> arrays, const std::vector<Layout>& layouts) {
  Locals locals;
  for (std::size_t i = 0; i < arrays.size(); ++i) locals.push_back({arrays[i], layouts[i]});
  return locals;
}

}  // namespace

Arrays Partitioner::run(const Program& program, const Shardings& shardings, Locals inputs) {
  std::vector<Local> values(static_cast<std::size_t>(program.var_count()));
  // Copies made in the body of a loop are not visible outside it, while those from outside are visible inside.
  auto set = [&](Var var, Local value) {
    using Copies = std::map<Layout, Array>;
    value.copies = value.copies ? std::make_shared<Copies>(*value.copies) : std::make_shared<Copies>();
    values[static_cast<std::size_t>(var.id)] = std::move(value);
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) set(program.invars()[i], std::move(inputs[i]));
  for (std::size_t i = 0; i < program.constvars().size(); ++i) {
    const Array& constant = program.constants()[i];
    set(program.constvars()[i], {constant, Layout(constant.shape().size())});
  }
  auto read = [&](Atom atom) {
    return atom.is_literal() ? Local{program.literal(atom), {}} : values[static_cast<std::size_t>(atom.code)];
  };
  for (std::size_t e = 0; e < program.equations().size(); ++e) {
    const Equation& equation = program.equations()[e];
    const SourceScope source(equation.source);
    Locals operands;
    Types operand_types, result_types;
    for (const Atom input : equation.inputs) {
      operands.push_back(read(input));
      operand_types.push_back(program.type(input));
    }
    std::vector<Layout> wanted;
    for (const Var output : equation.outputs) {
      if (output.dropped()) result_types = equation.primitive->type(operand_types, equation.attrs).types;
    }
    for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
      const Var output = equation.outputs[i];
      if (result_types.size() < equation.outputs.size()) result_types.push_back(program.type(output));
      wanted.push_back(output.dropped() ? Layout(result_types[i].shape.size())
                                        : shardings.vars[static_cast<std::size_t>(output.id)]);
    }
    const auto nested = shardings.nested.find(e);
    const Arrays results = step({equation, operand_types, result_types, operands, wanted,
                                 nested == shardings.nested.end() ? nullptr : &nested->second});
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!equation.outputs[i].dropped()) set(equation.outputs[i], {results[i], wanted[i]});
    }
  }
  Arrays outputs;
  for (std::size_t i = 0; i < program.outputs().size(); ++i) {
    const Atom output = program.outputs()[i];
    outputs.push_back(
        resharded(program.type(output), read(output), shardings.outputs[i], concat("result ", i, " of the program")));
  }
  return outputs;
}

Array Partitioner::resharded(const ArrayType& type, const Array& x, const Placed& from, const Layout& to,
                             const std::string& cause) {
  Array now = x;
  for (const Move& move : resharder_.plan(type, from, to).moves) {
    if (move.kind != Move::Kind::slice) {
      Axes axes = move.axes;
      if (move.kind == Move::Kind::permute) axes = used_axes(move.to);
      collectives_.push_back({name_of(move, from.monoid), names_of(mesh_, axes), now.type(), move.bytes, times_,
                              to_string(current_source()), cause});
    }
    now = moved(mesh_, now, move, from.monoid);
  }
  return now;
}

Array Partitioner::resharded(const ArrayType& type, const Local& x, const Layout& to, const std::string& cause) {
  if (x.layout == to) return x.array;
  if (x.copies) {
    if (const auto copy = x.copies->find(to); copy != x.copies->end()) return copy->second;
  }
  const Array result = resharded(type, x.array, {x.layout, {}, Monoid::add}, to, cause);
  if (x.copies) x.copies->emplace(to, result);
  return result;
}

std::string Partitioner::needed_as(const Step& step, std::size_t operand, const Layout& to) const {
  return concat("operand ", operand, " of ", step.equation.primitive.name(), " is ",
                layout_text(mesh_, step.operands[operand].layout), ", needed as ", layout_text(mesh_, to));
}

Arrays Partitioner::step(const Step& step) {
  switch (step.equation.primitive->traits.control) {
    case Control::scan:
      return scan(step);
    case Control::while_loop:
      return while_loop(step);
    case Control::cond:
      return cond(step);
    case Control::device_map:
      return map(step);
    default:
      break;
  }
  const Primitive& primitive = step.equation.primitive;
  if (primitive == custom_partition_primitive()) return custom(step);
  if (primitive == prim::sharding_constraint())
    return {resharded(step.operand_types[0], step.operands[0], step.wanted[0],
                      concat("the constraint ", layout_text(mesh_, step.wanted[0])))};
  return plain(step);
}

// ---- one primitive on parts ----------------------------------------------------------------------------------------

// True if a result must be split that the primitive needs whole (draws and counts): its composition can be split.
bool Partitioner::is_lowered(const Step& step, const ExtendedFactors& extended) const {
  if (!step.equation.primitive->lower || holds_programs(step.equation.attrs)) return false;
  for (const Local& operand : step.operands) {
    if (!used_axes(operand.layout).empty()) return false;
  }
  for (std::size_t i = 0; i < step.wanted.size(); ++i) {
    for (std::size_t dim = 0; dim < step.wanted[i].size(); ++dim) {
      if (step.wanted[i][dim].empty()) continue;
      for (const int id : extended.factors.results[i][dim]) {
        if (extended.factors.factors[static_cast<std::size_t>(id)].use == FactorUse::whole) return true;
      }
    }
  }
  return false;
}

Arrays Partitioner::lowered(const Step& step) {
  Staged staged;
  try {
    staged = stage_open(
        [&](std::span<const Array> inputs) { return step.equation.primitive->lower(inputs, step.equation.attrs); },
        step.operand_types, step.equation.primitive.name());
  } catch (const Error&) {
    return {};  // the composition exists for other types only
  }
  // A rule may leave an equation unchanged.
  if (staged.program.outputs().size() != step.wanted.size()) return {};
  for (const Equation& equation : staged.program.equations()) {
    if (equation.primitive == step.equation.primitive) return {};
  }
  const Program program = flattened(staged.program);
  Demands in(staged.captured.size()), out;
  Locals inputs;
  for (const Array& captured : staged.captured) inputs.push_back({captured, Layout(captured.shape().size())});
  for (const Local& operand : step.operands) {
    in.push_back(Demand{operand.layout, {}});
    inputs.push_back(operand);
  }
  for (std::size_t i = 0; i < staged.captured.size(); ++i) in[i] = Demand{inputs[i].layout, {}};
  for (const Layout& wanted : step.wanted) out.push_back(Demand{wanted, {}});
  return run(program, propagate(program, mesh_, in, out), std::move(inputs));
}

Arrays Partitioner::plain(const Step& step) {
  const EquationTypes types = step.types();
  const ExtendedFactors extended = extended_factors(types);
  if (is_lowered(step, extended)) {
    Arrays results = lowered(step);
    if (!results.empty()) return results;
  }
  std::vector<Layout> given;
  std::vector<std::vector<Layout>> copies;
  for (const Local& operand : step.operands) {
    given.push_back(operand.layout);
    copies.emplace_back();
    if (!operand.copies) continue;
    for (const auto& [layout, array] : *operand.copies) copies.back().push_back(layout);
  }
  const Assignment assignment = cheapest_assignment(
      mesh_, resharder_,
      {extended.factors, step.operand_types, step.result_types, given, step.wanted, copies, element_work});
  Arrays operands;
  Types operand_parts, result_parts;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Layout& to = assignment.operands[i];
    operands.push_back(resharded(step.operand_types[i], step.operands[i], to, needed_as(step, i, to)));
    operand_parts.push_back(part_type(mesh_, step.operand_types[i], to));
  }
  for (std::size_t i = 0; i < step.wanted.size(); ++i)
    result_parts.push_back(part_type(mesh_, step.result_types[i], assignment.results[i]));
  Attrs attrs = step.equation.attrs;
  if (step.equation.primitive->localise)
    attrs = step.equation.primitive->localise({step.equation.primitive, operand_parts, result_parts, attrs});
  Axes pending = assignment.pending;
  Arrays results;
  if (needs_help(extended, assignment)) {
    std::vector<InsertedCollective> noted;
    results = helped_results(mesh_, types, extended, assignment, std::move(operands), attrs, noted);
    for (InsertedCollective& one : noted) {
      one.times = times_;
      one.source = to_string(current_source());
      one.cause = concat("parts of ", step.equation.primitive.name(), " need those of other devices");
      collectives_.push_back(std::move(one));
    }
    for (const auto& [factor, help] : extended.helped) {
      if (help == Help::extreme_index) pending.clear();  // already combined
    }
  } else {
    results = capibara::bind(step.equation.primitive, operands, attrs);
  }
  Arrays outputs;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].shape() != result_parts[i].shape)
      throw InternalError(concat("partition: ", step.equation.primitive.name(), " on parts gives ",
                                 to_string(results[i].type()), ", not ", to_string(result_parts[i])));
    const std::string cause =
        pending.empty()
            ? concat("result ", i, " of ", step.equation.primitive.name(), " is ",
                     layout_text(mesh_, assignment.results[i]), ", wanted as ", layout_text(mesh_, step.wanted[i]))
            : concat("each device has a part of what ", step.equation.primitive.name(), " combines");
    outputs.push_back(resharded(step.result_types[i], results[i], {assignment.results[i], pending, assignment.monoid},
                                step.wanted[i], cause));
  }
  return outputs;
}

// shard_map over the same mesh: the device runs its program. Along axes that it does not map, every device has the
// whole of its operands and computes the same values.
Arrays Partitioner::map(const Step& step) {
  const ShardMapView map(step.equation.attrs);
  if (map.mesh().axis_names != mesh_.axis_names || map.mesh().axis_sizes != mesh_.axis_sizes)
    throw NotImplementedError("partition: a shard_map inside of the program must have the mesh of the program");
  for (const Equation& inner : map.program().equations()) {
    if (maps_devices(inner.primitive))
      throw NotImplementedError(
          "partition: a shard_map inside of a shard_map over part of the axes is not partitioned");
  }
  Arrays operands;
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const Layout to = *layout_of(mesh_, map.in_specs()[i], step.operand_types[i].shape.size());
    operands.push_back(resharded(step.operand_types[i], step.operands[i], to, needed_as(step, i, to)));
  }
  Arrays results = evaluate_program(with_plain_types(map.program()), operands);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Layout from = *layout_of(mesh_, map.out_specs()[i], step.result_types[i].shape.size());
    results[i] =
        resharded(step.result_types[i], {results[i], from}, step.wanted[i], concat("result ", i, " of shard_map"));
  }
  return results;
}

// ---- loops and branches --------------------------------------------------------------------------------------------

Arrays Partitioner::scan(const Step& step) {
  const ScanView loop(step.equation);
  const Program& body = loop.body();
  const Shardings& inside = (*step.nested)[0];
  auto layout_in = [&](std::size_t i) { return inside.vars[static_cast<std::size_t>(body.invars()[i].id)]; };
  Arrays operands;
  Types types;
  std::vector<Layout> layouts;
  for (std::size_t i = loop.consts(); i < step.operands.size(); ++i) {
    layouts.push_back(layout_in(i));
    const Layout to = i < loop.first_xs() ? layouts.back() : stack_layout(layouts.back());
    operands.push_back(resharded(step.operand_types[i], step.operands[i], to, needed_as(step, i, to)));
    types.push_back(part_type(mesh_, body.type(body.invars()[i]), layouts.back()));
  }
  Shardings own = inside;
  for (std::size_t i = 0; i < loop.carry(); ++i) own.outputs[i] = layouts[i];
  const int64_t times = times_;
  times_ *= loop.length();
  const Staged staged = stage_open(
      [&](std::span<const Array> inputs) {
        Locals locals(step.operands.begin(), step.operands.begin() + static_cast<std::ptrdiff_t>(loop.consts()));
        for (Local& local : localised(inputs, layouts)) locals.push_back(std::move(local));
        return run(body, own, std::move(locals));
      },
      types, body.name());
  times_ = times;
  Arrays results = bind_scan(staged, loop.carry(), loop.length(), operands, loop.reverse(), loop.unroll());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Layout from = i < loop.carry() ? layouts[i] : stack_layout(own.outputs[i]);
    results[i] = resharded(step.result_types[i], {results[i], from}, step.wanted[i], concat("result ", i, " of scan"));
  }
  return results;
}

Arrays Partitioner::while_loop(const Step& step) {
  const WhileView loop(step.equation);
  const Program &condition = loop.condition(), &body = loop.body();
  Arrays carry;
  Types types;
  std::vector<Layout> layouts;
  for (std::size_t i = 0; i < loop.carry(); ++i) {
    const Var var = body.invars()[loop.body_consts() + i];
    layouts.push_back((*step.nested)[1].vars[static_cast<std::size_t>(var.id)]);
    const std::size_t at = loop.first_carry() + i;
    carry.push_back(resharded(step.operand_types[at], step.operands[at], layouts[i], needed_as(step, at, layouts[i])));
    types.push_back(part_type(mesh_, body.type(var), layouts[i]));
  }
  auto staged = [&](const Program& program, Shardings own, std::size_t first, std::size_t count) {
    return stage_open(
        [&](std::span<const Array> inputs) {
          const auto begin = step.operands.begin() + static_cast<std::ptrdiff_t>(first);
          Locals locals(begin, begin + static_cast<std::ptrdiff_t>(count));
          for (Local& local : localised(inputs, layouts)) locals.push_back(std::move(local));
          return run(program, own, std::move(locals));
        },
        types, program.name());
  };
  Shardings own = (*step.nested)[1];
  own.outputs = layouts;
  const Staged test = staged(condition, (*step.nested)[0], 0, loop.cond_consts());
  const Staged next = staged(body, own, loop.cond_consts(), loop.body_consts());
  Arrays results = bind_while(test, next, carry);
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] =
        resharded(step.result_types[i], {results[i], layouts[i]}, step.wanted[i], concat("result ", i, " of while"));
  return results;
}

Arrays Partitioner::cond(const Step& step) {
  const CondView view(step.equation);
  Arrays operands;
  std::vector<Layout> layouts;
  for (std::size_t i = 1; i < step.operands.size(); ++i) {
    operands.push_back(step.operands[i].array);
    layouts.push_back(step.operands[i].layout);
  }
  std::vector<jax::lax::detail::FlatFunction> branches;
  for (std::size_t b = 0; b < view.branches().size(); ++b) {
    branches.push_back([&, b](std::span<const Array> inputs) {
      Shardings own = (*step.nested)[b];
      own.outputs = step.wanted;
      return run(view.branches()[b], own, localised(inputs, layouts));
    });
  }
  return jax::lax::detail::cond_flat(step.operands[0].array, branches, operands);
}

}  // namespace capibara::sharding
