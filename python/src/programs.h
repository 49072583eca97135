// Python's views of programs as jaxprs, and of attributes as equation parameters.
#pragma once

#include <capibara/program.h>

#include "bindings.h"

namespace capibara::python {

// Python's view of an opaque attribute, and an opaque attribute around a Python object.
struct OpaqueView {
  std::shared_ptr<const Opaque> opaque;
};
class PythonOpaque final : public Opaque {
 public:
  explicit PythonOpaque(nb::handle object) : object_(object) {}
  bool equals(const Opaque& other) const override;
  std::size_t hash() const override;
  std::string print() const override;
  nb::handle get() const { return object_.get(); }

 private:
  KeptObject object_;
};

// Python's views of a program (jax's Jaxpr, as opposed to ClosedJaxpr) and its parts.
struct OpenProgram {
  Program program;
};
struct VarView {
  Program program;
  Var var;
};
struct LiteralView {
  Array value;
};
struct EquationView {
  Program program;
  std::size_t index;
  const Equation& get() const { return program.equations()[index]; }
};

VarView new_variable(const ArrayType& type);  // not yet part of a program
// A program from Python's sequences of variables and equations.
Program build_program(nb::handle constvars, nb::handle invars, nb::handle outvars, nb::handle equations,
                      const std::string& name);

Ints to_ints(nb::handle sequence);
nb::object from_attr(const Attr& attr);
Attr to_attr(nb::handle object);
nb::dict params_of(const Attrs& attrs);
Attrs attrs_of(nb::handle params);  // a dict

}  // namespace capibara::python
