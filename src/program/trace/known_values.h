// Known values under a trace: staging them, and freeing those that are unreachable.
#pragma once

#include <capibara/array.h>

#include <functional>

namespace capibara {

// A known value as a value of the program being traced, if there is one: the traced function can no longer read
// it, as with JAX's arrays that are made inside jit. Evaluation and traces outside any program return it unchanged.
Array stage_value(const Array& value);

// Frees the host language's unreachable objects; called before leaked tracers are reported.
void set_cycle_collector(std::function<void()> collector);

}  // namespace capibara
