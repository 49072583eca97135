// The hook run at the first compilation: starts the monitor if the environment requests it. src/assembly sets it.
#pragma once

namespace capibara {

using Begin = void();

extern Begin* const at_first_compilation;  // called by each compilation; begins only once

}  // namespace capibara
