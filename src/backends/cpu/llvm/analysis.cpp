// Decides which loops run in lanes, and how values differ between the lanes.
//
// A loop runs in lanes if it is marked so, no loop inside it does, and control flow in its body is the same for
// all iterations, except for branches that only compute. The loop index is affine with step 1; sums and constant
// multiples of affine values are affine: their loads are contiguous, reversed or strided, without vectors of addresses.
#include "backends/cpu/llvm/analysis.h"

#include <algorithm>

namespace capibara::cpu {

Analysis::Analysis(const Function& function, int vector_bytes, bool fuses)
    : function_(function),
      vector_bytes_(vector_bytes),
      fuses_(fuses),
      uses_(function.types.size()),
      block_of_(function.types.size(), -1),
      definitions_(function.types.size()),
      fused_(function.types.size()),
      constant_buffers_(function.buffers.size()),
      kinds_(function.types.size()),
      steps_(function.types.size()) {
  for (std::size_t i = 0; i < function.buffers.size(); ++i) {
    constant_buffers_[i] = !function.buffers[i].local && !function.buffers[i].written;
  }
  survey(function.body);
  if (fuses_) {
    const auto is_product = [&](const Compute& compute) {
      return (compute.op == Op::mul && compute.bits != rounded_product) ||
             (compute.op == Op::apply && function.formulas[compute.bits].factor_a != no_value);
    };
    for (const Compute* sum : definitions_) {
      if (!sum || (sum->op != Op::add && sum->op != Op::sub) || !is_float(function.types[index(sum->result)])) continue;
      for (Value side : {sum->a, sum->b}) {
        const Compute* product = definitions_[index(side)];
        if (!product || !is_product(*product) || uses_[index(side)] != 1 ||
            block_of_[index(side)] != block_of_[index(sum->result)]) {
          continue;
        }
        products_.emplace(sum, product);
        fused_[index(side)] = true;
        break;
      }
    }
  }
  bool has_lanes = false;
  decide(function.body, has_lanes);
}

const Compute* Analysis::product_of(const Compute& sum) const {
  if (!fuses_ || (sum.op != Op::add && sum.op != Op::sub)) return nullptr;
  auto it = products_.find(&sum);
  return it == products_.end() ? nullptr : it->second;
}

LaneChoice Analysis::choice(const For& loop) const {
  auto it = choices_.find(&loop);
  return it == choices_.end() ? LaneChoice{} : it->second;
}

int64_t Analysis::weight(const Block& block, int64_t limit) const {
  int64_t total = 0;
  for (const Statement& statement : block) {
    if (const auto* compute = std::get_if<Compute>(&statement.what)) {
      total += compute->op != Op::constant;
    } else if (std::get_if<Load>(&statement.what) || std::get_if<Store>(&statement.what)) {
      ++total;
    } else if (const auto* loop = std::get_if<For>(&statement.what)) {
      if (loop->extent_value != no_value || loop->parallel || loop->poll) return limit;
      if (loop->extent > 0) total += weight(loop->body, limit) * std::min(loop->extent, limit);
    } else {
      return limit;
    }
    if (total >= limit) return limit;
  }
  return total;
}

// ---- lanes --------------------------------------------------------------------------------------------------------

void Analysis::decide(const Block& block, bool& has_lanes) {
  for (const Statement& statement : block) {
    if (const auto* loop = std::get_if<For>(&statement.what)) {
      bool inside = false;
      decide(loop->body, inside);
      if (loop->lanes && !inside) {
        LaneChoice choice = try_lanes(*loop);
        if (choice.lanes > 1) {
          choices_.emplace(loop, choice);
          inside = true;
        }
      }
      has_lanes |= inside;
    } else if (const auto* repeat = std::get_if<While>(&statement.what)) {
      decide(repeat->condition, has_lanes);
      decide(repeat->body, has_lanes);
    } else if (const auto* branch = std::get_if<Branch>(&statement.what)) {
      decide(branch->yes, has_lanes);
      decide(branch->no, has_lanes);
    }
  }
}

// One walk over the body of a loop that may run in lanes.
struct Analysis::Walk {
  Analysis& analysis;
  bool possible = true;
  int widest = 1;  // bytes of the widest scalar that becomes a vector
  std::vector<bool> loaded, stored;
  // Estimated registers: positions of definitions and last uses of vectors.
  int position = 0;
  std::unordered_map<Value, std::pair<int, int>> lives;
  std::unordered_map<int, int> inside;  // registers that formulas need in addition, by position

  explicit Walk(Analysis& owner)
      : analysis(owner), loaded(owner.function_.buffers.size()), stored(owner.function_.buffers.size()) {}

  Kind kind(Value value) const { return analysis.kinds_[index(value)]; }
  Scalar type(Value value) const { return analysis.function_.types[index(value)]; }

