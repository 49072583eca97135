// The module's compiler: LLVM IR to object code, with the code generator's own passes only.
#include <map>
#include <mutex>
#include <stdexcept>

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include "backends/cpu/llvm/emit.h"
#include "backends/cpu/llvm/link.h"
#include "backends/cpu/llvm/target.h"

namespace capibara::cpu {

namespace {

void initialise() {
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64Target();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64AsmPrinter();
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  // What LLVM holds to be the end of the process ends one compilation here.
  llvm::install_fatal_error_handler(
      [](void*, const char* reason, bool) { throw std::runtime_error(std::string("LLVM: ") + reason); });
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target) {
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (!found) throw std::runtime_error("LLVM: " + error);
  std::string features;
  for (const std::string& feature : target.features) features += (features.empty() ? "" : ",") + feature;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // products and sums were fused by the emitter, on every target alike
#if LLVM_VERSION_MAJOR >= 21
  llvm::Triple triple(target.triple);
#else
  const std::string& triple = target.triple;
#endif
  std::unique_ptr<llvm::TargetMachine> machine(found->createTargetMachine(
      triple, target.cpu, features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, true));
  if (!machine) throw std::runtime_error("LLVM: no code generator for " + target.key());
  return machine;
}

class LlvmCompiler : public Compiler {
 public:
  LlvmCompiler() { initialise(); }

  Target host() const override {
    static const Target target = host_target();
    return target;
  }
  std::string version() const override { return "LLVM " LLVM_VERSION_STRING ", emitter 1"; }

  std::string object_code(const Module& module, const Target& target) override {
    Machine machine(*this, target);
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> ir = verified(module, target, context, *machine);
    llvm::SmallString<0> object;
    llvm::raw_svector_ostream stream(object);
    llvm::legacy::PassManager passes;
    if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile, true)) {
      throw std::runtime_error("LLVM: cannot write object code for " + target.key());
    }
    passes.run(*ir);
    machine.give_back();
    return std::string(object.data(), object.size());
  }

  std::unique_ptr<Code> link(const std::string& object_code) override { return link_object(object_code); }

  std::string ir(const Module& module, const Target& target) override {
    Machine machine(*this, target);
    llvm::LLVMContext context;
    std::string text;
    llvm::raw_string_ostream stream(text);
    verified(module, target, context, *machine)->print(stream, nullptr);
    return text;
  }

 private:
  // A machine serves one thread at a time; a new one costs more than a small function, so they are kept.
  class Machine {
   public:
    Machine(LlvmCompiler& owner, const Target& target) : owner_(owner), key_(target.key()) {
      {
        std::lock_guard lock(owner_.lock_);
        auto& free = owner_.free_[key_];
        if (!free.empty()) {
          machine_ = std::move(free.back());
          free.pop_back();
        }
      }
      if (!machine_) machine_ = make_machine(target);
    }
    llvm::TargetMachine* operator->() { return machine_.get(); }
    llvm::TargetMachine& operator*() { return *machine_; }
    void give_back() {
      std::lock_guard lock(owner_.lock_);
      owner_.free_[key_].push_back(std::move(machine_));
    }

   private:
    LlvmCompiler& owner_;
    std::string key_;
    std::unique_ptr<llvm::TargetMachine> machine_;
  };

  static std::unique_ptr<llvm::Module> verified(const Module& module, const Target& target, llvm::LLVMContext& context,
                                                llvm::TargetMachine& machine) {
    std::unique_ptr<llvm::Module> out = emit(module, target, context);
#if LLVM_VERSION_MAJOR >= 21
    out->setTargetTriple(llvm::Triple(target.triple));
#else
    out->setTargetTriple(target.triple);
#endif
    out->setDataLayout(machine.createDataLayout());
    std::string reason;
    llvm::raw_string_ostream stream(reason);
    if (llvm::verifyModule(*out, &stream)) throw std::runtime_error("LLVM: " + stream.str());
    return out;
  }

  std::mutex lock_;
  std::map<std::string, std::vector<std::unique_ptr<llvm::TargetMachine>>> free_;
};

}  // namespace

}  // namespace capibara::cpu

extern "C" __attribute__((visibility("default"))) capibara::cpu::Compiler* capibara_cpu_compiler() {
  static capibara::cpu::LlvmCompiler* compiler = new capibara::cpu::LlvmCompiler;  // code may run until the very end
  return compiler;
}
