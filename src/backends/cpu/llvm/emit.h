// Loop form to LLVM IR: explicit vectors and phis, so that no pass has to find them again.
#pragma once

#include <memory>

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "backends/cpu/execution/compiler.h"

namespace capibara::cpu {

inline constexpr const char* driver_symbol = "capibara_driver";

std::unique_ptr<llvm::Module> emit(const Module& module, const Target& target, llvm::LLVMContext& context);

}  // namespace capibara::cpu
