// Transforms of one line whose vectors hold neighbouring elements: a line stays in the first cache, and what reads it
// and what writes it are the first and the last step.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/fft/fft_lanes.h"

namespace capibara::cpu::fft {

template <class R>
struct Lines {
  const R* in;
  R* out;
  int64_t in_step, out_step;  // from one line to the next
  int64_t count;              // a multiple of those that the plan takes together, whose lines are contiguous
  bool inverse = false;       // not scaled, but by `scale`
  Kind kind = Kind::complex;  // or even: the plan's length counts pairs
  R scale = 1;
  R* work = nullptr;  // work_size() numbers, aligned to 64 bytes
};

template <class R>
void transform_within(const WithinPlan<R>& plan, const Lines<R>& lines);

}  // namespace capibara::cpu::fft
