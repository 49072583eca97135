// Copying programs under changes.
#include "optimise/rewrite.h"

#include <string_view>
#include <unordered_set>
#include <utility>

namespace capibara::passes {

Copy::Copy(const Program& from)
    : from_(from), now_(static_cast<std::size_t>(from.var_count())), literal_now_(from.body().literals.size()),
      bound_(now_.size(), false), literal_bound_(literal_now_.size(), false) {
  builder_.body().equations.reserve(from.equations().size());
  builder_.body().var_types.reserve(now_.size());
  for (std::size_t i = 0; i < from.constvars().size(); ++i) {
    bind(from.constvars()[i], builder_.add_constant(from.constants()[i]));
  }
  for (Var var : from.invars()) bind(var, builder_.add_input(from.type(var)));
}

Atom Copy::operator()(Atom old) {
  if (old.is_literal()) {
    std::size_t index = static_cast<std::size_t>(old.literal_index());
    if (!literal_bound_[index]) {
      literal_now_[index] = builder_.add_literal(from_.literal(old));
      literal_bound_[index] = true;
    }
    return literal_now_[index];
  }
  std::size_t index = static_cast<std::size_t>(old.code);
  if (!bound_[index]) throw InternalError("optimise: an equation reads a variable before it is defined");
  return now_[index];
}

std::vector<Atom> Copy::operator()(std::span<const Atom> old) {
  std::vector<Atom> now;
  now.reserve(old.size());
  for (Atom atom : old) now.push_back((*this)(atom));
  return now;
}

void Copy::bind(Var old, Atom now) {
  if (old.dropped()) return;
  now_[static_cast<std::size_t>(old.id)] = now;
  bound_[static_cast<std::size_t>(old.id)] = true;
}

void Copy::emit(const Equation& equation, std::vector<Atom> inputs, Attrs attrs) {
  Equation out{equation.primitive, std::move(inputs), equation.outputs, std::move(attrs), equation.effects, equation.source};
  for (Var& output : out.outputs) {
    if (output.dropped()) continue;
    Var now = builder_.new_var(from_.type(output));
    bind(output, now);
    output = now;
  }
  builder_.add_equation(std::move(out));
}

Program Copy::finish() {
  builder_.set_outputs((*this)(from_.outputs()));
  return builder_.finish(from_.name());
}

namespace {

using ProgramPointer = std::shared_ptr<const Program>;
using ListPointer = std::shared_ptr<const Attr::List>;

// The attribute with its programs rewritten, or nothing where there is none or none changed.
std::optional<Attr> rewritten(const Attr& attr, const Rewrite& rewrite) {
  if (const auto* program = attr.get_if<ProgramPointer>()) {
    Program now = rewrite(**program);
    if (now.identity() == (*program)->identity()) return std::nullopt;
    return Attr(now);
  }
  const auto* list = attr.get_if<ListPointer>();
  if (!list) return std::nullopt;
  bool changed = false;
  Attr::List copy;
  for (const Attr& entry : **list) {
    std::optional<Attr> now = rewritten(entry, rewrite);
    changed |= now.has_value();
    copy.push_back(now ? std::move(*now) : entry);
  }
  return changed ? std::optional(Attr(std::move(copy))) : std::nullopt;
}

void visit_programs(const Attr& attr, const std::function<void(const Program&)>& visit) {
  if (const auto* program = attr.get_if<ProgramPointer>()) visit(**program);
  if (const auto* list = attr.get_if<ListPointer>()) {
    for (const Attr& entry : **list) visit_programs(entry, visit);
  }
}

bool is_program(const Attr& attr) {
  if (attr.get_if<ProgramPointer>()) return true;
  const auto* list = attr.get_if<ListPointer>();
  if (!list) return false;
  for (const Attr& entry : **list) {
    if (is_program(entry)) return true;
  }
  return false;
}

}  // namespace

bool holds_programs(const Attrs& attrs) {
  for (const auto& [name, attr] : attrs.entries()) {
    if (is_program(attr)) return true;
  }
  return false;
}

void for_each_program(const Attrs& attrs, const std::function<void(const Program&)>& visit) {
  for (const auto& [name, attr] : attrs.entries()) visit_programs(attr, visit);
}

Attrs rewrite_programs(const Attrs& attrs, const Rewrite& rewrite) {
  if (!holds_programs(attrs)) return attrs;
  bool changed = false;
  std::vector<Attrs::Entry> entries;
  for (const auto& [name, attr] : attrs.entries()) {
    std::optional<Attr> now = rewritten(attr, rewrite);
    changed |= now.has_value();
    entries.emplace_back(name, now ? std::move(*now) : attr);
  }
  return changed ? Attrs(std::move(entries)) : attrs;
}

bool same_object(const Attrs& a, const Attrs& b) { return a.entries().data() == b.entries().data(); }

Program NestedPass::operator()(const Program& program) {
  if (!std::exchange(begun_, true)) return body_(program, *this);  // the outermost: it is in none of its own equations
  auto place = done_.find(program);
  if (place != done_.end()) return place->second;
  Program result = body_(program, *this);
  return done_.try_emplace(program, std::move(result)).first->second;
}

bool repeatable(const Program& program, const Equation& equation) {
  if (equation.effects.keeps_equation()) return false;
  if (!equation.primitive->traits.repeatable || equation.primitive->evaluate) return false;
  for (Atom input : equation.inputs) {
    if (program.type(input).ref) return false;
  }
  for (Var output : equation.outputs) {
    if (!output.dropped() && program.type(output).ref) return false;
  }
  return true;
}

}  // namespace capibara::passes
