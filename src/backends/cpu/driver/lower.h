// A whole program in loop form: the driver, its regions, the plan of its memory, and the kernels that it calls.
#pragma once

#include <capibara/profile.h>

#include <map>

#include "backends/cpu/kernels/host.h"
#include "backends/cpu/loops/loops.h"

namespace capibara::cpu {

struct Lowered {
  Module module;
  std::vector<HostKernel> kernels;  // by the number in Host; empty ones are matmuls with an epilogue:
  // the region that the driver invokes next runs on their rows as these are finished.
  std::map<int32_t, ProductKernel> products;
  std::vector<std::string> kernel_names;  // the primitive, the user's function where it is called, and the line
  int32_t add(HostKernel kernel, const Equation& equation);  // its number
  std::vector<Array> constants;
  int64_t arena_bytes = 0;

  // Where each output comes from: written by the driver (into the memory of a donated input, too), or an array that
  // exists already.
  struct Output {
    enum class From { driver, input, donated, constant, output } from = From::driver;
    int index = 0;  // of the driver's output buffers, of the inputs, of the constants, of an earlier output
    ArrayType type;
  };
  std::vector<Output> outputs;
  // The driver's buffers in order: the inputs, the constants, one per Output from the driver, the arena.
  std::vector<int64_t> output_bytes;
  std::vector<std::string> largest;  // the largest values in memory, for errors
};

// The loop form, and what each call out of it runs.
std::string to_string(const Lowered& lowered);

// `donated`: inputs whose memory outputs may take; empty for none.
Lowered lower_to_loops(const Program& program, const std::vector<bool>& donated = {});

// The same for an object: what kernels compute in a process becomes loops here, as far as `routines` covers it, and
// what is left is named in kernel_names.
Lowered lower_without_kernels(const Program& program);

// What marked drivers call instead of a kernel before each call site: site n is first_mark - n; -1 is poll_kernel.
inline constexpr int32_t first_mark = poll_kernel - 1;

// The same with a mark before every call site, for profiles: the regions, kernels, constants and the arena are those of
// lower_to_loops, by the same numbers.
struct Marked {
  Module module;
  std::vector<profile::Slot> sites;  // by the number of their marks
};
Marked lower_with_marks(const Program& program, const std::vector<bool>& donated);

}  // namespace capibara::cpu
