// A whole program in loop form: the driver, its regions, the plan of its memory, and the kernels that it calls.
#pragma once

#include <capibara/profile.h>

#include <map>

#include "backends/cpu/kernels/host.h"
#include "backends/cpu/loops/loops.h"

namespace capibara::cpu {

struct Lowered {
  Module module;
  std::vector<HostKernel> kernels;  // by the number in Host; an empty one is a matmul with an epilogue: the region that
                                    // the driver invokes next runs on its rows as they are finished
  std::map<int32_t, ProductKernel> products;
  std::vector<std::string> kernel_names;  // the primitive or the user's callback, and the source line
  int32_t add(HostKernel kernel, const Equation& equation);  // its number
  std::vector<Array> constants;
  int64_t arena_bytes = 0;

  // Where each output comes from: written by the driver (possibly into the memory of a donated input), or an existing
  // array.
  struct Output {
    enum class From { driver, input, donated, constant, output } from = From::driver;
    int index = 0;  // into the driver's output buffers, the inputs, the constants, or the earlier outputs
    ArrayType type;
  };
  std::vector<Output> outputs;
  // The driver's buffers in order: inputs, constants, one per Output written by the driver, the arena.
  std::vector<int64_t> output_bytes;
  std::vector<std::string> largest;  // the largest values in memory, for errors
};

// The loop form, and what each of its host calls runs.
std::string to_string(const Lowered& lowered);

// `donated`: inputs whose memory outputs may reuse; empty for none.
Lowered lower_to_loops(const Program& program, const std::vector<bool>& donated = {});

// Also lower_to_loops, but for object files: kernels become loops as far as `routines` covers them; those that remain
// are named in kernel_names.
Lowered lower_without_kernels(const Program& program);

// What marked drivers call instead of a kernel before each call site: first_mark - n for site n; poll_kernel is -1.
inline constexpr int32_t first_mark = poll_kernel - 1;

// lower_to_loops with a mark before every call site, for profiles: regions, kernels, constants and the arena are the
// same and have the same numbers.
struct Marked {
  Module module;
  std::vector<profile::Slot> sites;  // indexed by the number of their marks
};
Marked lower_with_marks(const Program& program, const std::vector<bool>& donated);

}  // namespace capibara::cpu
