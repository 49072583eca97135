// Loop form to LLVM IR: emits explicit vectors and phis, so that no pass has to rediscover them.
#pragma once

#include <memory>

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "backends/cpu/execution/compiler.h"

namespace capibara::cpu {

inline constexpr const char* driver_symbol = "capibara_driver";

std::unique_ptr<llvm::Module> emit(const Module& module, const Target& target, llvm::LLVMContext& context);
// Writes the functions of a module into an LLVM module; returns the driver. `standalone`: there is no Runtime.
llvm::Function* emit_functions(const Module& module, const Target& target, llvm::Module& out, bool standalone);
// A standalone C function, with code for each target in one module.
std::unique_ptr<llvm::Module> emit_object(const Module& module, const CFunction& function,
                                          std::span<const Target> targets, llvm::LLVMContext& context);

}  // namespace capibara::cpu
