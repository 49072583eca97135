// What libtpu says of a program when it compiles it ahead of time: buffers with their lines, memory over the schedule,
// collectives, cycles. Nothing runs on a TPU.
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
  std::string source;     // file:line of the program; empty where the compiler made it
};

struct CompiledCollective {
  std::string kind;     // all-gather, all-reduce, ...
  double times = 0;     // in one run of the program, loops counted
  double gib = 0;       // of results on one device, all times together
  double open_gib = 0;  // the part of it that runs alone: neither asynchronous nor inside of a fusion
};

struct CompiledMemory {
  double total_gib = 0, argument_gib = 0, temporary_gib = 0;  // of one device, without thread-local buffers
  double host_gib = 0;                                        // of the host's memory, for one device
  std::vector<CompiledBuffer> largest;                        // at the moment of most memory
  std::vector<double> timeline;                               // GiB over the schedule, at most 200 moments
  std::string moment;                                         // the line at the peak
};

struct CompiledCycles {
  double total = 0;                                   // 0 where they were not asked for
  std::vector<std::pair<std::string, double>> parts;  // by the first two words of the scope, largest first
};

struct CompiledProgram {
  bool done = false;
  std::string problem;       // one line, where it is not
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
  bool cycles = false;                       // let it finish: minutes, where memory alone takes seconds
  double seconds = 600;                      // at most
};

// Compiles the whole training step of a plan in a child process: forward pass, backward pass and Adam over the mesh.
// What keeps it from that is one line of the result.
CompiledProgram compile_step(const Training& training, const CompileChoices& choices);
// The same for a program given as StableHLO.
CompiledProgram compile_program(const std::string& text, const Slice& slice, const CompileChoices& choices);

// The step as StableHLO, with a scan over layers and source lines. Raises ValueError for plans that it cannot write.
std::string step_stablehlo(const Training& training);

}  // namespace capibara::tpu
