// Views on equations that hold programs: the roles of their operands, of their results and of their programs' inputs.
//
// Called without a list, a role returns its size; called with a list that has one entry for each operand or result, the
// part of the list in that role.
#pragma once

#include <capibara/primitive.h>

#include <algorithm>

#include "core/sharding/mesh_attr.h"

namespace capibara {

class ProgramView {
 protected:
  explicit ProgramView(const Attrs& attrs) : attrs_(attrs) {}
  std::size_t number(const char* name) const { return static_cast<std::size_t>(attrs_.integer(name)); }

  template <class List>
  static auto range(const List& list, std::size_t begin, std::size_t count) {
    if constexpr (std::is_same_v<List, std::vector<bool>>) {
      const auto first = list.begin() + static_cast<std::ptrdiff_t>(begin);
      return std::vector<bool>(first, first + static_cast<std::ptrdiff_t>(count));
    } else {
      return std::span(list).subspan(begin, count);
    }
  }

  const Attrs attrs_;  // keeps the programs alive
};

// scan: operands are consts, carry, xs; the body takes consts, carry and a slice of each xs, and yields carry and
// slices of the ys.
class ScanView : ProgramView {
 public:
  explicit ScanView(const Attrs& attrs)
      : ProgramView(attrs),
        body_(attrs_.program("jaxpr")),
        consts_(number("num_consts")),
        carry_(number("num_carry")) {}
  explicit ScanView(const Equation& equation) : ScanView(equation.attrs) {}

  const Program& body() const { return body_; }
  int64_t length() const { return attrs_.integer("length"); }
  int64_t unroll() const { return attrs_.integer("unroll"); }
  bool reverse() const { return attrs_.boolean("reverse"); }

  std::size_t consts() const { return consts_; }
  std::size_t carry() const { return carry_; }
  std::size_t xs() const { return body_.invars().size() - first_xs(); }
  std::size_t ys() const { return body_.outputs().size() - carry_; }
  std::size_t first_xs() const { return consts_ + carry_; }  // among the operands

  auto consts(const auto& operands) const { return range(operands, 0, consts_); }
  auto carry(const auto& operands) const { return range(operands, consts_, carry_); }
  auto xs(const auto& operands) const { return range(operands, first_xs(), xs()); }
  auto last_carry(const auto& results) const { return range(results, 0, carry_); }
  auto ys(const auto& results) const { return range(results, carry_, ys()); }

  // The attributes of the same loop with another body.
  Attrs with(const Program& body, std::size_t consts, std::size_t carry) const {
    return attrs_.with("jaxpr", body)
        .with("num_consts", static_cast<int64_t>(consts))
        .with("num_carry", static_cast<int64_t>(carry));
  }

 private:
  const Program& body_;
  std::size_t consts_, carry_;
};

// while: operands are the condition's consts, the body's consts, and the carry.
class WhileView : ProgramView {
 public:
  explicit WhileView(const Attrs& attrs)
      : ProgramView(attrs),
        condition_(attrs_.program("cond_jaxpr")),
        body_(attrs_.program("body_jaxpr")),
        cond_consts_(number("cond_nconsts")),
        body_consts_(number("body_nconsts")) {}
  explicit WhileView(const Equation& equation) : WhileView(equation.attrs) {}

  const Program& condition() const { return condition_; }
  const Program& body() const { return body_; }

  std::size_t cond_consts() const { return cond_consts_; }
  std::size_t body_consts() const { return body_consts_; }
  std::size_t carry() const { return body_.invars().size() - body_consts_; }
  std::size_t first_carry() const { return cond_consts_ + body_consts_; }  // among the operands

  auto cond_consts(const auto& operands) const { return range(operands, 0, cond_consts_); }
  auto body_consts(const auto& operands) const { return range(operands, cond_consts_, body_consts_); }
  auto carry(const auto& operands) const { return range(operands, first_carry(), carry()); }

  static Attrs attrs(const Program& condition, std::size_t cond_consts, const Program& body, std::size_t body_consts) {
    return {{"cond_jaxpr", condition},
            {"cond_nconsts", static_cast<int64_t>(cond_consts)},
            {"body_jaxpr", body},
            {"body_nconsts", static_cast<int64_t>(body_consts)}};
  }

 private:
  const Program &condition_, &body_;
  std::size_t cond_consts_, body_consts_;
};

// cond: operands are the index and the operands of the branches.
class CondView : ProgramView {
 public:
  explicit CondView(const Attrs& attrs) : ProgramView(attrs), branches_(attrs_.programs("branches")) {}
  explicit CondView(const Equation& equation) : CondView(equation.attrs) {}

  const std::vector<Program>& branches() const { return branches_; }
  const Program& branch(int64_t index) const {  // clamped
    return branches_[static_cast<std::size_t>(std::clamp<int64_t>(index, 0, std::ssize(branches_) - 1))];
  }

  auto operands(const auto& list) const { return range(list, 1, list.size() - 1); }

  static Attrs attrs(std::span<const Program> branches) { return {{"branches", Attr::programs(branches)}}; }

 private:
  std::vector<Program> branches_;
};

// The program that a call runs on all its operands; null for other equations.
inline const Program* called_program(const Equation& equation) {
  const char* name = equation.primitive->traits.called_program;
  return name && !equation.attrs.empty() ? &equation.attrs.program(name) : nullptr;
}

// True if each device of a mesh runs the program of this equation (lax/shard_map.h has its view).
inline bool maps_devices(const Primitive& primitive) { return primitive->traits.control == Control::device_map; }

// The devices that run the program of this equation; null for other equations.
inline const NamedSharding* mapped_devices(const Equation& equation) {
  return maps_devices(equation.primitive) ? &equation.attrs.opaque<MeshAttr>("mesh")->devices : nullptr;
}

}  // namespace capibara
