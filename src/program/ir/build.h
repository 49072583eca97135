// ProgramBuilder: builds the body of a program one equation at a time.
#pragma once

#include <capibara/primitive.h>

#include <unordered_map>

namespace capibara {

class ProgramBuilder {
 public:
  Var new_var(ArrayType type);
  Var add_input(ArrayType type);
  Var add_constant(Array constant);  // a concrete array, one variable per distinct array
  Atom add_literal(Array scalar);
  // The type rule gives outputs and effects.
  std::vector<Var> add_equation(const Primitive& primitive, std::vector<Atom> inputs, const Attrs& attrs,
                                Source source = {});
  void add_equation(Equation equation);  // outputs already typed
  void set_outputs(std::vector<Atom> outputs) { body_.outputs = std::move(outputs); }

  const ArrayType& type(Atom atom) const;
  Program::Body& body() { return body_; }
  Program finish(std::string name = "");

 private:
  Program::Body body_;
  std::unordered_map<const void*, Var> constant_of_;
};

// Moves constants into leading inputs: the program becomes closed over nothing.
Program constants_to_inputs(const Program& program);

// Runs a program's equations under the current trace.
Arrays evaluate_program(const Program& program, std::span<const Array> inputs);

// The program with its inputs in another order: input i of the result is input order[i] of the original.
Program reorder_inputs(const Program& program, std::span<const int> order);
Program reorder_outputs(const Program& program, std::span<const int> order);  // may drop or repeat outputs

// A function on flat lists of arrays: the form in which every transform handles functions below the typed interface.
using FlatFunction = std::function<Arrays(std::span<const Array>)>;

// The result of staging a function: a program, and the values it captured. Captured tracers of outer traces become
// leading inputs of the program; concrete constants stay inside.
struct Staged {
  Program program;
  Arrays captured;
};

// Loops over staged programs; their captured values become the consts.
Arrays bind_while(const Staged& condition, const Staged& body, std::span<const Array> carry);
// Operands are the carry and the xs.
Arrays bind_scan(const Staged& body, std::size_t carry, int64_t length, std::span<const Array> operands,
                 bool reverse = false, int64_t unroll = 1);

}  // namespace capibara
