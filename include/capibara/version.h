// The version of the library that a program is linked with.
#pragma once

namespace capibara {

// The version as "major.minor.patch", as in CHANGELOG.md.
const char* version();

}  // namespace capibara
