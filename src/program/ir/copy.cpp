// Copying programs and inlining one into another.
#include "program/ir/copy.h"

#include "program/ir/handles.h"

#include <algorithm>

namespace capibara {

Copy::Copy(const Program& from, ProgramBuilder& into)
    : from_(from),
      builder_(into),
      now_(static_cast<std::size_t>(from.var_count())),
      literal_now_(from.body().literals.size()) {}

Copy::Copy(const Program& from)
    : from_(from),
      own_(std::in_place),
      builder_(*own_),
      now_(static_cast<std::size_t>(from.var_count())),
      literal_now_(from.body().literals.size()) {
  builder_.body().equations.reserve(from.equations().size());
  builder_.body().var_types.reserve(now_.size());
  bind_constants();
  for (Var var : from.invars()) add_input(var);
}

Atom Copy::operator()(Atom old) {
  if (old.is_literal()) {
    std::optional<Atom>& now = literal_now_[static_cast<std::size_t>(old.literal_index())];
    if (!now) now = builder_.add_literal(from_.literal(old));
    return *now;
  }
  const std::size_t index = static_cast<std::size_t>(old.code);
  if (index >= now_.size() || !now_[index])
    throw InternalError("copy: a program reads a variable before it is defined");
  return *now_[index];
}

std::vector<Atom> Copy::operator()(std::span<const Atom> old) {
  std::vector<Atom> now;
  now.reserve(old.size());
  for (Atom atom : old) now.push_back((*this)(atom));
  return now;
}

void Copy::bind(Var old, Atom now) {
  if (old.dropped()) return;
  const std::size_t index = static_cast<std::size_t>(old.id);
  if (index >= now_.size()) now_.resize(index + 1);
  now_[index] = now;
}

void Copy::bind(std::span<const Var> old, std::span<const Atom> now) {
  for (std::size_t i = 0; i < now.size(); ++i) bind(old[i], now[i]);
}

void Copy::bind_constants() {
  for (std::size_t i = 0; i < from_.constvars().size(); ++i) {
    bind(from_.constvars()[i], builder_.add_constant(from_.constants()[i]));
  }
}

void Copy::add(Equation equation) {
  for (Var& output : equation.outputs) {
    if (output.dropped()) continue;
    Var now = builder_.new_var(from_.type(output));
    bind(output, now);
    output = now;
  }
  builder_.add_equation(std::move(equation));
}

void Copy::emit(const Equation& equation, std::vector<Atom> inputs, Attrs attrs) {
  add({equation.primitive, std::move(inputs), equation.outputs, std::move(attrs), equation.effects, equation.source});
}

void Copy::copy(Equation equation) {
  for (Atom& input : equation.inputs) input = (*this)(input);
  add(std::move(equation));
}

std::vector<Atom> Copy::splice(const Program& program, std::span<const Atom> inputs) {
  return inline_program(builder_, program, inputs);
}

Program Copy::finish(std::vector<Atom> outputs) {
  builder_.set_outputs(std::move(outputs));
  return builder_.finish(from_.name());
}

std::vector<Atom> inline_program(ProgramBuilder& builder, const Program& program, std::span<const Atom> inputs) {
  Copy copy(program, builder);
  copy.bind_constants();
  copy.bind(program.invars(), inputs);
  for (const Equation& equation : program.equations()) copy.copy(equation);
  return copy(program.outputs());
}

Program inline_jit_calls(const Program& program) {
  auto is_call = [](const Equation& equation) { return equation.primitive == prim::jit(); };
  if (std::none_of(program.equations().begin(), program.equations().end(), is_call)) return program;
  Copy copy(program);
  for (const Equation& equation : program.equations()) {
    if (!is_call(equation)) {
      copy.copy(equation);
      continue;
    }
    const Program called = inline_jit_calls(equation.attrs.program("jaxpr"));
    copy.bind(equation.outputs, copy.splice(called, copy(equation.inputs)));
  }
  return copy.finish();
}

}  // namespace capibara
