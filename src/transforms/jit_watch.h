// What jit asks of the monitor, which comes after it: assembly answers.
#pragma once

namespace capibara {

// Begins the monitor that the environment asks for, once.
void watch_by_environment();

}  // namespace capibara
