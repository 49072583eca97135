// Loops and branches: carries are phis, tiny loops are unrolled, and loops in lanes run over vectors.
//
// A loop in lanes over n iterations, L at a time. If an iteration may run twice, the last L are one more vector from
// n-L on, so that no scalar remainder is left: a carried value then accumulates only the new lanes. Otherwise the
// remainder runs one iteration at a time. Lanes of a carried value are reduced in halves: 0..L/2 with L/2..L, etc.
#include <stdexcept>

#include <llvm/IR/MDBuilder.h>

#include "backends/cpu/llvm/function_emitter.h"

namespace capibara::cpu {

namespace {

// A loop of few iterations is unrolled up to this many statements.
constexpr int64_t straight_iterations = 4, straight_statements = 24;

const llvm::ConstantInt* as_constant(llvm::Value* value) { return llvm::dyn_cast<llvm::ConstantInt>(value); }

bool may_trap(Op op) {
  return op == Op::divide_signed || op == Op::divide_unsigned || op == Op::remainder_signed ||
         op == Op::remainder_unsigned;
}

}  // namespace

void FunctionEmitter::hoist(const Block& statements, bool surely) {
  for (const Statement& each : statements) {
    if (const auto* compute = std::get_if<Compute>(&each.what)) {
      if (is_defined(compute->result) || analysis_.is_fused(compute->result)) continue;
      if (!surely && (may_trap(compute->op) || compute->op == Op::call || compute->op == Op::apply)) continue;
      bool ready = true;
      const Compute* product = analysis_.product_of(*compute);
      for (Value operand : {compute->a, compute->b, compute->c}) {
        if (operand == no_value || (product && operand == product->result)) continue;
        ready &= is_defined(operand);
      }
      if (product) {
        for (Value operand : {product->a, product->b, product->c}) ready &= operand == no_value || is_defined(operand);
      }
      if (ready) statement(*compute);
    } else if (const auto* load = std::get_if<Load>(&each.what)) {
      if (!surely || is_defined(load->result) || !analysis_.is_constant_buffer(load->address.buffer)) continue;
      bool ready = true;
      for (const Term& term : load->address.terms) ready &= is_defined(term.index);
      if (ready) statement(*load);
    } else if (const auto* loop = std::get_if<For>(&each.what)) {
      hoist(loop->body, surely && loop->extent_value == no_value && loop->extent > 0);
    }
  }
}

FunctionEmitter::Values FunctionEmitter::initial_values(const For& loop) {
  Values values;
  for (const Carry& carry : loop.carries) values.push_back(carried(carry.initial, carry.inside));
  return values;
}

// One iteration at `at`: returns the carried values of the next one.
FunctionEmitter::Values FunctionEmitter::iteration(const For& loop, llvm::Value* at, const Values& values) {
  const std::size_t start = mark();
  define(loop.index, at);
  for (std::size_t i = 0; i < loop.carries.size(); ++i) define(loop.carries[i].inside, values[i]);
  if (loop.poll) poll();
  block(loop.body);
  Values next;
  for (const Carry& carry : loop.carries) next.push_back(carried(carry.next, carry.inside));
  forget(start);
  return next;
}

FunctionEmitter::Values FunctionEmitter::iterations(const For& loop, llvm::Value* begin, llvm::Value* end, int64_t step,
                                                    Values values) {
  const llvm::ConstantInt *first = as_constant(begin), *last = as_constant(end);
  const bool known = first && last;
  if (known) {
    const int64_t count = std::max<int64_t>(0, last->getSExtValue() - first->getSExtValue()) / step;
    const bool straight =
        count <= 1 || (count <= straight_iterations && !loop.poll &&
                       count * analysis_.weight(loop.body, straight_statements) < straight_statements);
    if (straight) {
      for (int64_t i = 0; i < count; ++i) values = iteration(loop, index(first->getSExtValue() + i * step), values);
      return values;
    }
  }
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* exit = new_block("loop.exit");
  if (!known) {
    llvm::BasicBlock* enter = new_block("loop.enter");
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), enter, exit);
    b_.SetInsertPoint(enter);
  }
  llvm::BasicBlock* enter = b_.GetInsertBlock();
  llvm::BasicBlock* head = new_block("loop");
  scopes_.push_back({b_.CreateBr(head), {}, {}});
  b_.SetInsertPoint(head);
  llvm::PHINode* at = b_.CreatePHI(b_.getInt64Ty(), 2);
  at->addIncoming(begin, enter);
  std::vector<llvm::PHINode*> phis;
  Values inside;
  for (llvm::Value* value : values) {
    phis.push_back(b_.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, enter);
    inside.push_back(phis.back());
  }
  Values next = iteration(loop, at, inside);
  llvm::BasicBlock* latch = b_.GetInsertBlock();
  llvm::Value* following = b_.CreateAdd(at, index(step), "", true, true);
  b_.CreateCondBr(b_.CreateICmpSLT(following, end), head, exit);
  at->addIncoming(following, latch);
  for (std::size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(next[i], latch);
  scopes_.pop_back();
  exit->moveAfter(latch);
  b_.SetInsertPoint(exit);
  if (known) return next;
  for (std::size_t i = 0; i < values.size(); ++i) {
    llvm::PHINode* merged = b_.CreatePHI(values[i]->getType(), 2);
    merged->addIncoming(values[i], before);
    merged->addIncoming(next[i], latch);
    next[i] = merged;
  }
  return next;
}

