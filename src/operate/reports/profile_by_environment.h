// CAPIBARA_PROFILE=FILE: a profile of an unmodified program, from its first operation to its exit.
#pragma once

namespace capibara {

void profile_by_environment();  // starts it, once

}  // namespace capibara
