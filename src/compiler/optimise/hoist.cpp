// hoist: moves loop-invariant computations out of loops, so that they run once, before the loop.
//
//   scan[body={ lambda ; w c x. let v = exp w; d = mul c v in (d,) }] w c x
//       ->    v = exp w; scan[body={ lambda ; v c x. let d = mul c v in (d,) }] v c x
//
// A carry that each step returns unchanged becomes a constant of the loop. Whatever is free to compute in place (a
// broadcast, a reshape, a slice), or larger than its operands, stays inside: hoisting it would only cost memory.
#include "compiler/optimise/passes.h"
#include "compiler/optimise/rewrite.h"
#include "program/ir/handles.h"
#include "program/ir/views.h"

#include <algorithm>

namespace capibara::passes {

namespace {

using Mask = std::vector<bool>;

std::size_t index_of(Atom atom) { return static_cast<std::size_t>(atom.code); }

bool is_worth_moving(const Program& body, const Equation& equation) {
  if (equation.primitive->traits.free_to_recompute) return false;
  std::size_t made = 0, from = large_constant_bytes;
  for (Var output : equation.outputs) made += output.dropped() ? 0 : byte_count(body.type(output));
  for (Atom input : equation.inputs) from = std::max(from, byte_count(body.type(input)));
  return made <= from;
}

// The invariant part of a body: the equations that leave it, and those of their values that the rest reads.
struct Invariant {
  Mask leaves;              // by equation
  Mask outside;             // equations that must run before the loop: those that leave, and what they depend on
  std::vector<Var> values;  // read by the rest

  Invariant(const Program& body, std::size_t consts, bool may_not_run) {
    std::size_t count = body.equations().size();
    leaves.assign(count, false);
    outside.assign(count, false);
    Mask fixed(static_cast<std::size_t>(body.var_count()), false), moved(fixed), taken(fixed), needed(fixed);
    for (std::size_t i = 0; i < consts; ++i) fixed[static_cast<std::size_t>(body.invars()[i].id)] = true;
    for (std::size_t e = 0; e < count; ++e) {
      const Equation& equation = body.equations()[e];
      bool invariant = equation.effects.empty() && repeatable(body, equation) &&
                       !(may_not_run && holds_programs(equation.attrs)) &&
                       std::all_of(equation.inputs.begin(), equation.inputs.end(),
                                   [&](Atom input) { return input.is_literal() || fixed[index_of(input)]; });
      leaves[e] = invariant && is_worth_moving(body, equation);
      for (Var output : equation.outputs) {
        if (output.dropped()) continue;
        fixed[index_of(output)] = invariant;
        moved[index_of(output)] = leaves[e];
      }
    }
    auto take = [&](Atom atom) {
      if (atom.is_literal() || !moved[index_of(atom)] || taken[index_of(atom)]) return;
      taken[index_of(atom)] = needed[index_of(atom)] = true;
      values.push_back(atom.var());
    };
    for (std::size_t e = 0; e < count; ++e) {
      if (!leaves[e]) std::for_each(body.equations()[e].inputs.begin(), body.equations()[e].inputs.end(), take);
    }
    std::for_each(body.outputs().begin(), body.outputs().end(), take);
    for (std::size_t e = count; e-- > 0;) {
      const Equation& equation = body.equations()[e];
      for (Var output : equation.outputs) outside[e] = outside[e] || (!output.dropped() && needed[index_of(output)]);
      if (!outside[e]) continue;
      for (Atom input : equation.inputs) {
        if (!input.is_literal()) needed[index_of(input)] = true;
      }
    }
  }

  // The body without the equations that leave it; the values it still reads are additional consts.
  Program rest(const Program& body, std::size_t consts) const {
    Program::Body now = body.body();
    now.equations.clear();
    for (std::size_t e = 0; e < leaves.size(); ++e) {
      if (!leaves[e]) now.equations.push_back(body.equations()[e]);
    }
    now.invars.insert(now.invars.begin() + static_cast<std::ptrdiff_t>(consts), values.begin(), values.end());
    return Program(std::move(now));
  }
};

class Hoister {
 public:
  explicit Hoister(const Program& program) : copy_(program) {}

  Program operator()(NestedPass& nested) {
    auto is_loop = [](const Equation& equation) {
      return equation.primitive == prim::scan() || equation.primitive == prim::while_();
    };
    if (!changes(copy_.from(), nested, is_loop)) return copy_.from();
    bool changed = false;
    for (const Equation& equation : copy_.from().equations()) {
      Equation loop = equation;
      loop.attrs = nested(equation.attrs);
      std::vector<Atom> inputs = copy_(equation.inputs);
      if (loop.primitive == prim::scan() && ScanView(loop).length() > 0) {
        scan_carries(loop, inputs);
        move_out(loop, inputs, "jaxpr", "num_consts", 0, false);
      } else if (loop.primitive == prim::while_()) {
        while_carries(loop, inputs);
        move_out(loop, inputs, "body_jaxpr", "body_nconsts", WhileView(loop).cond_consts(), true);
        move_out(loop, inputs, "cond_jaxpr", "cond_nconsts", 0, true);
      }
      changed |= !same_object(loop.attrs, equation.attrs);
      copy_.emit(loop, std::move(inputs), loop.attrs);
    }
    return changed ? copy_.finish() : copy_.from();
  }

