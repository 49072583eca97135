// Programs with 64-bit types: derived programs keep these, whatever the configuration says of new values.
#pragma once

#include <capibara/config.h>
#include <capibara/program.h>

namespace capibara {

// True if a value of the program, or of a program inside, has a type that exists with enable_x64 alone.
bool holds_wide_types(const Program& program);

// The current configuration, with enable_x64 if the program holds these types.
Config config_for(const Program& program);

}  // namespace capibara
