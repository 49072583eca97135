// Programs with 64-bit types: what is built from them keeps these, whatever the configuration says of new values.
#pragma once

#include <capibara/config.h>
#include <capibara/program.h>

namespace capibara {

// Whether a value of the program, or of a program inside, has a type that exists with enable_x64 alone.
bool holds_wide_types(const Program& program);

// The present configuration, with enable_x64 where the program holds such types.
Config config_for(const Program& program);

}  // namespace capibara
