// The module's compiler: LLVM IR to object code, running only the code generator's own passes.
#include <map>
#include <mutex>
#include <stdexcept>

#include <link.h>

#include <llvm/ADT/StringExtras.h>
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
  LLVMInitializeX86AsmParser();  // for the dispatch between an object's levels
  // Errors that LLVM considers fatal to the process only abort one compilation here.
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
  options.AllowFPOpFusion =
      llvm::FPOpFusion::Strict;  // the emitter has already fused products and sums, on every target
#if LLVM_VERSION_MAJOR >= 21
  llvm::Triple triple(target.triple);
#else
  const std::string& triple = target.triple;
#endif
  std::unique_ptr<llvm::TargetMachine> machine(found->createTargetMachine(triple, target.cpu, features, options,
                                                                          llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                          llvm::CodeGenOptLevel::Default, true));
  if (!machine) throw std::runtime_error("LLVM: no code generator for " + target.key());
  return machine;
}

// The linker's build id of this module, in hexadecimal: a changed emitter never uses cached code of an earlier one.
std::string build_identity() {
  std::string identity;
  auto look = [](dl_phdr_info* object, std::size_t, void* result) {
    const auto here = reinterpret_cast<uintptr_t>(&build_identity);
    bool holds = false;
    std::string found;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = object->dlpi_phdr[i];
      const uintptr_t start = object->dlpi_addr + header.p_vaddr;
      if (header.p_type == PT_LOAD) holds |= here >= start && here < start + header.p_memsz;
      if (header.p_type != PT_NOTE) continue;
      for (uintptr_t at = start; at + sizeof(ElfW(Nhdr)) < start + header.p_memsz;) {
        const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
        const uintptr_t data = at + sizeof *note + (note->n_namesz + 3) / 4 * 4;
        if (note->n_type == NT_GNU_BUILD_ID)
          found = llvm::toHex({reinterpret_cast<const uint8_t*>(data), note->n_descsz}, true);
        at = data + (note->n_descsz + 3) / 4 * 4;
      }
    }
    if (holds) *static_cast<std::string*>(result) = found;
    return static_cast<int>(holds);
  };
  dl_iterate_phdr(look, &identity);
  return identity;
}

// A target machine with its passes and output buffer. Used by one thread at a time; creating one costs as much
// as compiling a small function, so they are reused.
struct Generator {
  std::unique_ptr<llvm::TargetMachine> machine;
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream stream{object};
  llvm::legacy::PassManager passes;

  explicit Generator(const Target& target) : machine(make_machine(target)) {
    if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile, true)) {
      throw std::runtime_error("LLVM: cannot write object code for " + target.key());
    }
  }
};

std::unique_ptr<llvm::Module> checked(std::unique_ptr<llvm::Module> out, const Target& target,
                                      llvm::TargetMachine& machine) {
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

std::unique_ptr<llvm::Module> verified(const Module& module, const Target& target, llvm::LLVMContext& context,
                                       llvm::TargetMachine& machine) {
  return checked(emit(module, target, context), target, machine);
}

class LlvmCompiler : public Compiler {
 public:
  LlvmCompiler() { initialise(); }

  Target host() const override {
    static const Target target = host_target();
    return target;
  }
  std::string version() const override {
    static const std::string text = "LLVM " LLVM_VERSION_STRING " " + build_identity();
    return text;
  }

  std::string object_code(const Module& module, const Target& target) override {
    const std::string key = target.key();
    std::unique_ptr<Generator> generator = take(key, target);
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> ir = verified(module, target, context, *generator->machine);
    // Passes that LLVM left half-way cannot be destroyed: they are leaked if it throws.
    Generator* running = generator.release();
    running->passes.run(*ir);
    generator.reset(running);
    std::string object(generator->object.data(), generator->object.size());
    generator->object.clear();
    std::lock_guard lock(lock_);
    free_[key].push_back(std::move(generator));
    return object;
  }

  std::unique_ptr<Code> link(const std::string& object_code) override { return link_object(object_code); }

  std::string object_file(const Module& module, const CFunction& function, std::span<const Target> targets) override {
    Generator* generator = new Generator(targets[0]);  // leaked if LLVM throws, as in object_code
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> ir =
        checked(emit_object(module, function, targets, context), targets[0], *generator->machine);
    generator->passes.run(*ir);
    std::string object(generator->object.data(), generator->object.size());
    delete generator;
    return object;
  }

  std::string ir(const Module& module, const Target& target) override {
    std::unique_ptr<llvm::TargetMachine> machine = make_machine(target);
    llvm::LLVMContext context;
    std::string text;
    llvm::raw_string_ostream stream(text);
    verified(module, target, context, *machine)->print(stream, nullptr);
    return stream.str();
  }

 private:
  std::unique_ptr<Generator> take(const std::string& key, const Target& target) {
    {
      std::lock_guard lock(lock_);
      std::vector<std::unique_ptr<Generator>>& free = free_[key];
      if (!free.empty()) {
        std::unique_ptr<Generator> found = std::move(free.back());
        free.pop_back();
        return found;
      }
    }
    return std::make_unique<Generator>(target);
  }

  std::mutex lock_;
  std::map<std::string, std::vector<std::unique_ptr<Generator>>> free_;
};

}  // namespace

}  // namespace capibara::cpu

extern "C" __attribute__((visibility("default"))) capibara::cpu::Compiler* capibara_cpu_compiler() {
  static capibara::cpu::LlvmCompiler* compiler = new capibara::cpu::LlvmCompiler;  // code may run until exit
  return compiler;
}
