// The LAPACK routines that jax calls on the CPU, computed by our own primitives.
#pragma once

#include <string>

#include <capibara/primitive.h>

namespace capibara {

// "getrf" of "lapack_sgetrf_ffi"; empty for other names.
std::string lapack_routine(const std::string& target);
bool is_lapack_routine(const std::string& routine);
// True if our primitives compute what a call of this target does. Any other call is opaque: only the compiler of a
// plugin may know it.
bool is_known_call(const std::string& target);
// The target of an opaque call in a program or inside its equations; empty if there is none.
std::string opaque_call(const Program& program);

// Raises NotImplementedError for an opaque call that reached a native backend.
[[noreturn]] void refuse_native_call(const std::string& target);

// The results of a custom_call equation, composed of primitives under the current trace. Raises NotImplementedError for
// an opaque call, which cannot be `wanted`: "differentiated" or "batched" (null: run).
Arrays compose_custom_call(std::span<const Array> inputs, const Attrs& attrs, const char* wanted = nullptr);

}  // namespace capibara
