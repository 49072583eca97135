// The hook run at the first operation: starts a profile if the environment requests one. src/assembly sets it.
#pragma once

namespace capibara {

using Begin = void();

extern Begin* const at_first_operation;  // called occasionally; begins only once

}  // namespace capibara
