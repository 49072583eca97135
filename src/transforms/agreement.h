// Programs that span processes: before the first run all processes compare what they are about to run.
#pragma once

#include <capibara/program.h>

namespace capibara {

// Returns immediately for a program of this process only. Raises a DistributedError naming the process whose program or
// types differ: the collectives of such programs would mix values of different functions, or wait forever.
void agree_on_program(const Program& program, const std::string& name);

}  // namespace capibara
