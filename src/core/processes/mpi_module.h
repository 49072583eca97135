// Opens the MPI module at first use and checks that it and its MPI library fit.
#pragma once

#include <string>

#include "core/processes/mpi/table.h"

namespace capibara::processes {

// Raises RuntimeError that says what is missing or does not fit.
const mpi::Table& require_mpi();
// What there is, in words; for `capibara doctor`.
std::string describe_mpi();

}  // namespace capibara::processes
