// Simplifier: rewrites single equations by rules; shared by the rule tables of simplify*.cpp.
#pragma once

#include "compiler/optimise/rewrite.h"
#include "program/ir/handles.h"

#include <initializer_list>
#include <optional>
#include <unordered_map>

namespace capibara::passes {

class Simplifier;

inline int64_t at(const Ints& list, int64_t i) { return list[static_cast<std::size_t>(i)]; }

// One equation about to be added to the new program.
struct Site {
  Simplifier& simplifier;
  const Primitive& primitive;
  std::span<const Atom> inputs;
  const Attrs& attrs;
  Source source;
  bool only_reader;  // of its first input, as far as known

  const ArrayType& type(std::size_t input) const;
  ArrayType output_type() const;
};

// A value equal to the equation's only output, or nullopt if the rule does not apply.
using Rule = std::optional<Atom> (*)(Site&);

// By primitive, tried in the order in which they were added.
class Rules {
 public:
  void add(const Primitive& primitive, Rule rule) { rules_[&primitive.record()].push_back(rule); }
  void add(std::initializer_list<std::pair<Primitive, Rule>> rows) {
    for (const auto& [primitive, rule] : rows) add(primitive, rule);
  }
  std::span<const Rule> of(const Primitive& primitive) const {
    const auto found = rules_.find(&primitive.record());
    return found == rules_.end() ? std::span<const Rule>() : found->second;
  }

 private:
  std::unordered_map<const PrimitiveRecord*, std::vector<Rule>> rules_;
};

class Simplifier {
 public:
  explicit Simplifier(const Program& program);
  Program operator()(NestedPass& nested);

  // Adds an equation with one output, and simplifies it in turn.
  Atom add(const Primitive& primitive, std::vector<Atom> inputs, const Attrs& attrs, Source source,
           bool only_reader = false);
  Atom literal(Array value) { return copy_.builder().add_literal(std::move(value)); }
  const ArrayType& type(Atom atom) const { return copy_.type(atom); }
  // The equation that computes the value, if it has this primitive and one output; else null.
  const Equation* made_by(Atom atom, const Primitive& primitive) const;
  const Equation* maker(Atom atom) const;
  // The value of a scalar literal, or of one that was broadcast; else null.
  const Array* uniform(Atom atom);

 private:
  void note_outputs();
  std::optional<Atom> apply_rules(Site& site);
  bool forward_operands(const Equation& cond, std::vector<Atom> inputs, Attrs attrs);

  Copy copy_;
  std::vector<int32_t> maker_;    // of each new variable: the position of its equation, -1 for inputs and constants
  std::vector<uint8_t> readers_;  // of each old variable, up to 2
  int depth_ = 0;
};

void add_algebra_rules(Rules& rules);   // simplify_algebra.cpp
void add_shape_rules(Rules& rules);     // simplify_shape.cpp
void add_contract_rules(Rules& rules);  // simplify_contract.cpp
void add_scalar_rules(Rules& rules);    // simplify_scalar.cpp
void add_index_rules(Rules& rules);     // simplify_index.cpp

inline Attrs reshape_attrs(const Shape& shape) {
  return {{"new_sizes", shape}, {"dimensions", Attr()}, {"sharding", Attr()}};
}
inline Attrs broadcast_attrs(const Shape& shape, const Ints& dims) {
  return {{"shape", shape}, {"broadcast_dimensions", dims}, {"sharding", Attr()}};
}
// True without a sharding that must be kept and, for reshape, without a reordering.
inline bool is_plain(const Attrs& attrs) {
  for (const char* name : {"sharding", "out_sharding", "dimensions"}) {
    const Attr* attr = attrs.find(name);
    if (attr && !attr->is_none()) return false;
  }
  return true;
}

}  // namespace capibara::passes
