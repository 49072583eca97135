// Operations in the form in which XLA's compilers compute what StableHLO says they mean.
#pragma once

#include <capibara/program.h>

namespace capibara::pjrt {

// On GPUs XLA takes the initial value of a reduction once per group of threads, fails to compile products of float64 with a
// narrower type, and solves no triangular systems of 16-bit floats. Each has an equal form that it does compile.
Program in_forms_of_xla(const Program& program);

}  // namespace capibara::pjrt
