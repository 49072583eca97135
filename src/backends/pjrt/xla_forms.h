// Operations in the form in which XLA's compilers compute what StableHLO says they mean.
#pragma once

#include <capibara/program.h>

namespace capibara::pjrt {

// On GPUs XLA takes the initial value of a reduction once per group of threads, and solves no triangular systems of
// 16-bit floats. On CPUs it forgets the initial value of a window of a scalar, and ends the process where one is
// selected from. All have an equal form that it does compute.
Program in_forms_of_xla(const Program& program);

}  // namespace capibara::pjrt
