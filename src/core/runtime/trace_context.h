// Settings held outside of the core that traced programs depend on, as a number in the key of every jitted function.
#pragma once

#include <cstddef>

namespace capibara {

void set_trace_context(std::size_t);          // of this thread
void set_default_trace_context(std::size_t);  // of the process

}  // namespace capibara
