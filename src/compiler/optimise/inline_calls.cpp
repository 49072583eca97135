// inline_calls: replaces calls by the equations of the called program, so that other passes see one flat sequence.
//
//   d = jit[jaxpr={ lambda ; a. let b = sin a; c = mul b 2.0 in (c,) }] x    ->    b = sin x; d = mul b 2.0
//
// A large program that is called more than once stays one program, and is compiled once. A branch selected by a
// literal, a loop of one step and a loop to be fully unrolled count as calls, too. checkpoint keeps its recomputation
// separate by a barrier.
#include "compiler/optimise/passes.h"
#include "compiler/optimise/rewrite.h"
#include "program/ir/handles.h"
#include "program/ir/views.h"

#include <algorithm>

namespace capibara::passes {

namespace {

constexpr std::size_t small_body = 30;  // equations, those of nested programs included

// How often each program is called, and how large it is with all calls inlined.
class Calls {
 public:
  explicit Calls(const Program& root) { size(root); }

  bool stays_whole(const Program& program) const {
    auto count = count_.find(program);
    return count != count_.end() && count->second > 1 && size_.at(program) > small_body;
  }

 private:
  std::size_t size(const Program& program) {
    auto it = size_.find(program);
    if (it != size_.end()) return it->second;
    std::size_t total = 0;
    for (const Equation& equation : program.equations()) {
      if (const Program* called = called_program(equation)) {
        ++count_[*called];
        total += size(*called);
      } else {
        for_each_program(equation.attrs, [&](const Program& nested) { total += size(nested); });
        ++total;
      }
    }
    size_.emplace(program, total);
    return total;
  }

  ProgramMap<std::size_t> count_, size_;
};

class Inliner {
 public:
  explicit Inliner(const Program& root) : calls_(root) {}

  Program operator()(const Program& program, NestedPass& nested) {
    if (!changes(program, nested, concerns)) return program;
    bool changed = false;
    Copy copy(program);
    for (const Equation& equation : program.equations()) changed |= rewrite(copy, equation, nested);
    return changed ? copy.finish() : program;
  }

 private:
  static bool concerns(const Equation& equation) {
    const Primitive& primitive = equation.primitive;
    return called_program(equation) || primitive == prim::name() || primitive == prim::sharding_constraint() ||
           primitive == prim::cond() || primitive == prim::scan();
  }

  // False if the equation is copied unchanged.
  bool rewrite(Copy& copy, const Equation& equation, NestedPass& nested) {
    if (const Program* called = called_program(equation)) return call(copy, equation, *called, nested);
    if (equation.primitive == prim::name() || equation.primitive == prim::sharding_constraint()) {
      copy.bind(equation.outputs[0], copy(equation.inputs[0]));
      return true;
    }
    Attrs attrs = nested(equation.attrs);
    if (equation.primitive == prim::cond() && copy(equation.inputs[0]).is_literal()) {
      branch(copy, equation, attrs);
      return true;
    }
    if (equation.primitive == prim::scan() && attrs.integer("length") > 0 &&
        attrs.integer("unroll") >= attrs.integer("length")) {
      all_steps(copy, equation, attrs);
      return true;
    }
    bool changed = !same_object(attrs, equation.attrs);
    copy.emit(equation, copy(equation.inputs), std::move(attrs));
    return changed;
  }

