// Programs that cross processes: before its first run all of them compare what they are about to run.
#pragma once

#include <capibara/program.h>

namespace capibara {

// Returns at once for a program of this process alone. Raises DistributedError that names the process whose program or
// types differ: the exchanges of such programs would mix values of different functions, or wait for ever.
void agree_on_program(const Program& program, const std::string& name);

}  // namespace capibara
