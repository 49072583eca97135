// The LAPACK routines that jax calls on the CPU, computed by our own primitives.
#pragma once

#include <string>

#include <capibara/primitive.h>

namespace capibara {

// "getrf" of "lapack_sgetrf_ffi"; empty for other names.
std::string lapack_routine(const std::string& target);
bool is_lapack_routine(const std::string& routine);

// What a custom_call equation computes, composed of primitives under the current trace. Raises NotImplementedError for a
// target that is not known.
Arrays compose_custom_call(std::span<const Array> inputs, const Attrs& attrs);

}  // namespace capibara
