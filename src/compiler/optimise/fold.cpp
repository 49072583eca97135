// fold: evaluates equations on known values at compile time, by plain loops on the host.
//
//   b = mul 2.0 3.0; c = add a b    ->    c = add a 6.0
//
// A scalar becomes a literal, an array a constant of at most 64 KiB. Equations with results much larger than their
// operands (broadcast, iota) are kept: computing them is cheaper than loading them.
#include "compiler/optimise/passes.h"
#include "compiler/optimise/rewrite.h"

#include "program/trace/evaluator.h"
#include "program/trace/staging.h"
#include "program/trace/trace.h"

namespace capibara::passes {

namespace {

constexpr std::size_t folded_bytes = 65536;

bool is_foldable(const Program& program, const Equation& equation) {
  if (equation.inputs.empty() || equation.outputs.empty() || !equation.effects.empty()) return false;
  if (equation.primitive->traits.expands || !repeatable(program, equation) || holds_programs(equation.attrs))
    return false;
  std::size_t bytes = 0;
  for (Var output : equation.outputs) bytes += output.dropped() ? 0 : byte_count(program.type(output));
  return bytes <= folded_bytes;
}

class Folder {
 public:
  explicit Folder(const Program& program) : copy_(program) {
    for (std::size_t i = 0; i < program.constants().size(); ++i) {
      if (byte_count(program.constants()[i].type()) > large_constant_bytes) continue;
      known_.emplace(copy_(Atom(program.constvars()[i])).code, program.constants()[i]);
    }
  }

  Program operator()(NestedPass& nested) {
    const Program& program = copy_.from();
    bool changed = false;
    for (const Equation& equation : program.equations()) {
      std::vector<Atom> inputs = copy_(equation.inputs);
      if (is_foldable(program, equation) && fold(equation, inputs)) {
        changed = true;
        continue;
      }
      Attrs attrs = nested(equation.attrs);
      changed |= !same_object(attrs, equation.attrs);
      copy_.emit(equation, std::move(inputs), std::move(attrs));
    }
    return changed ? copy_.finish() : program;
  }

 private:
  bool fold(const Equation& equation, std::span<const Atom> inputs) {
    Arrays values;
    for (Atom input : inputs) {
      if (input.is_literal()) {
        values.push_back(copy_.literal(input));
      } else {
        auto it = known_.find(input.code);
        if (it == known_.end()) return false;
        values.push_back(it->second);
      }
    }
    Arrays results;
    try {
      TraceScope scope(evaluation_trace());
      results = evaluate_plainly(equation.primitive, values, equation.attrs);
    } catch (const Error&) {
      return false;  // it raises at its own position, at run time
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (equation.outputs[i].dropped()) continue;
      const Array& value = results[i];
      if (is_literal_value(value)) {
        copy_.bind(equation.outputs[i], copy_.builder().add_literal(value));
        continue;
      }
      Var var = copy_.builder().add_constant(value);
      copy_.bind(equation.outputs[i], var);
      if (byte_count(value.type()) <= large_constant_bytes) known_.emplace(var.id, value);
    }
    return true;
  }

  Copy copy_;
  std::unordered_map<int32_t, Array> known_;  // small constants, by new variable
};

}  // namespace

Program fold(const Program& program) {
  return NestedPass([](const Program& one, NestedPass& nested) { return Folder(one)(nested); })(program);
}

}  // namespace capibara::passes
