// This process's part in a job: what jax.distributed.initialize sets up, for the rest of the library.
#pragma once

#include <memory>
#include <string>

#include "core/processes/exchange.h"

namespace capibara::processes {

// State set by the host language, for the watch: the line that its main thread is at, and the exception that ends the
// process.
void set_where(const std::string& where);
void set_ending(const std::string& ending);

// The processes that exchange results: those that MPI started and that have met; else this one alone.
struct Exchanging {
  int own = 0, count = 1;
};
Exchanging exchanging();

// Called before anything is computed: from now on jax.distributed.initialize is too late. Warns once in a process of
// `capibara launch` that has not called it.
void note_use();

}  // namespace capibara::processes
