// JitEntry: one traced program of a jitted function, compiled when it first runs.
#pragma once

#include <capibara/config.h>
#include <capibara/jit.h>

#include "backends/backend.h"
#include "core/runtime/compiler_options.h"
#include "core/runtime/counters.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/once.h"
#include "core/sharding/explicit.h"

#include <chrono>

namespace capibara::detail {

using NamedAxes = std::vector<std::pair<std::string, int64_t>>;  // names and sizes, innermost first

// The named axes around a call: the function may query their sizes.
NamedAxes enclosing_axes();

// What a traced program depends on besides its arguments.
struct Surroundings {
  std::size_t config = config_key();
  NamedAxes axes = enclosing_axes();
  std::size_t mesh = context_mesh_key();
  friend bool operator==(const Surroundings&, const Surroundings&) = default;
};

// What a traced program depends on.
struct JitKey {
  TreeDef in;
  Types types;
  std::vector<bool> committed;
  Surroundings surroundings;
  std::size_t hash = 0;
};

class JitEntry {
 public:
  JitKey key;
  jax::JitOptions options;
  TreeDef out;
  Program program;
  Arrays captured;  // tracers of an outer trace and refs: the program's leading inputs
  bool captures_tracer = false;
  std::vector<bool> donated;     // one per leaf
  std::optional<Device> device;  // it was traced for; nullopt: the first of the configured platform
  bool committed = false;        // true if an argument is, and so are the results
  bool elsewhere = false;        // true if they required a platform other than the default
  CompilerOptions compiler_options;
  Config settings;  // in effect when it was traced

  struct Ready {
    Program program;  // without unused inputs
    std::vector<std::size_t> inputs;
    bool all_inputs = false;  // every leaf is an input
    std::vector<bool> donated;
    bool donates = false;
    bool says_placement = false;  // true if the program specifies its results' placement
    Types result_types;           // if Explicit axes split them; the compiled program has none
    std::shared_ptr<Executable> executable;
    FlopsByType flops{};  // per call
    // Outputs that the executable returns unchanged from its inputs, found at the first run.
    mutable Once compared;
    mutable std::vector<std::size_t> handed_on;
    mutable Once agreed;  // with other processes, before the first run
  };

  // The program to compile: without dead code and, unless they are kept, unused inputs.
  std::pair<Program, std::vector<std::size_t>> pruned() const;

  const Ready& ready() const {
    if (!compiled()) {
      compiled_.run([this] { compile(); });
      if (may_be_interrupted()) poll_interrupt();  // requested during compilation
    }
    return ready_;
  }
  bool compiled() const { return compiled_.done(); }

 private:
  void compile() const;
  // A donated input is usable if an output of the same shape and dtype can take its memory.
  void choose_donations() const;

  mutable Once compiled_;
  mutable Ready ready_;
};

// Prints a line of jax_log_compiles and similar flags.
void print_line(const std::string& text);
std::string seconds_since(std::chrono::steady_clock::time_point start);

}  // namespace capibara::detail
