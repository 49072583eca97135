// This process's part in a job: what jax.distributed.initialize sets up, for the rest of the library.
#pragma once

#include <memory>
#include <string>

#include "core/processes/exchange.h"

namespace capibara::processes {

// What the host language knows of this process, for the watch: the line at which its main thread is, and the exception
// that ends it.
void set_where(const std::string& where);
void set_ending(const std::string& ending);

// The processes that exchange what they compute: those that MPI started and that have met; else this one alone.
struct Exchanging {
  int own = 0, count = 1;
};
Exchanging exchanging();

// Something is about to be computed: from now on jax.distributed.initialize comes too late. A process of `capibara
// launch` that has not called it is told so, once.
void note_use();

}  // namespace capibara::processes
