// A C function around a driver: its constants, its pointers, the floating-point mode, and dispatch between targets.
//
//   void name(const void* const* inputs, void* const* outputs, void* arena) {
//     buffers = {inputs..., constants..., outputs that the driver writes..., arena};
//     denormal numbers are flushed to zero, as in jax on the CPU;
//     driver(0, buffers, 0, 0);
//     the floating-point mode is restored; results that are inputs, constants or other results are copied;
//   }
#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "backends/cpu/llvm/emit.h"
#include "backends/cpu/llvm/function_emitter.h"

namespace capibara::cpu {

namespace {

constexpr uint64_t flushed_x86 = 0x8040;                 // MXCSR: flush to zero, denormals are zero
constexpr uint64_t flushed_aarch64 = uint64_t{1} << 24;  // FPCR.FZ

class ObjectEmitter {
 public:
  ObjectEmitter(const CFunction& function, llvm::Module& out)
      : function_(function), out_(out), b_(out.getContext()), pointer_(b_.getPtrTy()) {}

  // Adds code for one more target; the last one that the processor supports is run.
  void add(const Module& module, const Target& target) {
    llvm::Function* driver = emit_functions(module, target, out_, true);
    driver->setLinkage(llvm::GlobalValue::InternalLinkage);
    const std::string number = function_.name + ".level" + std::to_string(drivers_.size()) + ".";
    // Marks the functions added for this target, and renames them to free their names for the next one.
    for (llvm::Function& each : out_) {
      if (each.isDeclaration() || each.hasFnAttribute("target-cpu")) continue;
      mark(each, target);
      each.setName(number + each.getName());
    }
    for (llvm::GlobalVariable& each : out_.globals()) {
      if (!each.getName().starts_with(function_.name)) each.setName(number + each.getName());
    }
    drivers_.push_back(driver);
    targets_.push_back(&target);
  }

  void finish() {
    std::vector<llvm::Type*> parameters(function_.takes_weights ? 4 : 3, pointer_);
    auto* signature = llvm::FunctionType::get(b_.getVoidTy(), parameters, false);
    auto* entry = llvm::Function::Create(signature, llvm::GlobalValue::ExternalLinkage, function_.name, out_);
    entry->addFnAttr(llvm::Attribute::NoUnwind);
    mark(*entry, *targets_[0]);
    b_.SetInsertPoint(llvm::BasicBlock::Create(out_.getContext(), "entry", entry));
    std::vector<llvm::Value*> buffers;
    for (std::size_t i = 0; i < function_.inputs; ++i) buffers.push_back(element(entry->getArg(0), i));
    std::vector<llvm::Value*> constants, results;
    for (const CFunction::Constant& each : function_.constants) {
      constants.push_back(each.in_weights < 0 ? constant(each.bytes)
                                              : b_.CreateConstGEP1_64(b_.getInt8Ty(), entry->getArg(3),
                                                                      static_cast<uint64_t>(each.in_weights)));
    }
    buffers.insert(buffers.end(), constants.begin(), constants.end());
    for (std::size_t i = 0; i < function_.outputs.size(); ++i) {
      results.push_back(element(entry->getArg(1), i));
      if (function_.outputs[i].from == CFunction::Output::From::driver) buffers.push_back(results.back());
    }
    buffers.push_back(entry->getArg(2));
    llvm::Value* array = b_.CreateAlloca(llvm::ArrayType::get(pointer_, buffers.size()));
    for (std::size_t i = 0; i < buffers.size(); ++i)
      b_.CreateStore(buffers[i], b_.CreateConstGEP1_64(pointer_, array, i));
    llvm::Value* mode = float_mode();
    set_float_mode(b_.CreateOr(mode, llvm::ConstantInt::get(mode->getType(), flush_bits())));
    b_.CreateCall(drivers_[0]->getFunctionType(), chosen_driver(),
                  {llvm::ConstantPointerNull::get(pointer_), array, b_.getInt64(0), b_.getInt64(0)});
    set_float_mode(mode);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const CFunction::Output& output = function_.outputs[i];
      if (output.from == CFunction::Output::From::driver || output.bytes == 0) continue;
      llvm::Value* from = output.from == CFunction::Output::From::input      ? buffers[output.index]
                          : output.from == CFunction::Output::From::constant ? constants[output.index]
                                                                             : results[output.index];
      b_.CreateMemCpy(results[i], llvm::MaybeAlign(1), from, llvm::MaybeAlign(1), static_cast<uint64_t>(output.bytes));
    }
    b_.CreateRetVoid();
  }

 private:
  bool x86() const { return is_x86(*targets_[0]); }
  uint64_t flush_bits() const { return x86() ? flushed_x86 : flushed_aarch64; }

  static void mark(llvm::Function& function, const Target& target) {
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", llvm::join(target.features, ","));
  }

  llvm::Value* element(llvm::Value* array, std::size_t i) {
    return b_.CreateLoad(pointer_, b_.CreateConstGEP1_64(pointer_, array, i));
  }

  llvm::Value* constant(std::string_view bytes) {
    llvm::Constant* data = llvm::ConstantDataArray::getString(out_.getContext(), {bytes.data(), bytes.size()}, false);
    auto* global = new llvm::GlobalVariable(out_, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data,
                                            function_.name + ".constant");
    global->setAlignment(llvm::Align(64));
    return global;
  }