// Iterations over whole vectors from begin to end, at least one vector apart; the last one ends exactly at the end.
void FunctionEmitter::clamped_iterations(const For& loop, llvm::Value* begin, llvm::Value* end) {
  const llvm::ConstantInt *first = as_constant(begin), *last = as_constant(end);
  if (first && last) {
    const int64_t from = first->getSExtValue(), count = last->getSExtValue() - from;
    if (count % lanes_ == 0) {
      iterations(loop, begin, end, lanes_, {});
      return;
    }
    const int64_t total = (count + lanes_ - 1) / lanes_;
    if (total <= straight_iterations && !loop.poll &&
        total * analysis_.weight(loop.body, straight_statements) < straight_statements) {
      for (int64_t i = 0; i < total; ++i) iteration(loop, index(from + std::min(i * lanes_, count - lanes_)), {});
      return;
    }
  }
  llvm::Value* final_start = b_.CreateSub(end, index(lanes_));
  llvm::BasicBlock* enter = b_.GetInsertBlock();
  llvm::BasicBlock *head = new_block("lanes"), *exit = new_block("lanes.exit");
  scopes_.push_back({b_.CreateBr(head), {}, {}});
  b_.SetInsertPoint(head);
  llvm::PHINode* at = b_.CreatePHI(b_.getInt64Ty(), 2);
  at->addIncoming(begin, enter);
  iteration(loop, at, {});
  llvm::BasicBlock* latch = b_.GetInsertBlock();
  llvm::Value* following = b_.CreateAdd(at, index(lanes_), "", true, true);
  at->addIncoming(b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, following, final_start), latch);
  b_.CreateCondBr(b_.CreateICmpEQ(at, final_start), exit, head);
  scopes_.pop_back();
  exit->moveAfter(latch);
  b_.SetInsertPoint(exit);
}

// An iteration over the vector at `at` of which only the last `count` lanes are new.
FunctionEmitter::Values FunctionEmitter::masked_iteration(const For& loop, int64_t at, int64_t count,
                                                          const Values& values) {
  Values next = iteration(loop, index(at), values);
  std::vector<llvm::Constant*> fresh;
  for (int lane = 0; lane < lanes_; ++lane) fresh.push_back(b_.getInt1(lane >= lanes_ - count));
  for (std::size_t i = 0; i < next.size(); ++i)
    next[i] = b_.CreateSelect(llvm::ConstantVector::get(fresh), next[i], values[i]);
  return next;
}

FunctionEmitter::Values FunctionEmitter::joined(const For& loop, const Values& lanes) {
  Values results;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    llvm::Value* value = lanes[i];
    for (int half = lanes_ / 2; half >= 1; half /= 2) {
      std::vector<int> low, high;
      for (int lane = 0; lane < half; ++lane) {
        low.push_back(lane);
        high.push_back(lane + half);
      }
      value = combine(loop.carries[i].combine, b_.CreateShuffleVector(value, low), b_.CreateShuffleVector(value, high));
    }
    value = b_.CreateExtractElement(value, uint64_t{0});
    results.push_back(combine(loop.carries[i].combine, scalar(loop.carries[i].initial), value));
  }
  return results;
}