  bool call(Copy& copy, const Equation& equation, const Program& called, NestedPass& nested) {
    bool is_jit = equation.primitive == prim::jit();
    Program body = nested(called);
    std::vector<Atom> inputs = copy(equation.inputs);
    if (equation.primitive == prim::remat2() && equation.attrs.boolean("differentiated") &&
        equation.attrs.boolean("prevent_cse")) {
      std::vector<Atom> guarded;
      for (Atom input : inputs) {
        if (!input.is_literal() && !copy.type(input).ref) guarded.push_back(input);
      }
      if (!guarded.empty()) {
        std::vector<Var> behind =
            copy.builder().add_equation(prim::optimization_barrier(), guarded, {}, equation.source);
        std::size_t next = 0;
        for (Atom& input : inputs) {
          if (!input.is_literal() && !copy.type(input).ref) input = behind[next++];
        }
      }
    }
    if (calls_.stays_whole(called)) {
      Attrs attrs = is_jit ? equation.attrs : Attrs{{"jaxpr", body}, {"name", body.name()}};
      bool changed = !is_jit || body.identity() != called.identity();
      if (is_jit && changed) attrs = attrs.with("jaxpr", body);
      Equation out = equation;
      out.primitive = prim::jit();
      copy.emit(out, std::move(inputs), std::move(attrs));
      return changed;
    }
    copy.bind(equation.outputs, copy.splice(body, inputs));
    return true;
  }

  static void branch(Copy& copy, const Equation& equation, const Attrs& attrs) {
    const CondView view(attrs);
    const Program& chosen = view.branch(copy.literal(copy(equation.inputs[0])).item<int64_t>());
    copy.bind(equation.outputs, copy.splice(chosen, copy(view.operands(equation.inputs))));
  }

  // Each step gets its slice of xs without the leading dimension; ys are stacked again.
  static void all_steps(Copy& copy, const Equation& equation, const Attrs& attrs) {
    const ScanView loop(attrs);
    const Program& body = loop.body();
    const std::size_t carry = loop.carry();
    const int64_t length = loop.length();
    const std::vector<Atom> operands = copy(equation.inputs);
    std::vector<Atom> inputs = operands, outputs;
    std::vector<std::vector<Atom>> steps(loop.ys(), std::vector<Atom>(static_cast<std::size_t>(length)));
    for (int64_t step = 0; step < length; ++step) {
      const int64_t index = loop.reverse() ? length - 1 - step : step;
      for (std::size_t i = loop.first_xs(); i < operands.size(); ++i) {
        const Atom taken = length == 1 ? operands[i] : sliced(copy, operands[i], index, equation.source);
        inputs[i] = reshaped(copy, taken, body.type(body.invars()[i]).shape, equation.source);
      }
      outputs = copy.splice(body, inputs);
      std::copy_n(outputs.begin(), carry, inputs.begin() + static_cast<std::ptrdiff_t>(loop.consts()));
      for (std::size_t i = carry; i < outputs.size(); ++i) {
        if (equation.outputs[i].dropped()) continue;
        Shape shape = copy.from().type(equation.outputs[i]).shape;
        shape[0] = 1;
        steps[i - carry][static_cast<std::size_t>(index)] = reshaped(copy, outputs[i], shape, equation.source);
      }
    }
    for (std::size_t i = carry; i < outputs.size(); ++i) {
      if (equation.outputs[i].dropped()) continue;
      const std::vector<Atom>& all = steps[i - carry];
      outputs[i] =
          length == 1
              ? all[0]
              : Atom(copy.builder().add_equation(prim::concatenate(), all, {{"dimension", 0}}, equation.source)[0]);
    }
    copy.bind(equation.outputs, outputs);
  }

  static Atom sliced(Copy& copy, Atom atom, int64_t index, Source source) {
    Shape start(copy.type(atom).shape.size(), 0), limit = copy.type(atom).shape;
    start[0] = index;
    limit[0] = index + 1;
    return copy.builder().add_equation(
        prim::slice(), {atom}, {{"start_indices", start}, {"limit_indices", limit}, {"strides", Attr()}}, source)[0];
  }

  static Atom reshaped(Copy& copy, Atom atom, const Shape& shape, Source source) {
    return copy.builder().add_equation(prim::reshape(), {atom},
                                       {{"new_sizes", shape}, {"dimensions", Attr()}, {"sharding", Attr()}}, source)[0];
  }

  Calls calls_;
};

}  // namespace

Program inline_calls(const Program& program) {
  auto inliner = std::make_shared<Inliner>(program);
  NestedPass pass([inliner](const Program& one, NestedPass& nested) { return (*inliner)(one, nested); });
  return pass(program);
}

}  // namespace capibara::passes