  llvm::Value* float_mode() {
    if (!x86()) return b_.CreateIntrinsic(llvm::Intrinsic::aarch64_get_fpcr, {}, {});
    llvm::Value* room = b_.CreateAlloca(b_.getInt32Ty());
    b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_stmxcsr, {}, {room});
    return b_.CreateLoad(b_.getInt32Ty(), room);
  }
  void set_float_mode(llvm::Value* mode) {
    if (!x86()) {
      b_.CreateIntrinsic(llvm::Intrinsic::aarch64_set_fpcr, {}, {mode});
      return;
    }
    llvm::Value* room = b_.CreateAlloca(b_.getInt32Ty());
    b_.CreateStore(mode, room);
    b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_ldmxcsr, {}, {room});
  }

  // ---- dispatch between several targets, for x86_64 only -----------------------------------------------------------

  // Selected by a number that is set when the object is loaded.
  llvm::Value* chosen_driver() {
    if (drivers_.size() == 1) return drivers_[0];
    auto* level = new llvm::GlobalVariable(out_, b_.getInt32Ty(), false, llvm::GlobalValue::InternalLinkage,
                                           b_.getInt32(0), function_.name + ".level");
    llvm::Value* number = b_.CreateLoad(b_.getInt32Ty(), level);
    llvm::Value* driver = drivers_[0];
    for (std::size_t i = 1; i < drivers_.size(); ++i)
      driver = b_.CreateSelect(b_.CreateICmpEQ(number, b_.getInt32(static_cast<uint32_t>(i))), drivers_[i], driver);
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    write_choice(level);
    return driver;
  }

  // CPUID: `leaf` and subleaf 0 in eax and ecx; returns one of the four result registers.
  llvm::Value* cpuid(uint32_t leaf, unsigned which) {
    llvm::Type* word = b_.getInt32Ty();
    auto* registers = llvm::StructType::get(word, word, word, word);
    auto* signature = llvm::FunctionType::get(registers, {word, word}, false);
    auto* code = llvm::InlineAsm::get(signature, "cpuid", "={ax},={bx},={cx},={dx},0,2", true);
    return b_.CreateExtractValue(b_.CreateCall(code, {b_.getInt32(leaf), b_.getInt32(0)}), which);
  }
  // XCR0: the registers that the kernel saves.
  llvm::Value* saved_state() {
    llvm::Type* word = b_.getInt32Ty();
    auto* signature = llvm::FunctionType::get(llvm::StructType::get(word, word), {word}, false);
    auto* code = llvm::InlineAsm::get(signature, "xgetbv", "={ax},={dx},{cx}", true);
    return b_.CreateExtractValue(b_.CreateCall(code, {b_.getInt32(0)}), 0);
  }
  llvm::Value* has_all(llvm::Value* word, uint32_t bits) {
    return b_.CreateICmpEQ(b_.CreateAnd(word, b_.getInt32(bits)), b_.getInt32(bits));
  }

  void write_choice(llvm::GlobalVariable* level) {
    enum : unsigned { eax, ebx, ecx };
    constexpr uint32_t fma = 1u << 12, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;  // leaf 1, ecx
    constexpr uint32_t bmi = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8;                        // leaf 7, ebx
    constexpr uint32_t avx512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;        // F DQ CD BW VL
    constexpr uint32_t vectors = 6, wide_vectors = 0xe6;                                     // XCR0
    auto* choose = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), false),
                                          llvm::GlobalValue::InternalLinkage, function_.name + ".choose", out_);
    choose->addFnAttr(llvm::Attribute::NoUnwind);
    auto block = [&](const char* name) { return llvm::BasicBlock::Create(out_.getContext(), name, choose); };
    llvm::BasicBlock *entry = block("entry"), *has_leaf = block("leaf"), *has_avx = block("avx"), *exit = block("exit");
    b_.SetInsertPoint(entry);
    b_.CreateCondBr(b_.CreateICmpUGE(cpuid(0, eax), b_.getInt32(7)), has_leaf, exit);
    b_.SetInsertPoint(has_leaf);
    b_.CreateCondBr(has_all(cpuid(1, ecx), fma | osxsave | avx | f16c), has_avx, exit);
    b_.SetInsertPoint(has_avx);
    llvm::Value *extensions = cpuid(7, ebx), *state = saved_state(), *number = b_.getInt32(0);
    for (std::size_t i = 1; i < targets_.size(); ++i) {
      const bool wide = targets_[i]->vector_bytes == 64;
      llvm::Value* has = b_.CreateAnd(has_all(extensions, bmi | avx2 | bmi2 | (wide ? avx512 : 0)),
                                      has_all(state, wide ? wide_vectors : vectors));
      number = b_.CreateSelect(has, b_.getInt32(static_cast<uint32_t>(i)), number);
    }
    b_.CreateStore(number, level);
    b_.CreateBr(exit);
    b_.SetInsertPoint(exit);
    b_.CreateRetVoid();

    auto* row = llvm::StructType::get(b_.getInt32Ty(), pointer_, pointer_);
    llvm::Constant* entry_of_list =
        llvm::ConstantStruct::get(row, {b_.getInt32(65535), choose, llvm::ConstantPointerNull::get(pointer_)});
    auto* list = llvm::ArrayType::get(row, 1);
    new llvm::GlobalVariable(out_, list, false, llvm::GlobalValue::AppendingLinkage,
                             llvm::ConstantArray::get(list, {entry_of_list}), "llvm.global_ctors");
  }

  const CFunction& function_;
  llvm::Module& out_;
  llvm::IRBuilder<> b_;
  llvm::PointerType* pointer_;
  std::vector<llvm::Function*> drivers_;
  std::vector<const Target*> targets_;
};

}  // namespace

std::unique_ptr<llvm::Module> emit_object(const Module& module, const CFunction& function,
                                          std::span<const Target> targets, llvm::LLVMContext& context) {
  auto out = std::make_unique<llvm::Module>(function.name, context);
  ObjectEmitter emitter(function, *out);
  for (const Target& target : targets) emitter.add(module, target);
  emitter.finish();
  return out;
}

}  // namespace capibara::cpu
