// Visiting and rewriting the programs inside attributes.
#include "program/ir/nested.h"

#include <algorithm>
#include <optional>

namespace capibara {

namespace {

using ProgramPointer = std::shared_ptr<const Program>;
using ListPointer = std::shared_ptr<const Attr::List>;

bool any_program(const Attr& attr, const std::function<bool(const Program&)>& is_met) {
  if (const auto* program = attr.get_if<ProgramPointer>()) return is_met(**program);
  const auto* list = attr.get_if<ListPointer>();
  return list &&
         std::any_of((*list)->begin(), (*list)->end(), [&](const Attr& entry) { return any_program(entry, is_met); });
}

// The attribute with its programs rewritten, or empty if there are none or none changed.
std::optional<Attr> rewritten(const Attr& attr, const ProgramRewrite& rewrite) {
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

// Called by every pass for every equation: plain loops.
bool holds_program(const Attr& attr) {
  if (attr.get_if<ProgramPointer>()) return true;
  const auto* list = attr.get_if<ListPointer>();
  return list && std::any_of((*list)->begin(), (*list)->end(), holds_program);
}

}  // namespace

bool holds_programs(const Attrs& attrs) {
  for (const Attrs::Entry& entry : attrs.entries()) {
    if (holds_program(entry.second)) return true;
  }
  return false;
}

bool any_program(const Attrs& attrs, const std::function<bool(const Program&)>& is_met) {
  auto entries = attrs.entries();
  return std::any_of(entries.begin(), entries.end(),
                     [&](const auto& entry) { return any_program(entry.second, is_met); });
}

void for_each_program(const Attrs& attrs, const std::function<void(const Program&)>& visit) {
  any_program(attrs, [&](const Program& program) {
    visit(program);
    return false;
  });
}

Attrs rewrite_programs(const Attrs& attrs, const ProgramRewrite& rewrite) {
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

}  // namespace capibara
