// Opens the MPI module at first use and checks that it and its MPI library match.
#pragma once

#include <string>

#include "core/processes/mpi/table.h"

namespace capibara::processes {

// Raises a RuntimeError that names what is missing or does not match.
const mpi::Table& require_mpi();
// Names the MPI library, or why there is none; for `capibara doctor`.
std::string describe_mpi();

}  // namespace capibara::processes
