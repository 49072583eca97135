// Transforms of as many lines at once as a vector register has lanes: what a machine has code for, and how lines are
// placed in memory.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/fft/fft_plan.h"

namespace capibara::cpu::fft {

// How the lines of a group are placed. Steps count numbers of type R.
enum class Form : uint8_t {
  columns,    // element e of lane l: a pair at e * step + 2 * l
  rows,       // a pair at l * step + 2 * e
  real_rows,  // one number at l * step + e
  planes,     // real parts at e * step + l, imaginary parts in `imag` likewise
  turned      // as planes, at l * step + e
};

template <class R>
struct Side {
  Form form;
  R* data = nullptr;
  int64_t step = 0;
  R* imag = nullptr;
};

// What is done with the spectrum beside the transform of complex lines.
enum class Kind : uint8_t {
  complex,
  real_even,     // lines of 2 * length real numbers, read as pairs; length + 1 elements come out
  real_odd,      // lines of `length` real numbers; length / 2 + 1 elements come out
  to_real_even,  // the inverse of both
  to_real_odd
};

template <class R>
struct Group {
  const Plan<R>* plan;
  Side<R> in, out;
  int64_t lanes;                           // in use, from the first
  bool swap_in = false, swap_out = false;  // real and imaginary parts: both make the inverse, which is not scaled
  Kind kind = Kind::complex;
  R scale = 1;
  // Roots by which elements are multiplied afterwards, in planes; null for none.
  const R* real = nullptr;
  const R* imag = nullptr;
  int64_t roots_step = 0;
  R* work = nullptr;  // work_size() numbers, aligned to 64 bytes
};

template <class R>
struct Lanes {
  int64_t count;
  void (*transform)(const Group<R>&);

  int64_t work_size(const Plan<R>& plan) const { return 4 * count * (plan.work_length() + 2); }
};
template <class R>
const Lanes<R>& lanes();

}  // namespace capibara::cpu::fft
