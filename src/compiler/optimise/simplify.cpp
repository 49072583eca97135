// simplify: replaces equations by equal, simpler ones. Every rule is exact: the same bits for every value, NaN
// included, except for denormals, which arithmetic would have flushed to zero, and for the payload of a NaN.
//
//   b = mul a 1.0; c = reshape[(6,)] b; d = reshape[(2,3)] c    ->    d = a
//
// The rules are in simplify_algebra.cpp, simplify_scalar.cpp, simplify_shape.cpp and simplify_contract.cpp.
#include "compiler/optimise/simplify.h"

#include "compiler/optimise/passes.h"

#include <algorithm>

namespace capibara::passes {

namespace {

const Rules& rules() {
  static const Rules all = [] {
    Rules rules;
    add_algebra_rules(rules);
    add_shape_rules(rules);
    add_contract_rules(rules);
    add_scalar_rules(rules);
    add_index_rules(rules);
    return rules;
  }();
  return all;
}

constexpr int deepest = 16;  // rules applied one after another to the result of one equation

bool same_type(const ArrayType& a, const ArrayType& b) {
  return a.shape == b.shape && a.dtype == b.dtype && a.ref == b.ref;
}

}  // namespace

const ArrayType& Site::type(std::size_t input) const { return simplifier.type(inputs[input]); }

ArrayType Site::output_type() const {
  Types types;
  for (std::size_t i = 0; i < inputs.size(); ++i) types.push_back(type(i));
  return primitive->type(types, attrs).types[0];
}

Simplifier::Simplifier(const Program& program)
    : copy_(program), readers_(static_cast<std::size_t>(program.var_count()), 0) {
  maker_.assign(copy_.builder().body().var_types.size(), -1);
  auto read = [&](Atom atom) {
    if (!atom.is_literal() && readers_[static_cast<std::size_t>(atom.code)] < 2)
      ++readers_[static_cast<std::size_t>(atom.code)];
  };
  for (const Equation& equation : program.equations()) {
    for (Atom input : equation.inputs) read(input);
  }
  for (Atom output : program.outputs()) read(output);
}

void Simplifier::note_outputs() {
  const Program::Body& body = copy_.builder().body();
  maker_.resize(body.var_types.size(), static_cast<int32_t>(body.equations.size()) - 1);
}

const Equation* Simplifier::maker(Atom atom) const {
  if (atom.is_literal() || maker_[static_cast<std::size_t>(atom.code)] < 0) return nullptr;
  return &copy_.builder().body().equations[static_cast<std::size_t>(maker_[static_cast<std::size_t>(atom.code)])];
}

const Equation* Simplifier::made_by(Atom atom, const Primitive& primitive) const {
  const Equation* equation = maker(atom);
  return equation && equation->outputs.size() == 1 && equation->primitive == primitive ? equation : nullptr;
}

const Array* Simplifier::uniform(Atom atom) {
  if (const Equation* broadcast = made_by(atom, prim::broadcast_in_dim())) atom = broadcast->inputs[0];
  return atom.is_literal() ? &copy_.literal(atom) : nullptr;
}

std::optional<Atom> Simplifier::apply_rules(Site& site) {
  if (depth_ >= deepest) return std::nullopt;
  const std::span<const Rule> own = rules().of(site.primitive);
  if (own.empty()) return std::nullopt;
  ++depth_;
  std::optional<Atom> result;
  for (std::size_t i = 0; i < own.size() && !result; ++i) result = own[i](site);
  --depth_;
  return result;
}

Atom Simplifier::add(const Primitive& primitive, std::vector<Atom> inputs, const Attrs& attrs, Source source,
                     bool only_reader) {
  Site site{*this, primitive, inputs, attrs, source, only_reader};
  if (std::optional<Atom> atom = apply_rules(site)) return *atom;
  Atom output = copy_.builder().add_equation(primitive, std::move(inputs), attrs, source)[0];
  note_outputs();
  return output;
}

// Replaces a result that is the same operand in every branch by that operand: no branch copies a large one.
bool Simplifier::forward_operands(const Equation& cond, std::vector<Atom> inputs, Attrs attrs) {
  const std::vector<Program> branches = attrs.programs("branches");
  std::vector<std::pair<Var, Atom>> forwarded;
  Equation rest = cond;
  for (std::size_t i = 0; i < cond.outputs.size(); ++i) {
    if (cond.outputs[i].dropped()) continue;
    std::size_t operand = inputs.size();
    for (const Program& branch : branches) {
      const auto& invars = branch.invars();
      const auto found =
          std::find_if(invars.begin(), invars.end(), [&](Var var) { return branch.outputs()[i] == Atom(var); });
      const std::size_t own =
          found == invars.end() ? inputs.size() : static_cast<std::size_t>(found - invars.begin()) + 1;
      operand = &branch == &branches.front() || operand == own ? own : inputs.size();
    }
    if (operand >= inputs.size() || !same_type(type(inputs[operand]), copy_.from().type(cond.outputs[i]))) continue;
    forwarded.emplace_back(cond.outputs[i], inputs[operand]);
    rest.outputs[i] = Var{};
  }
  copy_.emit(rest, std::move(inputs), std::move(attrs));
  for (const auto& [output, operand] : forwarded) copy_.bind(output, operand);
  return !forwarded.empty();
}

Program Simplifier::operator()(NestedPass& nested) {
  const Program& program = copy_.from();
  bool changed = false;
  for (const Equation& equation : program.equations()) {
    std::vector<Atom> inputs = copy_(equation.inputs);
    bool candidate = equation.outputs.size() == 1 && !equation.outputs[0].dropped() && equation.effects.empty();
    if (candidate) {
      bool only_reader = !equation.inputs.empty() && !equation.inputs[0].is_literal() &&
                         readers_[static_cast<std::size_t>(equation.inputs[0].code)] == 1;
      Site site{*this, equation.primitive, inputs, equation.attrs, equation.source, only_reader};
      std::optional<Atom> atom = apply_rules(site);
      if (atom && same_type(type(*atom), program.type(equation.outputs[0]))) {
        copy_.bind(equation.outputs[0], *atom);
        changed = true;
        continue;
      }
    }
    Attrs attrs = nested(equation.attrs);
    changed |= !same_object(attrs, equation.attrs);
    if (equation.primitive == prim::cond()) {
      changed |= forward_operands(equation, std::move(inputs), std::move(attrs));
    } else {
      copy_.emit(equation, std::move(inputs), std::move(attrs));
    }
    note_outputs();
  }
  return changed ? copy_.finish() : program;
}

Program simplify(const Program& program) {
  return NestedPass([](const Program& one, NestedPass& nested) { return Simplifier(one)(nested); })(program);
}

}  // namespace capibara::passes
