// Emits long call sequences as a table and one dispatch loop.
//
// The driver of a deep network is thousands of calls in a row. As instructions they would take the code generator
// longer than the regions that they call, which identical layers share.
#include <algorithm>
#include <bit>

#include <llvm/IR/GlobalVariable.h>

#include "backends/cpu/llvm/function_emitter.h"

namespace capibara::cpu {

namespace {

constexpr std::size_t min_table_calls = 8;  // calls

const std::vector<Argument>* arguments_of(const Statement& statement) {
  if (const auto* invoke = std::get_if<Invoke>(&statement.what)) return &invoke->arguments;
  if (const auto* host = std::get_if<Host>(&statement.what)) return &host->arguments;
  return nullptr;
}

}  // namespace

// The number of consecutive calls whose arguments are at static offsets of the function's own parameters.
std::size_t FunctionEmitter::calls_in_a_row(const Block& statements, std::size_t first) const {
  std::size_t end = first;
  for (; end < statements.size(); ++end) {
    const std::vector<Argument>* arguments = arguments_of(statements[end]);
    if (!arguments) break;
    if (!std::all_of(arguments->begin(), arguments->end(), [&](const Argument& argument) {
          return argument.address.terms.empty() &&
                 !function_.buffers[static_cast<std::size_t>(argument.address.buffer)].local;
        })) {
      break;
    }
  }
  return end - first >= min_table_calls ? end - first : 0;
}

// A row of the table of numbers: extent (of a region) or kernel, cost per iteration (0: on this thread), number of
// arguments, then parameter and offset of each. A second table has the regions; null means a kernel on the host.
void FunctionEmitter::call_table(std::span<const Statement> calls) {
  std::vector<llvm::Constant*> regions;
  std::vector<uint64_t> numbers;
  std::vector<uint64_t> parameter(function_.buffers.size());
  for (std::size_t i = 0, next = 0; i < parameter.size(); ++i) parameter[i] = function_.buffers[i].local ? 0 : next++;
  for (const Statement& call : calls) {
    const std::vector<Argument>& arguments = *arguments_of(call);
    if (const auto* invoke = std::get_if<Invoke>(&call.what)) {
      const Function& callee = source_.functions.at(static_cast<std::size_t>(invoke->function));
      regions.push_back(functions_[static_cast<std::size_t>(invoke->function)]);
      numbers.push_back(static_cast<uint64_t>(callee.extent));
      numbers.push_back(runs_in_parallel(callee) ? std::bit_cast<uint64_t>(callee.cost) : 0);
    } else {
      require_process();
      regions.push_back(llvm::ConstantPointerNull::get(b_.getPtrTy()));
      numbers.push_back(static_cast<uint64_t>(std::get<Host>(call.what).kernel));
      numbers.push_back(0);
    }
    numbers.push_back(arguments.size());
    for (const Argument& argument : arguments) {
      numbers.push_back(parameter[static_cast<std::size_t>(argument.address.buffer)]);
      numbers.push_back(static_cast<uint64_t>(argument.address.offset));
    }
  }
  llvm::Type *i64 = b_.getInt64Ty(), *pointer = b_.getPtrTy();
  llvm::Module& module = *out_->getParent();
  auto table = [&](llvm::Constant* contents, const char* name) {
    return new llvm::GlobalVariable(module, contents->getType(), true, llvm::GlobalValue::InternalLinkage, contents,
                                    name);
  };
  llvm::Value* region_table =
      table(llvm::ConstantArray::get(llvm::ArrayType::get(pointer, regions.size()), regions), "regions");
  llvm::Value* number_table = table(llvm::ConstantDataArray::get(context_, numbers), "calls");

  llvm::BasicBlock *before = b_.GetInsertBlock(), *row = new_block("row"), *argument = new_block("argument"),
                   *call = new_block("call");
  llvm::BasicBlock *region = new_block("region"), *here = new_block("here"), *shared = new_block("shared"),
                   *host = new_block("host");
  llvm::BasicBlock *called = new_block("called"), *after = new_block("after");
  b_.CreateBr(row);

  b_.SetInsertPoint(row);
  llvm::PHINode *which = b_.CreatePHI(i64, 2), *cursor = b_.CreatePHI(pointer, 2);
  which->addIncoming(index(0), before);
  cursor->addIncoming(number_table, before);
  auto number = [&](llvm::Value* from, int64_t position) {
    return b_.CreateLoad(i64, b_.CreateConstGEP1_64(i64, from, static_cast<uint64_t>(position)));
  };
  llvm::Value *first = number(cursor, 0), *cost = number(cursor, 1), *count = number(cursor, 2);
  llvm::Value* start = b_.CreateConstGEP1_64(i64, cursor, 3);
  b_.CreateCondBr(b_.CreateICmpEQ(count, index(0)), call, argument);

  b_.SetInsertPoint(argument);
  llvm::PHINode *place = b_.CreatePHI(i64, 2), *reading = b_.CreatePHI(pointer, 2);
  place->addIncoming(index(0), row);
  reading->addIncoming(start, row);
  llvm::Value* buffer = b_.CreateLoad(pointer, b_.CreateGEP(pointer, out_->getArg(1), number(reading, 0)));
  if (arguments_)
    b_.CreateStore(b_.CreateGEP(b_.getInt8Ty(), buffer, number(reading, 1)), b_.CreateGEP(pointer, arguments_, place));
  llvm::Value *next_place = b_.CreateAdd(place, index(1)), *next_reading = b_.CreateConstGEP1_64(i64, reading, 2);
  place->addIncoming(next_place, argument);
  reading->addIncoming(next_reading, argument);
  b_.CreateCondBr(b_.CreateICmpEQ(next_place, count), call, argument);

  b_.SetInsertPoint(call);
  llvm::PHINode* end = b_.CreatePHI(pointer, 2);
  end->addIncoming(start, row);
  end->addIncoming(next_reading, argument);
  llvm::Value* given = arguments_ ? arguments_ : llvm::ConstantPointerNull::get(b_.getPtrTy());
  llvm::Value* callee = b_.CreateLoad(pointer, b_.CreateGEP(pointer, region_table, which));
  b_.CreateCondBr(b_.CreateIsNull(callee), host, region);

  b_.SetInsertPoint(region);
  b_.CreateCondBr(b_.CreateICmpEQ(cost, index(0)), here, shared);
  b_.SetInsertPoint(here);
  llvm::Value* status_here = b_.CreateCall(out_->getFunctionType(), callee, {out_->getArg(0), given, index(0), first});
  b_.CreateBr(called);
  b_.SetInsertPoint(shared);
  llvm::Value* status_shared = call_parallel(callee, given, first, b_.CreateBitCast(cost, b_.getDoubleTy()));
  b_.CreateBr(called);
  b_.SetInsertPoint(host);
  llvm::Value* status_host = standalone_ ? b_.getInt32(0) : call_host(b_.CreateTrunc(first, b_.getInt32Ty()), given);
  b_.CreateBr(called);

  b_.SetInsertPoint(called);
  llvm::PHINode* status = b_.CreatePHI(b_.getInt32Ty(), 3);
  status->addIncoming(status_here, here);
  status->addIncoming(status_shared, shared);
  status->addIncoming(status_host, host);
  leave_if(b_.CreateICmpNE(status, b_.getInt32(0)), status);
  llvm::Value* next = b_.CreateAdd(which, index(1));
  which->addIncoming(next, b_.GetInsertBlock());
  cursor->addIncoming(end, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpEQ(next, index(static_cast<int64_t>(regions.size()))), after, row);
  b_.SetInsertPoint(after);
}

}  // namespace capibara::cpu
