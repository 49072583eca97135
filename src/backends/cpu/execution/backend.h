// The native CPU backend: programs compiled to machine code.
#pragma once

#include "backends/backend.h"

namespace capibara::cpu {

class Code;
struct Module;

Backend& backend();

// The program that is compiled: what the optimiser makes of the given one.
Program optimised(const Program& program);

// Machine code of a module: what this process or the disk cache has, or made now.
std::shared_ptr<const Code> code_of(const Module& module);

// jax_cpu_enable_async_dispatch: false makes every call wait for its program.
void set_async_dispatch(bool on);
// What becomes of a program on the way to machine code, for readers.
std::string loops_text(const Program& program);
std::string ir_text(const Program& program);

}  // namespace capibara::cpu
