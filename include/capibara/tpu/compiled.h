// Figures that libtpu reports when it compiles a program ahead of time: buffers with source lines, memory over the
// schedule, collectives, cycles. Nothing runs on a TPU.
#pragma once

#include <capibara/tpu/plan.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace capibara::tpu {

struct CompiledBuffer {
  double gib = 0;
  std::string shape;      // bf16[80,1,8192,8192]
  std::string operation;  // scope of the program, or the compiler's own name
  std::string source;     // file:line of the program; empty if created by the compiler
};

struct CompiledCollective {
  std::string kind;     // all-gather, all-reduce, ...
  double times = 0;     // per run of the program, including loop iterations
  double gib = 0;       // of results on one device, over all runs of the collective
  double open_gib = 0;  // the part not overlapped: neither asynchronous nor inside a fusion
};

struct CompiledMemory {
  double total_gib = 0, argument_gib = 0, temporary_gib = 0;  // of one device, without thread-local buffers
  double host_gib = 0;                                        // of the host's memory, for one device
  std::vector<CompiledBuffer> largest;                        // at peak memory
  std::vector<double> timeline;                               // GiB over the schedule, at most 200 moments
  std::string moment;                                         // the line at the peak
};

struct CompiledCycles {
  double total = 0;                                   // 0 unless requested
  std::vector<std::pair<std::string, double>> parts;  // by the first two words of the scope, largest first
};

struct CompiledProgram {
  bool done = false;
  std::string problem;       // one line if it failed
  bool interrupted = false;  // by Ctrl-C
  bool fits = true;
  double seconds = 0;  // of compiling
  CompiledMemory memory;
  std::vector<CompiledCollective> collectives;
  CompiledCycles cycles;
};

struct CompileChoices {
  std::string command;                       // the program `capibara`, which the child runs
  std::map<std::string, std::string> flags;  // of this compilation
  bool cycles = false;                       // compile to the end, which takes minutes; memory alone takes seconds
  double seconds = 600;                      // at most
};

// Compiles the whole training step of a plan in a child process: forward pass, backward pass and Adam over the mesh.
// If that is not possible, `problem` is the reason in one line.
CompiledProgram compile_step(const Training& training, const CompileChoices& choices);
// The same for a program given as StableHLO.
CompiledProgram compile_program(const std::string& text, const Slice& slice, const CompileChoices& choices);

// The step as StableHLO, with a scan over layers and source lines. Raises ValueError for unsupported plans.
std::string step_stablehlo(const Training& training);

}  // namespace capibara::tpu
