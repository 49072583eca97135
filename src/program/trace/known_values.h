// Known values under a trace: how they become traced ones, and who frees those that nothing reaches.
#pragma once

#include <capibara/array.h>

#include <functional>

namespace capibara {

// A known value as a value of the program that is being traced, where one is: the traced function can no longer read
// it, as with JAX's arrays that are made inside of jit. Evaluation and traces outside of any program leave it as it is.
Array stage_value(const Array& value);

// What frees the host language's unreachable objects, called before leaked tracers are reported.
void set_cycle_collector(std::function<void()> collector);

}  // namespace capibara
