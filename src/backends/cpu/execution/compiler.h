// The contract with the module that holds LLVM: loop form to object code, and object code loaded for execution.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/loops/loops.h"

namespace capibara::cpu {

// The target machine. Features come from what the processor reports, never from its name.
struct Target {
  std::string triple;                 // aarch64-unknown-linux-gnu
  std::string cpu;                    // a generic name of the architecture
  std::vector<std::string> features;  // +neon, +fp16fml, -sve ...
  int vector_bytes = 16;              // per register

  // All of the above in one line, for caches. Inline: the module must not need the core's symbols.
  std::string key() const {
    std::string text = triple + " " + cpu + " " + std::to_string(vector_bytes);
    for (const std::string& feature : features) text += " " + feature;
    return text;
  }
};

// A module as a stand-alone C function: void name(const void* const* inputs, void* const* outputs, void* arena),
// followed by const void* weights if a constant is stored there.
// The driver's buffers are the inputs, the constants, the outputs that it writes, and the arena, in this order.
struct CFunction {
  std::string name;
  std::size_t inputs = 0;
  struct Constant {
    std::string_view bytes;   // which become part of the object file
    int64_t in_weights = -1;  // unless they are at this offset from the pointer to weights
  };
  std::vector<Constant> constants;
  bool takes_weights = false;
  // One per result. `index`: into the inputs, the constants, or the results before it, which are copied.
  struct Output {
    enum class From { driver, input, constant, output } from = From::driver;
    std::size_t index = 0;
    int64_t bytes = 0;
  };
  std::vector<Output> outputs;
};

// Code in memory; its functions are valid as long as it exists.
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
  // Throws std::runtime_error with LLVM's message if a module is malformed.
  virtual std::string object_code(const Module& module, const Target& target) = 0;
  // The object file of a C function that needs only libc and libm: it runs on one thread, cannot be interrupted, and
  // the module must hold no Host. `targets` are of one architecture, lowest first; the function uses the last one that
  // the processor supports.
  virtual std::string object_file(const Module& module, const CFunction& function, std::span<const Target> targets) = 0;
  virtual std::unique_ptr<Code> link(const std::string& object_code) = 0;
  virtual std::string ir(const Module& module, const Target& target) = 0;  // LLVM's text, for readers
};

// Opens the module on the first call. If it is absent, raises a RuntimeError that says how to get it.
Compiler& compiler();
bool has_compiler();
// The host, without the features that CAPIBARA_CPU_LEVEL excludes.
Target process_target();

}  // namespace capibara::cpu

// The only symbol of the module.
extern "C" capibara::cpu::Compiler* capibara_cpu_compiler();