FunctionEmitter::Values FunctionEmitter::lanes_loop(const For& loop, LaneChoice choice, llvm::Value* begin,
                                                    llvm::Value* end) {
  const llvm::ConstantInt *first = as_constant(begin), *last = as_constant(end);
  const int64_t width = choice.lanes;
  auto in_lanes = [&](auto&& write) {
    analysis_.enter(loop);
    lanes_ = choice.lanes;
    lanes_level_ = scopes_.size();
    write();
    lanes_ = 1;
    lanes_level_ = 0;
    analysis_.leave();
  };
  if (loop.carries.empty() && choice.repeatable) {
    if (first && last) {
      in_lanes([&] { clamped_iterations(loop, begin, end); });
      return {};
    }
    llvm::BasicBlock *wide = new_block("wide"), *narrow = new_block("narrow"), *exit = new_block("wide.exit");
    b_.CreateCondBr(b_.CreateICmpSGE(b_.CreateSub(end, begin), index(width)), wide, narrow);
    b_.SetInsertPoint(wide);
    in_lanes([&] { clamped_iterations(loop, begin, end); });
    b_.CreateBr(exit);
    b_.SetInsertPoint(narrow);
    iterations(loop, begin, end, 1, {});
    b_.CreateBr(exit);
    exit->moveAfter(b_.GetInsertBlock());
    b_.SetInsertPoint(exit);
    return {};
  }

  llvm::Value* middle;  // end of the last whole vector
  if (first && last) {
    middle = index(first->getSExtValue() + (last->getSExtValue() - first->getSExtValue()) / width * width);
  } else {
    llvm::Value* count = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.CreateSub(end, begin), index(0));
    middle = b_.CreateAdd(begin, b_.CreateAnd(count, index(-width)));
  }
  Values results;
  bool finished = false;
  in_lanes([&] {
    Values lanes;
    for (const Carry& carry : loop.carries) lanes.push_back(splat(scalar(carry.identity)));
    lanes = iterations(loop, begin, middle, width, lanes);
    if (const llvm::ConstantInt* stop = as_constant(middle); first && last) {
      const int64_t rest = last->getSExtValue() - stop->getSExtValue();
      if (rest > 0 && choice.repeatable) lanes = masked_iteration(loop, last->getSExtValue() - width, rest, lanes);
      finished = rest == 0 || choice.repeatable;
    }
    results = joined(loop, lanes);
  });
  return finished ? results : iterations(loop, middle, end, 1, results);
}

void FunctionEmitter::statement(const For& loop) {
  llvm::Value* begin = loop.parallel ? out_->getArg(2) : static_cast<llvm::Value*>(index(0));
  llvm::Value* end = loop.parallel                   ? out_->getArg(3)
                     : loop.extent_value != no_value ? scalar(loop.extent_value)
                                                     : static_cast<llvm::Value*>(index(loop.extent));
  if (loop.parallel && !loop.carries.empty()) {
    throw std::runtime_error("emit: the parallel loop of " + function_.name + " carries values");
  }
  if (loop.extent_value != no_value || loop.extent > 0) hoist(loop.body, loop.extent_value == no_value);
  const LaneChoice choice = lanes_ == 1 ? analysis_.choice(loop) : LaneChoice{};
  Values results =
      choice.lanes > 1 ? lanes_loop(loop, choice, begin, end) : iterations(loop, begin, end, 1, initial_values(loop));
  for (std::size_t i = 0; i < results.size(); ++i) define(loop.carries[i].result, results[i]);
}

