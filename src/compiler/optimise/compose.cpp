// compose: replaces an operation that the backend does not run directly by the simpler ones of its lower rule.
//
// The rule is traced once for each combination of primitive, attributes and operand types; its result is composed
// again. A rule that leads back to the same call leaves the call as it was.
#include "compiler/optimise/passes.h"
#include "compiler/optimise/rewrite.h"

#include "core/array/hash.h"
#include "program/trace/stage.h"
#include "program/trace/trace.h"

#include <algorithm>

namespace capibara::passes {

namespace {

struct Call {
  Primitive primitive;
  Attrs attrs;
  Types types;
  friend bool operator==(const Call& a, const Call& b) {
    return a.primitive == b.primitive && a.types == b.types && a.attrs == b.attrs;
  }
};

struct CallHash {
  std::size_t operator()(const Call& call) const {
    Hasher hasher;
    hasher.bytes(call.primitive.name().data(), call.primitive.name().size());
    hasher.mix(call.attrs.hash());
    for (const ArrayType& type : call.types) hasher.type(type);
    return hasher.value();
  }
};

class Composer {
 public:
  Composer(const Keep& keep, const OwnRule& own_rule) : keep_(keep), own_rule_(own_rule) {}

  Program operator()(const Program& program, NestedPass& nested) {
    auto concerns = [&](const Equation& equation) { return static_cast<bool>(rule_of(program, equation)); };
    if (!changes(program, nested, concerns)) return program;
    Copy copy(program);
    bool changed = false;
    for (const Equation& equation : program.equations()) {
      std::vector<Atom> inputs = copy(equation.inputs);
      std::optional<Program> parts = composed(program, equation, nested);
      if (!parts) {
        Attrs attrs = nested(equation.attrs);
        changed |= !same_object(attrs, equation.attrs);
        copy.emit(equation, std::move(inputs), std::move(attrs));
        continue;
      }
      changed = true;
      std::size_t first = copy.builder().body().equations.size();
      std::vector<Atom> outputs = copy.splice(*parts, inputs);
      auto& equations = copy.builder().body().equations;
      for (std::size_t e = first; e < equations.size(); ++e) equations[e].source = equation.source;
      copy.bind(equation.outputs, outputs);
    }
    return changed ? copy.finish() : program;
  }

 private:
  LowerRule rule_of(const Program& program, const Equation& equation) const {
    if (own_rule_) {
      if (LowerRule own = own_rule_(program, equation)) return own;
    }
    return equation.primitive->lower && !keep_(program, equation) ? equation.primitive->lower : LowerRule();
  }

  std::optional<Program> composed(const Program& program, const Equation& equation, NestedPass& nested) {
    const LowerRule rule = rule_of(program, equation);
    if (!rule) return std::nullopt;
    Call call{equation.primitive, equation.attrs, {}};
    for (Atom input : equation.inputs) call.types.push_back(program.type(input));
    if (auto it = done_.find(call); it != done_.end()) return it->second;
    if (std::find(open_.begin(), open_.end(), call) != open_.end()) return std::nullopt;
    bool whole = false;
    Program traced = trace(call, rule, equation.outputs.size(), whole);
    if (whole) return done_.try_emplace(std::move(call), std::nullopt).first->second;
    open_.push_back(call);
    Program result = nested(inline_calls(strengthen(traced)));
    open_.pop_back();
    return done_.try_emplace(std::move(call), std::move(result)).first->second;
  }

  // A rule that returns no results leaves the call as it is.
  static Program trace(const Call& call, const LowerRule& rule, std::size_t outputs, bool& whole) {
    TraceScope scope(evaluation_trace());
    return stage(
               [&](std::span<const Array> inputs) {
                 Arrays results = rule(inputs, call.attrs);
                 whole = results.size() != outputs;
                 return results;
               },
               call.types, call.primitive.name())
        .program;
  }

  const Keep& keep_;
  const OwnRule& own_rule_;
  std::unordered_map<Call, std::optional<Program>, CallHash> done_;
  std::vector<Call> open_;
};

}  // namespace

Program compose(const Program& program, const Keep& keep, const OwnRule& own_rule) {
  if (!keep) return program;
  auto composer = std::make_shared<Composer>(keep, own_rule);
  return NestedPass([composer](const Program& one, NestedPass& nested) { return (*composer)(one, nested); })(program);
}

}  // namespace capibara::passes
