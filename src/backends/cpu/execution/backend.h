// The native CPU backend: programs compiled to machine code.
#pragma once

#include "backends/backend.h"

namespace capibara::cpu {

class Code;
struct Module;

Backend& backend();

// The optimised form of a program, which is compiled.
Program optimised(const Program& program);

// Machine code of a module: from this process or the disk cache, or compiled now.
std::shared_ptr<const Code> code_of(const Module& module);

// jax_cpu_enable_async_dispatch: with false, every call waits for its program.
void set_async_dispatch(bool on);
// The stages of a program on its way to machine code, as text.
std::string loops_text(const Program& program);
std::string ir_text(const Program& program);

}  // namespace capibara::cpu
