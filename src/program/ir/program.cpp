// Program: structural hash and equality.
#include <capibara/primitive.h>

#include "core/array/hash.h"

#include <cstring>

namespace capibara {

namespace {

// Numbers variables by the order of their definition, so that programs built differently compare equal.
class Numbering {
 public:
  explicit Numbering(const Program::Body& body) : number_(body.var_types.size(), -1) {
    for (Var var : body.constvars) define(var);
    for (Var var : body.invars) define(var);
  }
  void define(Var var) {
    if (!var.dropped()) number_[static_cast<std::size_t>(var.id)] = next_;
    ++next_;
  }
  int64_t operator()(Var var) const { return var.dropped() ? -1 : number_[static_cast<std::size_t>(var.id)]; }

 private:
  std::vector<int64_t> number_;
  int64_t next_ = 0;
};

std::size_t structural_hash(const Program::Body& body) {
  Hasher hasher;
  Numbering number(body);
  auto atom = [&](Atom a) {
    if (a.is_literal()) {
      hasher.array(body.literals[static_cast<std::size_t>(a.literal_index())]);
    } else {
      hasher.mix(static_cast<std::size_t>(number(a.var())));
    }
  };
  for (const Array& constant : body.constants) hasher.array(constant);
  for (Var var : body.invars) hasher.type(body.var_types[static_cast<std::size_t>(var.id)]);
  for (const Equation& equation : body.equations) {
    hasher.bytes(equation.primitive.name().data(), equation.primitive.name().size());
    hasher.mix(equation.attrs.hash());
    hasher.mix(equation.inputs.size());
    for (Atom input : equation.inputs) atom(input);
    for (Var output : equation.outputs) {
      number.define(output);
      hasher.mix(output.dropped());
    }
  }
  hasher.mix(body.outputs.size());
  for (Atom output : body.outputs) atom(output);
  return hasher.value();
}

bool same_atom(const Program& p, Atom a, const Numbering& in_p, const Program& q, Atom b, const Numbering& in_q) {
  if (a.is_literal() != b.is_literal()) return false;
  if (a.is_literal()) return Attr(p.literal(a)) == Attr(q.literal(b));
  return in_p(a.var()) == in_q(b.var());
}

}  // namespace

Program::Program(Body body) {
  hash_ = structural_hash(body);
  body_ = std::make_shared<const Body>(std::move(body));
}

std::vector<ArrayType> Program::input_types() const {
  std::vector<ArrayType> types;
  for (Var var : invars()) types.push_back(type(var));
  return types;
}

std::vector<ArrayType> Program::output_types() const {
  std::vector<ArrayType> types;
  for (Atom atom : outputs()) types.push_back(type(atom));
  return types;
}

Program Program::renamed(std::string name) const {
  Body copy = *body_;
  copy.name = std::move(name);
  Program program;
  program.hash_ = hash_;
  program.body_ = std::make_shared<const Body>(std::move(copy));
  return program;
}

bool operator==(const Program& p, const Program& q) {
  if (p.body_ == q.body_) return true;
  if (!p.body_ || !q.body_ || p.hash_ != q.hash_) return false;
  if (p.equations().size() != q.equations().size() || p.outputs().size() != q.outputs().size() ||
      p.constants().size() != q.constants().size() || p.input_types() != q.input_types()) {
    return false;
  }
  for (std::size_t i = 0; i < p.constants().size(); ++i) {
    if (!(Attr(p.constants()[i]) == Attr(q.constants()[i]))) return false;
  }
  Numbering in_p(p.body()), in_q(q.body());
  for (std::size_t i = 0; i < p.equations().size(); ++i) {
    const Equation& a = p.equations()[i];
    const Equation& b = q.equations()[i];
    if (!(a.primitive == b.primitive) || !(a.attrs == b.attrs) || a.inputs.size() != b.inputs.size() ||
        a.outputs.size() != b.outputs.size()) {
      return false;
    }
    for (std::size_t k = 0; k < a.inputs.size(); ++k) {
      if (!same_atom(p, a.inputs[k], in_p, q, b.inputs[k], in_q)) return false;
    }
    for (std::size_t k = 0; k < a.outputs.size(); ++k) {
      if (a.outputs[k].dropped() != b.outputs[k].dropped()) return false;
      if (!a.outputs[k].dropped() && !(p.type(a.outputs[k]) == q.type(b.outputs[k]))) return false;
      in_p.define(a.outputs[k]);
      in_q.define(b.outputs[k]);
    }
  }
  for (std::size_t k = 0; k < p.outputs().size(); ++k) {
    if (!same_atom(p, p.outputs()[k], in_p, q, q.outputs()[k], in_q)) return false;
  }
  return true;
}

std::ostream& operator<<(std::ostream& out, const Program& program) { return out << program.to_string(); }

}  // namespace capibara
