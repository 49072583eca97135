// Jaxprs built in Python: a program from variables and equations.
#include <capibara/lax.h>

#include <nanobind/stl/string.h>

#include <algorithm>

#include "program/ir/build.h"
#include "programs.h"

namespace capibara::python {

namespace {

Primitive primitive_of(nb::handle object) {
  if (nb::isinstance<Primitive>(object)) return nb::cast<Primitive>(object);
  return nb::cast<Primitive>(object.attr("_handle").attr("primitive"));
}

// Maps Python's variables, which may belong to other programs, to variables of the program being built.
class Numbering {
 public:
  explicit Numbering(ProgramBuilder& builder) : builder_(builder) {}

  Var define(nb::handle var) {
    if (!nb::isinstance<VarView>(var)) return Var{};  // a DropVar
    if (known_.contains(var)) {
      throw TypeError(concat("Jaxpr: ", nb::cast<std::string>(nb::repr(var)), " is defined twice"));
    }
    const auto& view = nb::cast<const VarView&>(var);
    Var made = builder_.new_var(view.program.type(view.var));
    known_[var] = nb::int_(made.id);
    return made;
  }

  Atom read(nb::handle atom) {
    if (nb::isinstance<LiteralView>(atom)) return builder_.add_literal(nb::cast<const LiteralView&>(atom).value);
    if (!known_.contains(atom)) {
      throw TypeError(concat("Jaxpr: ", nb::cast<std::string>(nb::repr(atom)), " is used before it is defined"));
    }
    return Var{nb::cast<int32_t>(known_[atom])};
  }

 private:
  ProgramBuilder& builder_;
  nb::dict known_;
};

}  // namespace

VarView new_variable(const ArrayType& type) {
  ProgramBuilder builder;
  Var var = builder.add_input(type);
  return {builder.finish("variable"), var};
}

Program build_program(nb::handle constvars, nb::handle invars, nb::handle outvars, nb::handle equations,
                      const std::string& name) {
  ProgramBuilder builder;
  Numbering numbering(builder);
  for (nb::handle var : constvars) {
    Var made = numbering.define(var);
    const ArrayType& type = builder.type(made);
    builder.body().constvars.push_back(made);
    // ClosedJaxpr supplies the values: until then zeros, of any type including keys, allocated outside any trace.
    Buffer zeros = Buffer::allocate(static_cast<std::size_t>(type.size() * storage_size(type.dtype)));
    std::fill_n(zeros.mutable_data(), zeros.size(), std::byte{0});
    builder.body().constants.push_back(Array::from_buffer(type, std::move(zeros)));
  }
  for (nb::handle var : invars) builder.body().invars.push_back(numbering.define(var));
  for (nb::handle object : equations) {
    Equation equation;
    equation.primitive = primitive_of(object.attr("primitive"));
    Types types;
    for (nb::handle atom : nb::object(object.attr("invars"))) {
      equation.inputs.push_back(numbering.read(atom));
      types.push_back(builder.type(equation.inputs.back()));
    }
    equation.attrs = attrs_of(object.attr("params"));
    equation.effects = equation.primitive->type(types, equation.attrs).effects;
    for (nb::handle var : nb::object(object.attr("outvars"))) equation.outputs.push_back(numbering.define(var));
    builder.add_equation(std::move(equation));
  }
  std::vector<Atom> outputs;
  for (nb::handle atom : outvars) outputs.push_back(numbering.read(atom));
  builder.set_outputs(std::move(outputs));
  return builder.finish(name);
}

}  // namespace capibara::python
