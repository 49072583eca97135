// Decompositions on NVIDIA GPUs: LAPACK calls inside a program become cuSOLVER calls where that library can be
// loaded.
#pragma once

#include "backends/pjrt/client.h"

#include <capibara/program.h>

#include <functional>

namespace capibara::pjrt {

// Loads cuSOLVER and registers our handler with the plugin, once. False if the plugin is not CUDA's or the library
// cannot be found.
bool has_cusolver(const Client& client);

// Replaces the LAPACK calls that cuSOLVER covers: getrf, geqrf, orgqr, syevd, gesdd and gesvd, and their complex
// forms. Large batches of small matrices stay on the host, which is faster for them. `available` is called only if
// there is such a call: the library is large.
Program call_cusolver(const Program& program, const std::function<bool()>& available);

}  // namespace capibara::pjrt
