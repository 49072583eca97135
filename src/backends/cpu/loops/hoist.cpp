// Loop-invariant code motion in loop form: one walk, innermost loops first, so that a value may leave several loops.
#include "backends/cpu/loops/hoist.h"

#include <iterator>
#include <utility>

namespace capibara::cpu {

namespace {

class Hoister {
 public:
  explicit Hoister(Function& function) : function_(function), depth_(function.types.size(), 0) {}

  void run() { walk(function_.body, 0); }

 private:
  void define(Value value, int depth) {
    if (value != no_value) depth_[static_cast<std::size_t>(value)] = depth;
  }
  bool outside(Value value, int depth) const {
    return value == no_value || depth_[static_cast<std::size_t>(value)] < depth;
  }

  // Records where values are defined, and moves out of each loop what does not depend on it.
  void walk(Block& block, int depth) {
    Block result;
    result.reserve(block.size());
    for (Statement& statement : block) {
      Block before;
      std::visit([&](auto& own) { visit(own, depth, before); }, statement.what);
      std::move(before.begin(), before.end(), std::back_inserter(result));
      result.push_back(std::move(statement));
    }
    block = std::move(result);
  }

  void visit(Compute& own, int depth, Block&) { define(own.result, depth); }
  void visit(Load& own, int depth, Block&) { define(own.result, depth); }
  void visit(Store&, int, Block&) {}
  void visit(Invoke&, int, Block&) {}
  void visit(Host&, int, Block&) {}
  void visit(For& own, int depth, Block& before) {
    define(own.index, depth + 1);
    for (const Carry& carry : own.carries) define(carry.inside, depth + 1);
    walk(own.body, depth + 1);
    take_out(own.body, depth, own.extent_value == no_value && own.extent > 0, before);
    for (const Carry& carry : own.carries) define(carry.result, depth);
  }
  void visit(While& own, int depth, Block& before) {
    for (const Carry& carry : own.carries) define(carry.inside, depth + 1);
    walk(own.condition, depth + 1);
    walk(own.body, depth + 1);
    take_out(own.condition, depth, true, before);
    take_out(own.body, depth, false, before);
    for (const Carry& carry : own.carries) define(carry.result, depth);
  }
  void visit(Branch& own, int depth, Block&) {
    walk(own.yes, depth + 1);
    walk(own.no, depth + 1);
    for (const Branch::Result& result : own.results) define(result.result, depth);
  }

  void take_out(Block& body, int depth, bool surely, Block& before) {
    Block kept;
    kept.reserve(body.size());
    for (Statement& statement : body) {
      bool invariant = false;
      if (auto* compute = std::get_if<Compute>(&statement.what)) {
        const bool may_trap = compute->op >= Op::divide_signed && compute->op <= Op::remainder_unsigned;
        invariant = (surely || !may_trap) && outside(compute->a, depth + 1) && outside(compute->b, depth + 1) &&
                    outside(compute->c, depth + 1);
        if (invariant) define(compute->result, depth);
      } else if (auto* load = std::get_if<Load>(&statement.what); load && surely) {
        invariant = !function_.buffers[static_cast<std::size_t>(load->address.buffer)].written;
        for (const Term& term : load->address.terms) invariant = invariant && outside(term.index, depth + 1);
        if (invariant) define(load->result, depth);
      }
      (invariant ? before : kept).push_back(std::move(statement));
    }
    body = std::move(kept);
  }

  Function& function_;
  std::vector<int> depth_;  // loops and branches around the definition of each value
};

}  // namespace

void hoist(Function& function) { Hoister(function).run(); }

}  // namespace capibara::cpu
