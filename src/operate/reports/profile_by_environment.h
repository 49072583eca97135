// CAPIBARA_PROFILE=FILE: a profile of a program that knows nothing of it, from its first operation to its end.
#pragma once

namespace capibara {

void profile_by_environment();  // begins it, once

}  // namespace capibara
