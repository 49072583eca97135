// Operations in a form for which XLA's compilers implement StableHLO's semantics.
#pragma once

#include <capibara/program.h>

namespace capibara::pjrt {

// On GPUs XLA applies the initial value of a reduction once per group of threads, and solves no triangular systems of
// 16-bit floats. On CPUs it drops the initial value of a reduce_window of a scalar, and aborts the process on a
// select_and_scatter of one. All have an equivalent form that it computes correctly.
Program in_forms_of_xla(const Program& program);

}  // namespace capibara::pjrt
