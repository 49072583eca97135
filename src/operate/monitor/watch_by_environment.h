// CAPIBARA_MONITOR=PORT: a monitor for an unmodified program, started on its first compilation.
#pragma once

namespace capibara {

void watch_by_environment();  // starts it, once

}  // namespace capibara