  void mark(Value value, Kind kind, int64_t step = 0) {
    analysis.kinds_[index(value)] = kind;
    analysis.steps_[index(value)] = step;
    if (kind == Kind::uniform) return;
    analysis.marked_.push_back(value);
    if (kind == Kind::varying) {
      widest = std::max(widest, byte_size(type(value)));
      lives[value] = {position, position};
    }
  }

  // The value will be kept in a vector register.
  void as_vector(Value value) {
    if (kind(value) == Kind::affine) widest = std::max(widest, byte_size(type(value)));
    touch(value);
  }
  void touch(Value value) {
    if (auto it = lives.find(value); it != lives.end()) it->second.second = position;
  }

  // The step of an address from lane to lane, in elements; varying if an index is.
  Kind address_kind(const Address& address) {
    int64_t step = 0;
    for (const Term& term : address.terms) {
      if (kind(term.index) == Kind::varying) {
        touch(term.index);
        return Kind::varying;
      }
      if (kind(term.index) == Kind::affine) step += analysis.steps_[index(term.index)] * term.factor;
    }
    return step == 0 ? Kind::uniform : Kind::affine;
  }

  const uint64_t* constant(Value value) const {
    const Compute* definition = analysis.definitions_[index(value)];
    return definition && definition->op == Op::constant ? &definition->bits : nullptr;
  }

  void visit(const Compute& compute) {
    bool uniform = true, affine = !is_float(type(compute.result)) && type(compute.result) != Scalar::i1;
    for (Value operand : {compute.a, compute.b, compute.c}) {
      if (operand == no_value) continue;
      uniform &= kind(operand) == Kind::uniform;
      affine &= kind(operand) != Kind::varying;
    }
    if (uniform) return mark(compute.result, Kind::uniform);
    if (affine) {
      auto step_of = [this](Value value) { return kind(value) == Kind::affine ? analysis.steps_[index(value)] : 0; };
      auto found = [&](int64_t step) { mark(compute.result, step == 0 ? Kind::uniform : Kind::affine, step); };
      switch (compute.op) {
        case Op::add:
          return found(step_of(compute.a) + step_of(compute.b));
        case Op::sub:
          return found(step_of(compute.a) - step_of(compute.b));
        case Op::neg:
          return found(-step_of(compute.a));
        case Op::narrow:
          return mark(compute.result, Kind::affine, step_of(compute.a));
        case Op::mul:
          if (const uint64_t* factor = constant(compute.b))
            return found(step_of(compute.a) * static_cast<int64_t>(*factor));
          if (const uint64_t* factor = constant(compute.a))
            return found(step_of(compute.b) * static_cast<int64_t>(*factor));
          break;
        default:
          break;
      }
    }
    for (Value operand : {compute.a, compute.b, compute.c}) {
      if (operand != no_value) as_vector(operand);
    }
    if (compute.op == Op::apply) {
      const Demand& demand = analysis.demand(compute.bits);
      possible &= demand.possible;
      widest = std::max(widest, demand.widest);
      inside[position] = std::max(inside[position], demand.pressure);
    }
    mark(compute.result, Kind::varying);
  }

  void visit(const Load& load) {
    loaded[static_cast<std::size_t>(load.address.buffer)] = true;
    mark(load.result, address_kind(load.address) == Kind::uniform ? Kind::uniform : Kind::varying);
  }

  void visit(const Store& store) {
    stored[static_cast<std::size_t>(store.address.buffer)] = true;
    as_vector(store.value);
    // All lanes write to one address, which must receive the last iteration's value.
    if (address_kind(store.address) == Kind::uniform && kind(store.value) != Kind::uniform) possible = false;
  }

  // Marks the carries of an inner loop; returns true if a value becomes varying only after an iteration.
  bool settle(const std::vector<Carry>& carries, const std::vector<bool>& before) {
    bool changed = false;
    for (std::size_t i = 0; i < carries.size(); ++i) {
      if (!before[i] && kind(carries[i].next) != Kind::uniform) changed = true;
    }
    return changed;
  }

  template <class Iteration>
  void visit_loop(const std::vector<Carry>& carries, Iteration&& iteration) {
    std::vector<bool> varies(carries.size());
    for (std::size_t i = 0; i < carries.size(); ++i) {
      varies[i] = kind(carries[i].initial) != Kind::uniform;
      if (varies[i]) as_vector(carries[i].initial);
    }
    while (true) {
      for (std::size_t i = 0; i < carries.size(); ++i) {
        mark(carries[i].inside, varies[i] ? Kind::varying : Kind::uniform);
      }
      iteration();
      if (!possible || !settle(carries, varies)) break;
      for (std::size_t i = 0; i < carries.size(); ++i) {
        varies[i] = varies[i] || kind(carries[i].next) != Kind::uniform;
      }
    }
    ++position;
    for (std::size_t i = 0; i < carries.size(); ++i) {
      as_vector(carries[i].next);
      touch(carries[i].inside);
      mark(carries[i].result, varies[i] ? Kind::varying : Kind::uniform);
    }
  }

