// cse: merges equations with the same operation and operands.
//
//   b = sin a; c = sin a; d = mul b c    ->    b = sin a; d = mul b b
//
// Equal literals and small constants count as the same operand; equal nested programs become one object.
#include "compiler/optimise/passes.h"
#include "compiler/optimise/rewrite.h"

#include "core/array/hash.h"

namespace capibara::passes {

namespace {

class Merger {
 public:
  explicit Merger(const Program& program) : copy_(program) {
    for (std::size_t i = 0; i < program.constvars().size(); ++i)
      merge_constant(program.constvars()[i], program.constants()[i]);
  }

  Program operator()(NestedPass& nested) {
    const Program& program = copy_.from();
    bool changed = merged_constants_;
    for (const Equation& equation : program.equations()) {
      Attrs attrs = nested(equation.attrs);
      changed |= !same_object(attrs, equation.attrs);
      std::vector<Atom> inputs = copy_(equation.inputs);
      for (Atom& input : inputs) {
        if (input.is_literal()) input = canonical(input);
      }
      if (!repeatable(program, equation) || equation.outputs.empty()) {
        copy_.emit(equation, std::move(inputs), std::move(attrs));
        continue;
      }
      Hasher hasher;
      hasher.bytes(equation.primitive.name().data(), equation.primitive.name().size());
      hasher.mix(attrs.hash());
      for (Atom input : inputs) hasher.mix(static_cast<std::size_t>(static_cast<uint32_t>(input.code)));
      auto [first, last] = seen_.equal_range(hasher.value());
      bool merged = false;
      for (auto it = first; it != last && !merged; ++it) {
        Equation& earlier = copy_.builder().body().equations[it->second];
        if (!(earlier.primitive == equation.primitive) || earlier.inputs != inputs || !(earlier.attrs == attrs))
          continue;
        merge(earlier, equation);
        merged = true;
      }
      if (merged) {
        changed = true;
        continue;
      }
      seen_.emplace(hasher.value(), copy_.builder().body().equations.size());
      copy_.emit(equation, std::move(inputs), std::move(attrs));
    }
    return changed ? copy_.finish() : program;
  }

 private:
  void merge(Equation& earlier, const Equation& equation) {
    for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
      Var output = equation.outputs[i];
      if (output.dropped()) continue;
      if (earlier.outputs[i].dropped()) earlier.outputs[i] = copy_.builder().new_var(copy_.from().type(output));
      copy_.bind(output, earlier.outputs[i]);
    }
  }

  // One canonical atom for all literals of equal type and bits.
  Atom canonical(Atom literal) {
    const Array& value = copy_.literal(literal);
    Hasher hasher;
    hasher.array(value);
    auto [first, last] = literals_.equal_range(hasher.value());
    for (auto it = first; it != last; ++it) {
      if (it->second == literal || Attr(copy_.literal(it->second)) == Attr(value)) return it->second;
    }
    literals_.emplace(hasher.value(), literal);
    return literal;
  }

  void merge_constant(Var var, const Array& constant) {
    if (byte_count(constant.type()) > large_constant_bytes) return;
    Hasher hasher;
    hasher.array(constant);
    Atom now = copy_(Atom(var));
    auto [first, last] = constants_.equal_range(hasher.value());
    for (auto it = first; it != last; ++it) {
      if (!(Attr(it->second.first) == Attr(constant))) continue;
      copy_.bind(var, it->second.second);
      merged_constants_ |= it->second.second != now;
      return;
    }
    constants_.emplace(hasher.value(), std::pair(constant, now));
  }

  Copy copy_;
  std::unordered_multimap<std::size_t, std::size_t> seen_;  // hash -> position of the equation
  std::unordered_multimap<std::size_t, Atom> literals_;
  std::unordered_multimap<std::size_t, std::pair<Array, Atom>> constants_;
  bool merged_constants_ = false;
};

}  // namespace

Program cse(const Program& program) {
  return NestedPass([](const Program& one, NestedPass& nested) { return Merger(one)(nested); })(program);
}

}  // namespace capibara::passes