 private:
  // `first` is the index of the operand at which the program's consts begin.
  void move_out(Equation& loop, std::vector<Atom>& inputs, const char* name, const char* count, std::size_t first,
                bool may_not_run) {
    const Program body = loop.attrs.program(name);
    std::size_t consts = static_cast<std::size_t>(loop.attrs.integer(count));
    if (!body.constvars().empty()) return;  // lift_constants makes them operands first
    Invariant invariant(body, consts, may_not_run);
    if (invariant.values.empty()) return;
    Copy before(body, copy_.builder());  // what runs before the loop
    before.bind(body.invars(), std::span(inputs).subspan(first, consts));
    for (std::size_t e = 0; e < invariant.outside.size(); ++e) {
      if (invariant.outside[e]) before.copy(body.equations()[e]);
    }
    std::vector<Atom> values;
    for (Var var : invariant.values) values.push_back(before(var));
    inputs.insert(inputs.begin() + static_cast<std::ptrdiff_t>(first + consts), values.begin(), values.end());
    loop.attrs =
        loop.attrs.with(name, invariant.rest(body, consts)).with(count, static_cast<int64_t>(consts + values.size()));
  }

  // Removes the marked carries from a list in which carries start at `first`; returns them.
  template <class T>
  static std::vector<T> taken(std::vector<T>& list, std::size_t first, const Mask& marked) {
    std::vector<T> kept(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(first)), out;
    for (std::size_t i = 0; i < marked.size(); ++i) (marked[i] ? out : kept).push_back(list[first + i]);
    kept.insert(kept.end(), list.begin() + static_cast<std::ptrdiff_t>(first + marked.size()), list.end());
    list = std::move(kept);
    return out;
  }
  template <class T>
  static void put(std::vector<T>& list, std::size_t at, const std::vector<T>& more) {
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
  }

  // Turns the marked carries of a program into its last consts and removes their outputs.
  static Program with_consts(const Program& program, std::size_t consts, const Mask& marked, bool yields_carries) {
    Program::Body body = program.body();
    std::vector<Var> vars = taken(body.invars, consts, marked);
    put(body.invars, consts, vars);
    if (yields_carries) taken(body.outputs, 0, marked);
    return Program(std::move(body));
  }

  static Mask unchanged_carries(const Program& body, std::size_t consts, std::size_t carries) {
    Mask marked;
    for (std::size_t i = 0; i < carries; ++i) marked.push_back(body.outputs()[i] == Atom(body.invars()[consts + i]));
    return marked;
  }

  // The results of the marked carries are their initial values.
  void bind_results(Equation& loop, const Mask& marked, const std::vector<Atom>& starts) {
    std::vector<Var> outputs = taken(loop.outputs, 0, marked);
    for (std::size_t i = 0; i < outputs.size(); ++i) copy_.bind(outputs[i], starts[i]);
  }

  void scan_carries(Equation& loop, std::vector<Atom>& inputs) {
    const ScanView view(loop);
    const std::size_t consts = view.consts();
    Mask marked = unchanged_carries(view.body(), consts, view.carry());
    const std::size_t count = static_cast<std::size_t>(std::count(marked.begin(), marked.end(), true));
    if (count == 0) return;
    std::vector<Atom> starts = taken(inputs, consts, marked);
    put(inputs, consts, starts);
    bind_results(loop, marked, starts);
    loop.attrs = view.with(with_consts(view.body(), consts, marked, true), consts + count, view.carry() - count);
  }

  void while_carries(Equation& loop, std::vector<Atom>& inputs) {
    const WhileView view(loop);
    const std::size_t tests = view.cond_consts(), consts = view.body_consts();
    Mask marked = unchanged_carries(view.body(), consts, view.carry());
    const std::size_t count = static_cast<std::size_t>(std::count(marked.begin(), marked.end(), true));
    if (count == 0 || count == marked.size()) return;
    std::vector<Atom> starts = taken(inputs, view.first_carry(), marked);
    put(inputs, view.first_carry(), starts);
    put(inputs, tests, starts);
    bind_results(loop, marked, starts);
    loop.attrs = WhileView::attrs(with_consts(view.condition(), tests, marked, false), tests + count,
                                  with_consts(view.body(), consts, marked, true), consts + count);
  }

  Copy copy_;
};

}  // namespace

Program hoist(const Program& program) {
  return NestedPass([](const Program& one, NestedPass& nested) { return Hoister(one)(nested); })(program);
}

}  // namespace capibara::passes