  void visit(const For& loop) {
    if (loop.extent_value != no_value && kind(loop.extent_value) != Kind::uniform) {
      possible = false;
      return;
    }
    visit_loop(loop.carries, [&] {
      mark(loop.index, Kind::uniform);
      block(loop.body);
    });
  }

  void visit(const While& loop) {
    visit_loop(loop.carries, [&] {
      block(loop.condition);
      if (possible && kind(loop.go) != Kind::uniform) possible = false;
      block(loop.body);
    });
  }

  // True for blocks that are safe to run for lanes that do not need them.
  static bool only_computes(const Block& block) {
    return std::all_of(block.begin(), block.end(), [](const Statement& statement) {
      if (const auto* branch = std::get_if<Branch>(&statement.what)) {
        return only_computes(branch->yes) && only_computes(branch->no);
      }
      return std::holds_alternative<Compute>(statement.what);
    });
  }

  void visit(const Branch& branch) {
    const bool varies = kind(branch.condition) != Kind::uniform;
    if (varies && !(only_computes(branch.yes) && only_computes(branch.no))) {
      possible = false;
      return;
    }
    if (varies) as_vector(branch.condition);
    block(branch.yes);
    block(branch.no);
    ++position;
    for (const Branch::Result& result : branch.results) {
      bool uniform = !varies && kind(result.yes) == Kind::uniform && kind(result.no) == Kind::uniform;
      if (!uniform) {
        as_vector(result.yes);
        as_vector(result.no);
      }
      mark(result.result, uniform ? Kind::uniform : Kind::varying);
    }
  }

  void visit(const Invoke&) { possible = false; }
  void visit(const Host&) { possible = false; }

  void block(const Block& statements) {
    for (const Statement& statement : statements) {
      if (!possible) return;
      ++position;
      std::visit([this](const auto& what) { visit(what); }, statement.what);
    }
  }

  // Maximum number of vectors that are live at one point.
  int pressure() const {
    std::vector<int> change(static_cast<std::size_t>(position) + 2);
    for (const auto& [value, life] : lives) {
      ++change[static_cast<std::size_t>(life.first)];
      --change[static_cast<std::size_t>(life.second) + 1];
    }
    int live = 0, most = 0;
    for (int at = 0; at < static_cast<int>(change.size()); ++at) {
      live += change[static_cast<std::size_t>(at)];
      const auto formula = inside.find(at);
      most = std::max(most, live + (formula == inside.end() ? 0 : formula->second));
    }
    return most;
  }

  void loop(const For& loop) {
    mark(loop.index, Kind::affine, 1);
    for (const Carry& carry : loop.carries) {
      if (carry.combine == Op::constant || carry.identity == no_value) possible = false;
      mark(carry.inside, Kind::varying);
    }
    block(loop.body);
    ++position;
    for (const Carry& carry : loop.carries) {
      if (possible) as_vector(carry.next);
      touch(carry.inside);
    }
  }
};

const Analysis::Demand& Analysis::demand(uint64_t formula) {
  auto [it, inserted] = demands_.try_emplace(formula);
  if (inserted) {
    const Formula& own = function_.formulas[formula];
    Analysis analysis(*own.body, vector_bytes_, fuses_);
    Walk walk(analysis);
    walk.loop(loop_of(own));
    it->second = {walk.possible, walk.widest, walk.pressure()};
  }
  return it->second;
}

LaneChoice Analysis::try_lanes(const For& loop) {
  if (loop.extent_value == no_value && loop.extent < 2) return {};
  Walk walk(*this);
  walk.loop(loop);
  leave();
  if (!walk.possible) return {};
  LaneChoice choice;
  choice.repeatable = true;
  for (std::size_t i = 0; i < walk.loaded.size(); ++i) choice.repeatable &= !(walk.loaded[i] && walk.stored[i]);
  // Four registers per value hide the latency of dependency chains. With many live values two are as fast, since some
  // spill to memory in any case, and compile in a third of the time.
  const int pressure = walk.pressure();
  const int registers = pressure <= 10 ? 4 : pressure <= 64 ? 2 : 1;
  choice.lanes = std::clamp(registers * vector_bytes_ / walk.widest, 1, 64);
  if (loop.extent_value == no_value) {
    while (choice.lanes > loop.extent) choice.lanes /= 2;
  }
  return choice;
}

void Analysis::enter(const For& loop) { Walk(*this).loop(loop); }

void Analysis::leave() {
  for (Value value : marked_) {
    kinds_[index(value)] = Kind::uniform;
    steps_[index(value)] = 0;
  }
  marked_.clear();
}

}  // namespace capibara::cpu
