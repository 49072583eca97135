// CAPIBARA_MONITOR=PORT: a monitor for a program that knows nothing of it, begun when it first compiles.
#pragma once

namespace capibara {

void watch_by_environment();  // begins it, once

}  // namespace capibara
