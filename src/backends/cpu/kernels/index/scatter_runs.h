// Scatters whose windows are one run of neighbours, or one element.
#pragma once

#include "backends/cpu/kernels/index/scatter_run_loops.h"

namespace capibara::cpu::scatters {

// Windows of that form which are evenly spaced in the updates.
bool has_plain_runs(const WindowPlan& plan, int64_t operand_size);

// One call of such a scatter.
struct RunScatter {
  const WindowPlan& plan;
  const RunLoops& loops;
  const std::byte* indices;
  std::byte* target;
  const std::byte* updates;
  int64_t operand_size;  // elements

  void run(bool distinct) const;

 private:
  const std::byte* update(int64_t i) const { return updates + plan.batch_in_windows.stride() * i * loops.size; }
  int64_t parts_of(int64_t count) const;
  void combine_parts(int64_t count, int64_t parts, double one) const;
  void all_elements(int64_t count) const;
  void elements(int64_t begin, int64_t end, std::byte* into) const;
  void elements_within(int64_t count, int64_t least, int64_t limit) const;
  void all_rows(int64_t count, double one) const;
  void rows(int64_t begin, int64_t end, int64_t least, int64_t limit, int64_t first, int64_t run,
            std::byte* into) const;
};

}  // namespace capibara::cpu::scatters
