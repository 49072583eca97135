// Threads that read files: more than there are processors may help, since a thread waits for the disk while another
// copies what the disk has read.
#pragma once

#include <cstddef>

#include "core/runtime/thread_pool.h"

namespace capibara {

// Calls read(i) for every i below `count`, several at a time; the caller takes part. A call from inside of such a call
// runs alone. The error of the smallest i is raised again; those behind it may not have been read.
void for_each_read(std::size_t count, FunctionRef<void(std::size_t)> read);

}  // namespace capibara