void FunctionEmitter::statement(const While& loop) {
  hoist(loop.condition, true);
  hoist(loop.body, false);
  llvm::BasicBlock* enter = b_.GetInsertBlock();
  llvm::BasicBlock *head = new_block("while"), *body = new_block("do"), *exit = new_block("while.exit");
  Values initial;
  for (const Carry& carry : loop.carries) initial.push_back(carried(carry.initial, carry.inside));
  scopes_.push_back({b_.CreateBr(head), {}, {}});
  b_.SetInsertPoint(head);
  const std::size_t start = mark();
  std::vector<llvm::PHINode*> phis;
  for (std::size_t i = 0; i < initial.size(); ++i) {
    phis.push_back(b_.CreatePHI(initial[i]->getType(), 2));
    phis.back()->addIncoming(initial[i], enter);
  }
  for (std::size_t i = 0; i < phis.size(); ++i) define(loop.carries[i].inside, phis[i]);
  if (loop.poll) poll();
  block(loop.condition);
  b_.CreateCondBr(scalar(loop.go), body, exit);
  b_.SetInsertPoint(body);
  block(loop.body);
  Values next;
  for (const Carry& carry : loop.carries) next.push_back(carried(carry.next, carry.inside));
  llvm::BasicBlock* latch = b_.GetInsertBlock();
  b_.CreateBr(head);
  for (std::size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(next[i], latch);
  forget(start);
  scopes_.pop_back();
  exit->moveAfter(latch);
  b_.SetInsertPoint(exit);
  for (std::size_t i = 0; i < phis.size(); ++i) define(loop.carries[i].result, phis[i]);
}

// Divergent branch: all lanes take the second side, and the first only if any lane needs it, which is rare.
void FunctionEmitter::lanes_branch(const Branch& branch) {
  const std::size_t outer = mark();
  block(branch.no);
  Values from_no, chosen;
  for (const Branch::Result& result : branch.results) from_no.push_back(vector(result.no));
  forget(outer);
  llvm::Value* condition = vector(branch.condition);
  llvm::BasicBlock *yes = new_block("rare"), *exit = new_block("rare.exit"), *head = b_.GetInsertBlock();
  b_.CreateCondBr(b_.CreateOrReduce(condition), yes, exit, llvm::MDBuilder(context_).createBranchWeights(1, 2000));
  b_.SetInsertPoint(yes);
  const std::size_t start = mark();
  block(branch.yes);
  for (std::size_t i = 0; i < from_no.size(); ++i) {
    chosen.push_back(b_.CreateSelect(condition, vector(branch.results[i].yes), from_no[i]));
  }
  forget(start);
  llvm::BasicBlock* latch = b_.GetInsertBlock();
  b_.CreateBr(exit);
  exit->moveAfter(latch);
  b_.SetInsertPoint(exit);
  for (std::size_t i = 0; i < from_no.size(); ++i) {
    llvm::PHINode* merged = b_.CreatePHI(from_no[i]->getType(), 2);
    merged->addIncoming(chosen[i], latch);
    merged->addIncoming(from_no[i], head);
    define(branch.results[i].result, merged);
  }
}

void FunctionEmitter::statement(const Branch& branch) {
  if (lanes_ > 1 && analysis_.kind(branch.condition) != Kind::uniform) return lanes_branch(branch);
  llvm::BasicBlock *yes = new_block("yes"), *no = new_block("no"), *exit = new_block("branch.exit");
  b_.CreateCondBr(scalar(branch.condition), yes, no);
  auto side = [&](llvm::BasicBlock* begin, const Block& statements, Value Branch::Result::*which, Values& values) {
    b_.SetInsertPoint(begin);
    const std::size_t start = mark();
    block(statements);
    for (const Branch::Result& result : branch.results) values.push_back(carried(result.*which, result.result));
    forget(start);
    b_.CreateBr(exit);
    return b_.GetInsertBlock();
  };
  Values from_yes, from_no;
  llvm::BasicBlock* yes_end = side(yes, branch.yes, &Branch::Result::yes, from_yes);
  no->moveAfter(yes_end);
  llvm::BasicBlock* no_end = side(no, branch.no, &Branch::Result::no, from_no);
  exit->moveAfter(no_end);
  b_.SetInsertPoint(exit);
  for (std::size_t i = 0; i < from_yes.size(); ++i) {
    llvm::PHINode* merged = b_.CreatePHI(from_yes[i]->getType(), 2);
    merged->addIncoming(from_yes[i], yes_end);
    merged->addIncoming(from_no[i], no_end);
    define(branch.results[i].result, merged);
  }
}

}  // namespace capibara::cpu
