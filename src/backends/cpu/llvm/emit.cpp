// A module of the loop form as an LLVM module: declares its functions, then writes them one by one.
#include "backends/cpu/llvm/emit.h"

#include <algorithm>

#include "backends/cpu/llvm/function_emitter.h"

namespace capibara::cpu {

bool has_feature(const Target& target, const char* feature) {
  return std::find(target.features.begin(), target.features.end(), feature) != target.features.end();
}

bool is_x86(const Target& target) { return target.triple.starts_with("x86_64"); }

llvm::Function* emit_functions(const Module& module, const Target& target, llvm::Module& out, bool standalone) {
  llvm::LLVMContext& context = out.getContext();
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  auto* signature = llvm::FunctionType::get(llvm::Type::getInt32Ty(context), {pointer, pointer, i64, i64}, false);
  std::vector<llvm::Function*> functions;
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    auto linkage = i == 0 ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage;
    std::string name = i == 0 ? driver_symbol : module.functions[i].name + "." + std::to_string(i);
    llvm::Function* function = llvm::Function::Create(signature, linkage, name, out);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    for (unsigned argument : {0u, 1u}) {
      function->addParamAttr(argument, llvm::Attribute::NoAlias);
      function->addParamAttr(argument, llvm::Attribute::ReadOnly);
    }
    functions.push_back(function);
  }
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    FunctionEmitter(module, i, functions, target, standalone).run();
  }
  return functions[0];
}

std::unique_ptr<llvm::Module> emit(const Module& module, const Target& target, llvm::LLVMContext& context) {
  auto out = std::make_unique<llvm::Module>("capibara", context);
  emit_functions(module, target, *out, false);
  return out;
}

}  // namespace capibara::cpu
