// Figures from the TPU compiler itself, run ahead of time in a child process: memory of a program, cycles of a matmul.
#pragma once

#include <capibara/tpu/chips.h>
#include <capibara/tpu/compiled.h>
#include <capibara/tpu/costs.h>

#include <map>
#include <string>

namespace capibara::tpu {

struct CompileRequest {
  std::string command;   // the program `capibara`
  std::string text;      // StableHLO
  std::string topology;  // v5e:2x2
  int slices = 1;
  std::string config;                          // libtpu's chip_config_name
  std::map<std::string, std::string> options;  // of this compilation
  bool only_memory = true;                     // end the child once its memory is planned
  double seconds = 600;                        // at most
};

// Compiles in a child process; its death, a time-out, Ctrl-C and a missing library are reported as one line.
CompiledProgram compile_in_child(const CompileRequest& request);

// Why libtpu cannot be used here; empty if it can.
std::string libtpu_problem();

// Compiled seconds of one matmul, cached on disk by shape, generation and flags. 0, with a line in `problem`, if it
// cannot be compiled.
double compiled_matmul_seconds(const std::string& command, const Chip& chip, const Matmul& matmul,
                               std::string* problem);

}  // namespace capibara::tpu
