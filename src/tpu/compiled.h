// Figures of the TPU compiler itself, made ahead of time by a child process: memory of a program, cycles of a matmul.
#pragma once

#include <capibara/tpu/chips.h>
#include <capibara/tpu/costs.h>

#include <map>
#include <string>

namespace capibara::tpu {

struct CompileRequest {
  std::string command;                         // the program `capibara`
  std::string text;                            // StableHLO
  std::string topology;                        // v5e:2x2
  std::string config;                          // libtpu's chip_config_name
  std::map<std::string, std::string> options;  // of this compilation
  bool only_memory = true;                     // end the child once its memory is planned
  double seconds = 600;                        // at most
};

struct CompileReport {
  bool done = false;
  std::string problem;   // one line, where it is not
  double total_gib = 0;  // of one device, without thread-local buffers
  bool fits = true;
  double cycles = 0;   // 0 where only memory was asked for
  double seconds = 0;  // of compiling
};

// Compiles in a child process; its death, a time-out and a library that is not there become one line.
CompileReport compile_in_child(const CompileRequest& request);

// Why libtpu cannot be used here; empty where it can.
std::string libtpu_problem();

// Compiled seconds of one matmul, kept on disk by shape, generation and flags. Nothing (0) and a line where it cannot
// be compiled.
double compiled_matmul_seconds(const std::string& command, const Chip& chip, const Matmul& matmul,
                               std::string* problem);

}  // namespace capibara::tpu
