// Functions and their values: entry and exit, calls, and the registers of values.
#include "backends/cpu/llvm/function_emitter.h"

#include <algorithm>
#include <stdexcept>

#include "backends/cpu/llvm/emit.h"

namespace capibara::cpu {

namespace {

bool fuses(const Target& target) { return !is_x86(target) || has_feature(target, "+fma"); }

}  // namespace

FunctionEmitter::FunctionEmitter(const Module& source, std::size_t index, std::span<llvm::Function* const> functions,
                                 const Target& target, bool standalone)
    : source_(source),
      standalone_(standalone),
      function_(source.functions[index]),
      functions_(functions),
      target_(target),
      out_(functions[index]),
      context_(functions[index]->getContext()),
      b_(context_),
      analysis_(function_, target.vector_bytes, fuses(target)),
      slots_(function_.types.size()) {}

FunctionEmitter::FunctionEmitter(const Module& source, const Function& body, llvm::Function* out, const Target& target)
    : source_(source),
      function_(body),
      target_(target),
      out_(out),
      context_(out->getContext()),
      b_(context_),
      analysis_(function_, target.vector_bytes, fuses(target)),
      slots_(function_.types.size()) {}

void FunctionEmitter::run() {
  llvm::BasicBlock* entry = new_block("entry");
  exit_ = new_block("exit");  // in the function from the start: destroyed with it if emission fails
  b_.SetInsertPoint(exit_);
  status_ = b_.CreatePHI(b_.getInt32Ty(), 4);
  b_.CreateRet(status_);

  b_.SetInsertPoint(entry);
  scopes_.push_back({});
  describe_buffers();
  if (analysis_.max_arguments() > 0) {
    arguments_ = b_.CreateAlloca(llvm::ArrayType::get(b_.getPtrTy(), analysis_.max_arguments()));
  }
  if (analysis_.polls() && !standalone_) ask_ = b_.CreateLoad(b_.getPtrTy(), out_->getArg(0));
  if (function_.parallel) {
    llvm::BasicBlock* work = new_block("work");
    status_->addIncoming(b_.getInt32(0), b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpSLT(out_->getArg(2), out_->getArg(3)), work, exit_);
    b_.SetInsertPoint(work);
  }
  block(function_.body);
  status_->addIncoming(b_.getInt32(0), b_.GetInsertBlock());
  b_.CreateBr(exit_);
  exit_->moveAfter(&out_->back());
  finish_table();
  write_formulas();
}

// ---- values --------------------------------------------------------------------------------------------------------

llvm::Type* FunctionEmitter::type_of(Scalar type) {
  switch (type) {
    case Scalar::i1:
      return b_.getInt1Ty();
    case Scalar::i8:
      return b_.getInt8Ty();
    case Scalar::i16:
    case Scalar::f16:
    case Scalar::bf16:
      return b_.getInt16Ty();
    case Scalar::i32:
      return b_.getInt32Ty();
    case Scalar::i64:
      return b_.getInt64Ty();
    case Scalar::f32:
      return b_.getFloatTy();
    case Scalar::f64:
      return b_.getDoubleTy();
  }
  throw std::runtime_error("emit: unknown scalar type");
}

llvm::Type* FunctionEmitter::memory_type_of(Scalar type) { return type == Scalar::i1 ? b_.getInt8Ty() : type_of(type); }

llvm::Value* FunctionEmitter::constant(Scalar type, uint64_t bits) {
  if (type == Scalar::f32)
    return llvm::ConstantFP::get(context_,
                                 llvm::APFloat(llvm::APFloat::IEEEsingle(), llvm::APInt(32, bits & 0xffffffffu)));
  if (type == Scalar::f64)
    return llvm::ConstantFP::get(context_, llvm::APFloat(llvm::APFloat::IEEEdouble(), llvm::APInt(64, bits)));
  const int width = type == Scalar::i1 ? 1 : 8 * byte_size(type);
  if (width < 64) bits &= (uint64_t{1} << width) - 1;
  return llvm::ConstantInt::get(type_of(type), bits);
}

void FunctionEmitter::define(Value value, llvm::Value* what) {
  slots_[static_cast<std::size_t>(value)] = {what, scopes_.size()};
  defined_.push_back(value);
}

void FunctionEmitter::forget(std::size_t mark) {
  for (; defined_.size() > mark; defined_.pop_back()) slots_[static_cast<std::size_t>(defined_.back())] = {};
}

llvm::Value* FunctionEmitter::scalar(Value value) {
  llvm::Value* what = value == no_value ? nullptr : slots_[static_cast<std::size_t>(value)].value;
  if (!what)
    throw std::runtime_error("emit: value " + std::to_string(value) + " of " + function_.name +
                             " is used before it is defined");
  if (what->getType()->isVectorTy())
    throw std::runtime_error("emit: value " + std::to_string(value) + " of " + function_.name +
                             " differs between lanes");
  return what;
}

llvm::Value* FunctionEmitter::splat(llvm::Value* value) {
  return b_.CreateVectorSplat(static_cast<unsigned>(lanes_), value);
}

llvm::Value* FunctionEmitter::vector(Value value) {
  llvm::Value* what = value == no_value ? nullptr : slots_[static_cast<std::size_t>(value)].value;
  if (what && what->getType()->isVectorTy()) return what;
  what = scalar(value);
  if (analysis_.kind(value) == Kind::affine) {
    std::vector<llvm::Constant*> steps;
    for (int lane = 0; lane < lanes_; ++lane) {
      steps.push_back(
          llvm::cast<llvm::Constant>(constant(type(value), static_cast<uint64_t>(analysis_.step(value) * lane))));
    }
    return b_.CreateAdd(splat(what), llvm::ConstantVector::get(steps));
  }
  if (llvm::isa<llvm::Constant>(what)) return splat(what);
  // Before the loop that runs in lanes, or before the first loop inside it that does not change the value.
  const std::size_t level = std::max(slots_[static_cast<std::size_t>(value)].level, lanes_level_);
  if (level >= scopes_.size()) return splat(what);
  llvm::Value*& known = scopes_[level].splats[value];
  if (!known) {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(scopes_[level].before);
    known = splat(what);
  }
  return known;
}

llvm::BasicBlock* FunctionEmitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(context_, name, out_);
}

