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

using NamedAxes = std::vector<std::pair<std::string, int64_t>>;  // names and sizes, the innermost first

// The named axes that surround a call: the function may ask for their sizes.
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
  std::optional<Device> device;  // that it was traced for; nothing: the first of the configured platform
  bool committed = false;        // whether an argument is, and so its results
  bool elsewhere = false;        // whether they asked for another platform than the default one
  CompilerOptions compiler_options;
  Config settings;  // that it was traced under

  struct Ready {
    Program program;  // without unused inputs
    std::vector<std::size_t> inputs;
    bool all_inputs = false;  // every leaf is an input
    std::vector<bool> donated;
    bool donates = false;
    bool says_placement = false;  // of its results
    Types result_types;           // where Explicit axes split them; the compiled program has none
    std::shared_ptr<Executable> executable;
    FlopsByType flops{};  // of one call
    // Outputs that the executable hands on from its inputs, found when it first runs.
    mutable Once compared;
    mutable std::vector<std::size_t> handed_on;
    mutable Once agreed;  // with other processes, before it first runs
  };

  // The program that is compiled: dead code and, unless they are kept, unused inputs are gone.
  std::pair<Program, std::vector<std::size_t>> pruned() const;

  const Ready& ready() const {
    if (!compiled()) {
      compiled_.run([this] { compile(); });
      if (may_be_interrupted()) poll_interrupt();  // asked for while it was compiled
    }
    return ready_;
  }
  bool compiled() const { return compiled_.done(); }

 private:
  void compile() const;
  // A donated input is usable where an output of the same shape and dtype can take its memory.
  void choose_donations() const;

  mutable Once compiled_;
  mutable Ready ready_;
};

// Lines of jax_log_compiles and the like.
void print_line(const std::string& text);
std::string seconds_since(std::chrono::steady_clock::time_point start);

}  // namespace capibara::detail
