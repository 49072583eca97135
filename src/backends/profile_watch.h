// What backends ask of the profiler's reports, which come after them: assembly answers.
#pragma once

namespace capibara {

// Begins the profile that the environment asks for, once: CAPIBARA_PROFILE=FILE, written when the process ends.
void profile_by_environment();

}  // namespace capibara