void FunctionEmitter::leave_if(llvm::Value* condition, llvm::Value* status) {
  llvm::BasicBlock* next = new_block("go");
  status_->addIncoming(status, b_.GetInsertBlock());
  b_.CreateCondBr(condition, exit_, next);
  b_.SetInsertPoint(next);
}

// ---- statements that call ------------------------------------------------------------------------------------------

void FunctionEmitter::block(const Block& statements) {
  const Block* outer = std::exchange(here_, &statements);
  const std::size_t outer_position = position_;
  for (position_ = 0; position_ < statements.size(); ++position_) {
    const std::size_t position = position_;
    if (const std::size_t count = lanes_ == 1 ? calls_in_a_row(statements, position) : 0) {
      call_table(std::span(statements).subspan(position, count));
      position_ = position + count - 1;
      continue;
    }
    std::visit([this](const auto& what) { statement(what); }, statements[position].what);
    position_ = position;
  }
  here_ = outer;
  position_ = outer_position;
}

void FunctionEmitter::poll() {
  if (standalone_) return;
  llvm::Value* flag = b_.CreateLoad(b_.getInt32Ty(), ask_, true);
  llvm::BasicBlock *asking = new_block("ask"), *next = new_block("go");
  b_.CreateCondBr(b_.CreateICmpNE(flag, b_.getInt32(0)), asking, next);
  b_.SetInsertPoint(asking);
  llvm::Value* status =
      call_host(b_.getInt32(static_cast<uint32_t>(poll_kernel)), llvm::ConstantPointerNull::get(b_.getPtrTy()));
  status_->addIncoming(status, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpNE(status, b_.getInt32(0)), exit_, next);
  b_.SetInsertPoint(next);
}

void FunctionEmitter::require_process() const {
  if (standalone_) throw std::runtime_error("emit: " + function_.name + " calls a kernel, and an object holds none");
}

llvm::Value* FunctionEmitter::call_host(llvm::Value* kernel, llvm::Value* arguments) {
  require_process();
  llvm::Value* runtime = out_->getArg(0);
  auto* signature = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getInt32Ty(), b_.getPtrTy()}, false);
  llvm::Value* run = b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getPtrTy(), runtime, 2));
  return b_.CreateCall(signature, run, {runtime, kernel, arguments});
}

llvm::Value* FunctionEmitter::call_parallel(llvm::Value* function, llvm::Value* arguments, llvm::Value* extent,
                                            llvm::Value* cost) {
  if (standalone_)
    return b_.CreateCall(out_->getFunctionType(), function, {out_->getArg(0), arguments, index(0), extent});
  llvm::Value* runtime = out_->getArg(0);
  auto* signature = llvm::FunctionType::get(
      b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty(), b_.getDoubleTy()}, false);
  llvm::Value* run = b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getPtrTy(), runtime, 1));
  return b_.CreateCall(signature, run, {runtime, function, arguments, extent, cost});
}

llvm::Value* FunctionEmitter::argument_array(const std::vector<Argument>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Address& address = arguments[i].address;
    llvm::Value* given = pointer(address.buffer, b_.getInt8Ty(), address.terms, scopes_.size());
    if (address.offset != 0) given = b_.CreateGEP(b_.getInt8Ty(), given, index(address.offset));
    b_.CreateStore(given, b_.CreateConstGEP1_64(b_.getPtrTy(), arguments_, i));
  }
  return arguments_ ? arguments_ : llvm::ConstantPointerNull::get(b_.getPtrTy());
}

void FunctionEmitter::statement(const Invoke& invoke) {
  const Function& callee = source_.functions.at(static_cast<std::size_t>(invoke.function));
  llvm::Function* target = functions_[static_cast<std::size_t>(invoke.function)];
  llvm::Value* arguments = argument_array(invoke.arguments);
  llvm::Value* status =
      runs_in_parallel(callee)
          ? call_parallel(target, arguments, index(callee.extent), llvm::ConstantFP::get(b_.getDoubleTy(), callee.cost))
          : b_.CreateCall(target, {out_->getArg(0), arguments, index(0), index(callee.extent)});
  leave_if(b_.CreateICmpNE(status, b_.getInt32(0)), status);
}

void FunctionEmitter::statement(const Host& host) {
  llvm::Value* status = call_host(b_.getInt32(static_cast<uint32_t>(host.kernel)), argument_array(host.arguments));
  leave_if(b_.CreateICmpNE(status, b_.getInt32(0)), status);
}

}  // namespace capibara::cpu
