// strengthen: removes weak types. They steer promotion, which is over once a program is traced, and would keep equal
// equations apart. A caller takes the weak types of the results from the program before this pass.
#include "compiler/optimise/passes.h"
#include "compiler/optimise/rewrite.h"

#include <algorithm>

namespace capibara::passes {

namespace {

Array strong(const Array& array) {
  return array.weak_type() ? Array::from_buffer(array.type().strong(), array.buffer(), array.committed()) : array;
}

bool is_weak(const Attr& attr) {
  if (const auto* type = attr.get_if<ArrayType>()) return type->weak_type;
  const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>();
  return list && std::any_of((*list)->begin(), (*list)->end(), is_weak);
}

Attr strong(const Attr& attr) {
  if (const auto* type = attr.get_if<ArrayType>()) return Attr(type->strong());
  const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>();
  if (!list || !is_weak(attr)) return attr;
  Attr::List entries;
  for (const Attr& entry : **list) entries.push_back(strong(entry));
  return Attr(std::move(entries));
}

// Returns the same object if nothing is weak.
Attrs strong(const Attrs& attrs) {
  bool weak = false;
  for (const auto& [name, attr] : attrs.entries()) {
    const bool* flag = name == "weak_type" ? attr.get_if<bool>() : nullptr;
    weak |= (flag && *flag) || is_weak(attr);
  }
  if (!weak) return attrs;
  std::vector<Attrs::Entry> entries;
  for (const auto& [name, attr] : attrs.entries()) {
    entries.emplace_back(name, name == "weak_type" && attr.get_if<bool>() ? Attr(false) : strong(attr));
  }
  return Attrs(std::move(entries));
}

Program strong_program(const Program& program, NestedPass& nested) {
  bool changed = false;
  for (const ArrayType& type : program.body().var_types) changed |= type.weak_type;
  for (const Array& literal : program.body().literals) changed |= literal.weak_type();
  std::vector<Attrs> attrs;
  attrs.reserve(program.equations().size());
  for (const Equation& equation : program.equations()) {
    attrs.push_back(nested(strong(equation.attrs)));
    changed |= !same_object(attrs.back(), equation.attrs);
  }
  if (!changed) return program;
  Program::Body body = program.body();
  for (ArrayType& type : body.var_types) type.weak_type = false;
  for (Array& constant : body.constants) constant = strong(constant);
  for (Array& literal : body.literals) literal = strong(literal);
  for (std::size_t e = 0; e < body.equations.size(); ++e) body.equations[e].attrs = std::move(attrs[e]);
  return Program(std::move(body));
}

}  // namespace

Program strengthen(const Program& program) { return NestedPass(strong_program)(program); }

}  // namespace capibara::passes
