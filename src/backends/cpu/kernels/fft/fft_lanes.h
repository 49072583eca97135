// Transforms of as many lines at once as a vector register has lanes: the code for this machine, and the memory layouts
// of lines.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/fft/fft_plan.h"

namespace capibara::cpu::fft {

// The memory layout of a group of lines. Steps count numbers of type R.
enum class Form : uint8_t {
  columns,    // element e of lane l: a pair at e * step + 2 * l
  rows,       // a pair at l * step + 2 * e
  real_rows,  // one number at l * step + e
  planes,     // real parts at e * step + l, imaginary parts in `imag` at the same offsets
  turned      // as planes, at l * step + e
};

template <class R>
struct Side {
  Form form;
  R* data = nullptr;
  int64_t step = 0;
  R* imag = nullptr;
};

// How the spectrum is converted before or after the transform of complex lines.
enum class Kind : uint8_t {
  complex,
  real_even,     // in: lines of 2 * length real numbers, read as pairs; out: length + 1 elements
  real_odd,      // in: lines of `length` real numbers; out: length / 2 + 1 elements
  to_real_even,  // the inverse of both
  to_real_odd
};

template <class R>
struct Group {
  const Plan<R>* plan;
  Side<R> in, out;
  int64_t lanes;                           // in use, from lane 0
  bool swap_in = false, swap_out = false;  // real and imaginary parts: both make the inverse, which is not scaled
  Kind kind = Kind::complex;
  R scale = 1;
  // Roots by which results are multiplied, in planes; null for none.
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
