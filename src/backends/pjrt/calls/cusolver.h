// Decompositions on NVIDIA GPUs: calls of LAPACK inside a program become calls of cuSOLVER, where that library can be
// loaded.
#pragma once

#include "backends/pjrt/client.h"

#include <capibara/program.h>

#include <functional>

namespace capibara::pjrt {

// Loads cuSOLVER and tells the plugin of our handler, once. False where the plugin is not CUDA's or there is no such
// library.
bool has_cusolver(const Client& client);

// Replaces the calls of LAPACK that cuSOLVER answers: getrf, geqrf, orgqr, syevd, gesdd and gesvd, and their complex
// forms. Large batches of small matrices stay with the host, which is faster at them. `available` is asked once there
// is such a call: the library is large.
Program call_cusolver(const Program& program, const std::function<bool()>& available);

}  // namespace capibara::pjrt
