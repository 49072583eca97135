// The contract with the module that holds LLVM: loop form in, object code out, and object code made callable.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/loops/loops.h"

namespace capibara::cpu {

// The machine to make code for. Features come from what the processor reports, never from its name.
struct Target {
  std::string triple;                 // aarch64-unknown-linux-gnu
  std::string cpu;                    // a generic name of the architecture
  std::vector<std::string> features;  // +neon, +fp16fml, -sve ...
  int vector_bytes = 16;              // of one register

  // All of the above in one line, for caches. Inline: the module must not need the core's symbols.
  std::string key() const {
    std::string text = triple + " " + cpu + " " + std::to_string(vector_bytes);
    for (const std::string& feature : features) text += " " + feature;
    return text;
  }
};

// A module as a C function of its own: void name(const void* const* inputs, void* const* outputs, void* arena), and
// const void* weights behind them where a constant is there.
// The driver's buffers are the inputs, the constants, the outputs that it writes, and the arena, in this order.
struct CFunction {
  std::string name;
  std::size_t inputs = 0;
  struct Constant {
    std::string_view bytes;   // which become part of the object
    int64_t in_weights = -1;  // unless they are at this offset from the pointer to weights
  };
  std::vector<Constant> constants;
  bool takes_weights = false;
  // One for each result. `index`: of the inputs, the constants, or the results before it, which are copied.
  struct Output {
    enum class From { driver, input, constant, output } from = From::driver;
    std::size_t index = 0;
    int64_t bytes = 0;
  };
  std::vector<Output> outputs;
};

// Code in memory; its functions live as long as it does.
class Code {
 public:
  virtual ~Code() = default;
  virtual Entry driver() const = 0;
};

class Compiler {
 public:
  virtual ~Compiler() = default;
  virtual Target host() const = 0;
  virtual std::string version() const = 0;  // of the code generator, for caches
  // Throws std::runtime_error with LLVM's words where a module is malformed.
  virtual std::string object_code(const Module& module, const Target& target) = 0;
  // The object file of a C function that needs libc and libm alone: one thread runs it, nothing stops it, and the
  // module must hold no Host. Of several targets of one architecture, from the lowest on, the function takes the last
  // one that the processor has.
  virtual std::string object_file(const Module& module, const CFunction& function, std::span<const Target> targets) = 0;
  virtual std::unique_ptr<Code> link(const std::string& object_code) = 0;
  virtual std::string ir(const Module& module, const Target& target) = 0;  // LLVM's text, for readers
};

// Opens the module at the first call. Raises RuntimeError that says how to get it where it is absent.
Compiler& compiler();
bool has_compiler();
// The host, without the features that CAPIBARA_CPU_LEVEL leaves out.
Target process_target();

}  // namespace capibara::cpu

// The one symbol of the module.
extern "C" capibara::cpu::Compiler* capibara_cpu_compiler();
