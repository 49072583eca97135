// Operations on scalars and on vectors: one instruction, or a short sequence, for each Op.
#include <bit>
#include <cmath>
#include <iterator>
#include <optional>
#include <stdexcept>

#include <llvm/IR/Intrinsics.h>

#include "backends/cpu/llvm/function_emitter.h"

namespace capibara::cpu {

namespace {

constexpr const char* math_symbols[] = {
    "sin",  "cos", "tan",  "asin", "acos",  "atan", "atan2", "sinh", "cosh", "asinh",  "acosh",     "atanh", "pow",
    "cbrt", "erf", "erfc", "log",  "log1p", "exp",  "expm1", "tanh", "fmod", "lgamma", "nextafter", "round"};
static_assert(std::size(math_symbols) == static_cast<std::size_t>(Math::round) + 1);

llvm::CmpInst::Predicate predicate(Op op, bool floats) {
  using P = llvm::CmpInst;
  switch (op) {
    case Op::eq:
      return floats ? P::FCMP_OEQ : P::ICMP_EQ;
    case Op::ne:
      return floats ? P::FCMP_UNE : P::ICMP_NE;
    case Op::lt:
      return floats ? P::FCMP_OLT : P::ICMP_SLT;
    case Op::le:
      return floats ? P::FCMP_OLE : P::ICMP_SLE;
    case Op::gt:
      return floats ? P::FCMP_OGT : P::ICMP_SGT;
    case Op::ge:
      return floats ? P::FCMP_OGE : P::ICMP_SGE;
    case Op::lt_unsigned:
      return P::ICMP_ULT;
    case Op::le_unsigned:
      return P::ICMP_ULE;
    case Op::gt_unsigned:
      return P::ICMP_UGT;
    default:
      return P::ICMP_UGE;
  }
}

}  // namespace

void FunctionEmitter::statement(const Compute& compute) {
  if (is_defined(compute.result) || analysis_.is_fused(compute.result)) return;
  define(compute.result, operation(compute, lanes_ > 1 && analysis_.kind(compute.result) == Kind::varying));
}

llvm::Value* FunctionEmitter::combine(Op op, llvm::Value* a, llvm::Value* b) {
  using I = llvm::Intrinsic::ID;
  auto choose = [&](I intrinsic) { return b_.CreateBinaryIntrinsic(intrinsic, a, b); };
  const bool floats = a->getType()->isFPOrFPVectorTy();
  switch (op) {
    case Op::add:
      return floats ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
    case Op::mul:
      return floats ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
    case Op::minimum:
      return choose(llvm::Intrinsic::minimum);
    case Op::maximum:
      return choose(llvm::Intrinsic::maximum);
    case Op::bit_and:
      return b_.CreateAnd(a, b);
    case Op::bit_or:
      return b_.CreateOr(a, b);
    case Op::bit_xor:
      return b_.CreateXor(a, b);
    case Op::lt:
      return choose(llvm::Intrinsic::smin);
    case Op::gt:
      return choose(llvm::Intrinsic::smax);
    case Op::lt_unsigned:
      return choose(llvm::Intrinsic::umin);
    case Op::gt_unsigned:
      return choose(llvm::Intrinsic::umax);
    default:
      throw std::runtime_error("emit: lanes of " + function_.name + " cannot be joined by this operation");
  }
}

// The value's number, if it is a normal constant.
std::optional<double> FunctionEmitter::known_number(Value value) const {
  const Compute* found = analysis_.definition(value);
  if (!found || found->op != Op::constant) return std::nullopt;
  double number = 0;
  if (type(value) == Scalar::f64)
    number = std::bit_cast<double>(found->bits);
  else if (type(value) == Scalar::f32)
    number = std::bit_cast<float>(static_cast<uint32_t>(found->bits));
  return std::isnormal(number) ? std::optional(number) : std::nullopt;
}

// x > k ? k : x and x < k ? k : x are one instruction if min and max propagate NaN, as on aarch64; so is the second of
// two such selects, x < low ? low : (x > high ? high : x).
llvm::Value* FunctionEmitter::bound(const Compute& choice, bool vectors) {
  auto test_of = [&](const Compute& select) -> const Compute* {
    const Compute* test = analysis_.definition(select.a);
    return test && (test->op == Op::gt || test->op == Op::lt) && test->b == select.b ? test : nullptr;
  };
  const std::optional<double> limit = known_number(choice.b);
  const Compute* test = test_of(choice);
  if (is_x86(target_) || !limit || !test) return nullptr;
  if (test->a != choice.c) {
    const Compute* inner = analysis_.definition(choice.c);
    const Compute* other = inner && inner->op == Op::select ? test_of(*inner) : nullptr;
    const std::optional<double> further = inner ? known_number(inner->b) : std::nullopt;
    if (!other || !further || other->a != test->a || inner->c != test->a || other->op == test->op) return nullptr;
    if (test->op == Op::lt ? *limit > *further : *limit < *further) return nullptr;
  }
  auto operand = [&](Value value) { return vectors ? vector(value) : scalar(value); };
  return combine(test->op == Op::gt ? Op::minimum : Op::maximum, operand(choice.c), operand(choice.b));
}

// On aarch64 the sum overwrites the register of c. A constant would first be copied there, which occupies an arithmetic
// pipe and a register port; loading it each time needs neither.
llvm::Value* FunctionEmitter::multiply_add(llvm::Value* a, llvm::Value* b, llvm::Value* c) {
  auto* known = llvm::dyn_cast<llvm::Constant>(c);
  if (known && c->getType()->isVectorTy() && !is_x86(target_)) c = from_table(known);
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

// A splat constant, loaded from a table that repeats it for each register of the vector: the table is not marked
// constant, so that loads stay inside loops, and no two registers load from the same address.
llvm::Value* FunctionEmitter::from_table(llvm::Constant* splat) {
  const auto bytes = splat->getType()->getPrimitiveSizeInBits().getFixedValue() / 8;
  if (!splat->getSplatValue() || bytes % 16 != 0) return splat;
  if (!table_)
    table_ = llvm::cast<llvm::GlobalVariable>(out_->getParent()->getOrInsertGlobal("constants", b_.getInt8Ty()));
  auto [it, inserted] = table_places_.try_emplace(splat, table_bytes_);
  if (inserted) {
    table_entries_.push_back(splat);
    table_bytes_ += bytes;
  }
  return b_.CreateAlignedLoad(splat->getType(), b_.CreateConstGEP1_64(b_.getInt8Ty(), table_, it->second),
                              llvm::Align(16));
}

void FunctionEmitter::finish_table() {
  if (!table_) return;
  llvm::Constant* all = llvm::ConstantStruct::getAnon(table_entries_, true);  // packed: all sizes are multiples of 16
  const std::string name = out_->getName().str() + ".constants";
  auto* table = llvm::cast<llvm::GlobalVariable>(out_->getParent()->getOrInsertGlobal(name, all->getType()));
  table->setInitializer(all);
  table->setConstant(false);
  table->setLinkage(llvm::GlobalValue::PrivateLinkage);
  table->setAlignment(llvm::Align(16));
  table_->replaceAllUsesWith(table);
  table_->eraseFromParent();
}

// Powers of two have exact reciprocals.
llvm::Value* FunctionEmitter::divide(Value divisor, llvm::Value* a, llvm::Value* b) {
  int exponent = 0;
  const std::optional<double> number = known_number(divisor);
  const bool exact = number && std::abs(std::frexp(*number, &exponent)) == 0.5 && std::abs(exponent) < 120;
  return exact ? b_.CreateFMul(a, llvm::ConstantFP::get(a->getType(), 1 / *number)) : b_.CreateFDiv(a, b);
}

llvm::Value* FunctionEmitter::operation(const Compute& compute, bool vectors) {
  const Scalar to = type(compute.result);
  if (compute.op == Op::constant) return constant(to, compute.bits);
  auto operand = [&](Value value) { return vectors ? vector(value) : scalar(value); };
  auto wide = [&](Scalar element) { return vectors ? widened(type_of(element)) : type_of(element); };

  if (const Compute* product = analysis_.product_of(compute); product && product->op == Op::apply) {
    const bool first = compute.a == product->result;
    llvm::Value* addend = operand(first ? compute.b : compute.a);
    if (compute.op == Op::add) return apply(*product, vectors, Sum::plus, addend);
    if (first) return apply(*product, vectors, Sum::plus, b_.CreateFNeg(addend));
    return apply(*product, vectors, Sum::minus, addend);
  }
  if (const Compute* product = analysis_.product_of(compute)) {
    llvm::Value *x = operand(product->a), *y = operand(product->b), *z;
    const bool first = compute.a == product->result;
    if (compute.op == Op::add) {
      z = operand(first ? compute.b : compute.a);
    } else if (first) {
      z = b_.CreateFNeg(operand(compute.b));
    } else {
      x = b_.CreateFNeg(x);
      z = operand(compute.a);
    }
    return multiply_add(x, y, z);
  }
  if (compute.op == Op::apply) return apply(compute, vectors);
  if (compute.op == Op::select) {
    if (llvm::Value* bounded = bound(compute, vectors)) return bounded;
    llvm::Value* condition =
        vectors && analysis_.kind(compute.a) != Kind::uniform ? vector(compute.a) : scalar(compute.a);
    return b_.CreateSelect(condition, operand(compute.b), operand(compute.c));
  }

  llvm::Value* a = operand(compute.a);
  llvm::Value* b = compute.b == no_value ? nullptr : operand(compute.b);
  const Scalar from = type(compute.a);
  const bool floats = is_float(from);
  if (floats && byte_size(from) == 2 && compute.op != Op::float_convert && compute.op != Op::bitcast) {
    throw std::runtime_error("emit: " + function_.name + " computes in a type of 16 bits that exists in memory only");
  }
  auto unary = [&](llvm::Intrinsic::ID intrinsic) { return b_.CreateUnaryIntrinsic(intrinsic, a); };
  switch (compute.op) {
    case Op::add:
      return floats ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
    case Op::sub:
      return floats ? b_.CreateFSub(a, b) : b_.CreateSub(a, b);
    case Op::mul:
      return floats ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
    case Op::neg:
      return floats ? b_.CreateFNeg(a) : b_.CreateNeg(a);
    case Op::div:
      return divide(compute.b, a, b);
    case Op::fma:
      return multiply_add(a, b, operand(compute.c));
    case Op::sqrt:
      return unary(llvm::Intrinsic::sqrt);
    case Op::abs:
      return unary(llvm::Intrinsic::fabs);
    case Op::floor:
      return unary(llvm::Intrinsic::floor);
    case Op::ceil:
      return unary(llvm::Intrinsic::ceil);
    case Op::truncate:
      return unary(llvm::Intrinsic::trunc);
    case Op::round_even:
      return unary(llvm::Intrinsic::roundeven);
    case Op::copysign:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, a, b);
    case Op::minimum:
    case Op::maximum:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
      return combine(compute.op, a, b);
    case Op::shift_left:
      return b_.CreateShl(a, b);
    case Op::shift_right_logical:
      return b_.CreateLShr(a, b);
    case Op::shift_right_arithmetic:
      return b_.CreateAShr(a, b);
    case Op::divide_signed:
      return b_.CreateSDiv(a, b);
    case Op::divide_unsigned:
      return b_.CreateUDiv(a, b);
    case Op::remainder_signed:
      return b_.CreateSRem(a, b);
    case Op::remainder_unsigned:
      return b_.CreateURem(a, b);
    case Op::leading_zeros:
      return b_.CreateIntrinsic(llvm::Intrinsic::ctlz, {a->getType()}, {a, b_.getFalse()});
    case Op::population_count:
      return unary(llvm::Intrinsic::ctpop);
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge:
    case Op::lt_unsigned:
    case Op::le_unsigned:
    case Op::gt_unsigned:
    case Op::ge_unsigned:
      return b_.CreateCmp(predicate(compute.op, floats), a, b);
    case Op::sign_extend:
      return b_.CreateSExt(a, wide(to));
    case Op::zero_extend:
      return b_.CreateZExt(a, wide(to));
    case Op::narrow:
      return b_.CreateTrunc(a, wide(to));
    case Op::signed_to_float:
    case Op::unsigned_to_float:
      return from_integer(compute.op == Op::signed_to_float, a, type_of(to));
    case Op::float_to_signed:
    case Op::float_to_unsigned:
      return to_integer(compute.op == Op::float_to_signed, a, type_of(to));
    case Op::float_convert:
      return convert_float(from, to, a);
    case Op::bitcast:
      return b_.CreateBitCast(a, wide(to));
    case Op::call:
      return math(static_cast<Math>(compute.bits), to, a, b);
    case Op::constant:
    case Op::apply:
    case Op::select:
      break;
  }
  throw std::runtime_error("emit: unknown operation in " + function_.name);
}

llvm::Value* FunctionEmitter::math(Math function, Scalar scalar_type, llvm::Value* a, llvm::Value* b) {
  llvm::Type* element = type_of(scalar_type);
  std::string symbol = math_symbols[static_cast<std::size_t>(function)];
  if (scalar_type == Scalar::f32) symbol += "f";
  auto* signature = b ? llvm::FunctionType::get(element, {element, element}, false)
                      : llvm::FunctionType::get(element, {element}, false);
  llvm::FunctionCallee callee = out_->getParent()->getOrInsertFunction(symbol, signature);
  if (auto* declared = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    declared->addFnAttr(llvm::Attribute::NoUnwind);
    declared->setDoesNotAccessMemory();
  }
  auto call = [&](llvm::Value* x, llvm::Value* y) {
    return y ? b_.CreateCall(callee, {x, y}) : b_.CreateCall(callee, {x});
  };
  if (!a->getType()->isVectorTy()) return call(a, b);
  // A loop over the lanes in memory: unrolled calls took the code generator longer than the rest of a region.
  llvm::IRBuilder<> top(&out_->getEntryBlock(), out_->getEntryBlock().begin());
  llvm::Value* lanes = top.CreateAlloca(a->getType());
  llvm::Value* others = b ? top.CreateAlloca(b->getType()) : nullptr;
  b_.CreateStore(a, lanes);
  if (b) b_.CreateStore(b, others);
  llvm::BasicBlock *before = b_.GetInsertBlock(), *body = new_block("lane"), *after = new_block("lanes");
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  llvm::PHINode* lane = b_.CreatePHI(b_.getInt64Ty(), 2);
  lane->addIncoming(index(0), before);
  llvm::Value* place = b_.CreateGEP(element, lanes, lane);
  llvm::Value* other = b ? b_.CreateLoad(element, b_.CreateGEP(element, others, lane)) : nullptr;
  b_.CreateStore(call(b_.CreateLoad(element, place), other), place);
  llvm::Value* next = b_.CreateAdd(lane, index(1));
  lane->addIncoming(next, body);
  b_.CreateCondBr(b_.CreateICmpEQ(next, index(lanes_)), after, body);
  b_.SetInsertPoint(after);
  return b_.CreateLoad(a->getType(), lanes);
}

}  // namespace capibara::cpu
