// Transforms of one line whose vectors hold adjacent elements: a line stays in the L1 cache, and only the first step
// reads from memory and only the last step writes to it.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/fft/fft_lanes.h"

namespace capibara::cpu::fft {

template <class R>
struct Lines {
  const R* in;
  R* out;
  int64_t in_step, out_step;  // from one line to the next
  int64_t count;              // a multiple of the plan's `together`, whose lines are contiguous
  bool inverse = false;       // not scaled, except by `scale`
  Kind kind = Kind::complex;  // or real_even: the plan's length counts pairs
  R scale = 1;
  R* work = nullptr;  // work_size() numbers, aligned to 64 bytes
};

template <class R>
void transform_within(const WithinPlan<R>& plan, const Lines<R>& lines);

}  // namespace capibara::cpu::fft
