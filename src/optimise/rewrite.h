// What the passes share: copying a program under changes, and rewriting the programs inside its equations once each.
#pragma once

#include "array/byte_count.h"
#include "program/build.h"

#include <functional>
#include <unordered_map>

namespace capibara::passes {

// A program on its way into a new one. Equations are given with the old program's variables, the new ones follow.
class Copy {
 public:
  explicit Copy(const Program& from);  // binds constants and inputs

  const Program& from() const { return from_; }
  ProgramBuilder& builder() { return builder_; }
  const ArrayType& type(Atom now) const { return builder_.type(now); }

  Atom operator()(Atom old);            // the atom that stands for it now; literals are copied when they are first read
  std::vector<Atom> operator()(std::span<const Atom> old);
  const Array& literal(Atom now) { return builder_.body().literals[static_cast<std::size_t>(now.literal_index())]; }
  void bind(Var old, Atom now);         // a dropped variable is ignored
  // Adds the equation: its inputs are atoms of the new program, its outputs variables of the old one.
  void emit(const Equation& equation, std::vector<Atom> inputs, Attrs attrs);
  void copy(const Equation& equation) { emit(equation, (*this)(equation.inputs), equation.attrs); }
  // The equations of a nested program, its inputs bound to atoms of the new program; returns its outputs.
  std::vector<Atom> splice(const Program& program, std::span<const Atom> inputs) {
    return inline_program(builder_, program, inputs);
  }
  Program finish();

 private:
  const Program from_;
  ProgramBuilder builder_;
  std::vector<Atom> now_;
  std::vector<Atom> literal_now_;
  std::vector<bool> bound_, literal_bound_;
};

struct ProgramHash {
  std::size_t operator()(const Program& program) const { return program.hash(); }
};
template <class Value>
using ProgramMap = std::unordered_map<Program, Value, ProgramHash>;

using Rewrite = std::function<Program(const Program&)>;

bool holds_programs(const Attrs& attrs);
void for_each_program(const Attrs& attrs, const std::function<void(const Program&)>& visit);
// The attributes with every program rewritten; the same object where nothing changed.
Attrs rewrite_programs(const Attrs& attrs, const Rewrite& rewrite);

bool same_object(const Attrs& a, const Attrs& b);  // one and the same, not only equal

// Applies a pass to a program and to those inside it. Equal programs are rewritten once and become one object.
class NestedPass {
 public:
  using Body = std::function<Program(const Program&, NestedPass&)>;
  explicit NestedPass(Body body) : body_(std::move(body)) {}

  Program operator()(const Program& program);
  Attrs operator()(const Attrs& attrs) {
    return rewrite_programs(attrs, [this](const Program& program) { return (*this)(program); });
  }

 private:
  Body body_;
  bool begun_ = false;
  ProgramMap<Program> done_;
};

// Whether a pass changes a program at all: by an equation that `concerns` it, or in the programs inside of others. Copying
// equations costs more than looking at them.
template <class F>
bool changes(const Program& program, NestedPass& nested, F&& concerns) {
  for (const Equation& equation : program.equations()) {
    if (concerns(equation)) return true;
    if (holds_programs(equation.attrs) && !same_object(nested(equation.attrs), equation.attrs)) return true;
  }
  return false;
}

// Pure and the same each time: such an equation may be merged with its like, folded, or moved out of a loop.
bool repeatable(const Program& program, const Equation& equation);

// Constants above this size are never folded or compared by content.
inline constexpr std::size_t large_constant_bytes = 4096;

}  // namespace capibara::passes
