// Formulas: one LLVM function for each combination of formula, lane width and following sum, called with vectors in
// registers.
#include "backends/cpu/llvm/function_emitter.h"

namespace capibara::cpu {

namespace {

// The formula with one more operand, to which its product is added, or from which it is subtracted, in one rounding.
Function with_sum(const Formula& formula, bool minus) {
  Function body = *formula.body;
  For& loop = std::get<For>(body.body.back().what);
  const Scalar type = body.types[static_cast<std::size_t>(formula.factor_a)];
  Carry addend = loop.carries[0];
  addend.inside = addend.next = body.value(type);
  addend.result = body.value(type);
  loop.carries.push_back(addend);
  Value factor = formula.factor_a;
  if (minus) {
    factor = body.value(type);
    loop.body.push_back({Compute{factor, Op::neg, formula.factor_a}});
  }
  const Value sum = body.value(type);
  loop.body.push_back({Compute{sum, Op::fma, factor, formula.factor_b, addend.inside}});
  loop.carries[0].next = sum;
  return body;
}

}  // namespace

llvm::Value* FunctionEmitter::apply(const Compute& compute, bool vectors, Sum sum, llvm::Value* addend) {
  std::vector<llvm::Value*> operands;
  std::vector<llvm::Type*> types;
  for (Value value : {compute.a, compute.b, compute.c}) {
    if (value != no_value) operands.push_back(vectors ? vector(value) : scalar(value));
  }
  if (addend) operands.push_back(addend);
  for (llvm::Value* operand : operands) types.push_back(operand->getType());
  constexpr const char* endings[] = {"", ".plus", ".minus"};
  const int lanes = vectors ? lanes_ : 1;
  const Formula& formula = function_.formulas[compute.bits];
  const std::string name =
      "formula." + formula.body->name + "." + std::to_string(lanes) + endings[static_cast<int>(sum)];
  llvm::Function* callee = out_->getParent()->getFunction(name);
  if (!callee) {
    auto* signature = llvm::FunctionType::get(types[0], types, false);
    callee = llvm::Function::Create(signature, llvm::GlobalValue::InternalLinkage, name, out_->getParent());
    callee->addFnAttr(llvm::Attribute::NoUnwind);
    pending_.push_back({callee, compute.bits, lanes, sum});
  }
  return b_.CreateCall(callee, operands);
}

// Runs after the function itself: tables of constants are built for one function at a time.
void FunctionEmitter::write_formulas() {
  for (const Pending& each : pending_) {
    const Formula& formula = function_.formulas[each.formula];
    Formula whole = formula;
    if (each.sum != Sum::none) whole.body = std::make_shared<Function>(with_sum(formula, each.sum == Sum::minus));
    FunctionEmitter(source_, *whole.body, each.out, target_).run_formula(loop_of(whole), each.lanes);
  }
}

void FunctionEmitter::run_formula(const For& loop, int lanes) {
  b_.SetInsertPoint(new_block("entry"));
  scopes_.push_back({});
  for (std::size_t i = 0; i + 1 < function_.body.size(); ++i) {
    std::visit([this](const auto& what) { statement(what); }, function_.body[i].what);
  }
  if (lanes > 1) analysis_.enter(loop);
  lanes_ = lanes;
  lanes_level_ = scopes_.size();
  for (std::size_t i = 0; i < loop.carries.size(); ++i) {
    define(loop.carries[i].inside, out_->getArg(static_cast<unsigned>(i)));
  }
  block(loop.body);
  b_.CreateRet(carried(loop.carries[0].next, loop.carries[0].inside));
  finish_table();
}

}  // namespace capibara::cpu
