// Copy: copies the equations of one program into another, with changes.
#pragma once

#include "program/ir/build.h"

#include <optional>

namespace capibara {

// Equations are passed with the old program's variables, which are replaced by the new ones.
class Copy {
 public:
  explicit Copy(const Program& from);               // into a new program; constants and inputs are bound
  Copy(const Program& from, ProgramBuilder& into);  // into an existing builder; nothing is bound
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  const Program& from() const { return from_; }
  ProgramBuilder& builder() const { return builder_; }
  const ArrayType& type(Atom now) const { return builder_.type(now); }
  const Array& literal(Atom now) const {
    return builder_.body().literals[static_cast<std::size_t>(now.literal_index())];
  }

  // The atom that replaces it in the copy; literals are copied when they are first read.
  Atom operator()(Atom old);
  std::vector<Atom> operator()(std::span<const Atom> old);

  // A dropped variable is ignored; an id beyond those of the old program names a value that only the copy has.
  void bind(Var old, Atom now);
  void bind(std::span<const Var> old, std::span<const Atom> now);
  void bind_constants();
  void add_input(Var old) { bind(old, builder_.add_input(from_.type(old))); }

  // Adds the equation: its inputs are atoms of the new program, its outputs variables of the old one.
  void emit(const Equation& equation, std::vector<Atom> inputs, Attrs attrs);
  void copy(Equation equation);
  // The equations of a nested program, its inputs bound to atoms of the new program; returns its outputs.
  std::vector<Atom> splice(const Program& program, std::span<const Atom> inputs);

  Program finish() { return finish((*this)(from_.outputs())); }
  Program finish(std::vector<Atom> outputs);  // of the new program

 private:
  void add(Equation equation);  // outputs are variables of the old program

  const Program from_;
  std::optional<ProgramBuilder> own_;
  ProgramBuilder& builder_;
  std::vector<std::optional<Atom>> now_, literal_now_;
};

// A fresh copy of a program's equations into another builder, its inputs bound to the given atoms; returns its outputs.
std::vector<Atom> inline_program(ProgramBuilder& builder, const Program& program, std::span<const Atom> inputs);

// The program with every jit call replaced by its equations.
Program inline_jit_calls(const Program& program);

}  // namespace capibara
