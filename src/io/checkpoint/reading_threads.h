// Threads that read files: more than there are processors may help, since one thread waits for the disk while another
// copies what has been read.
#pragma once

#include <cstddef>

#include "core/runtime/thread_pool.h"

namespace capibara {

// Calls read(i) for every i below `count`, several at a time; the caller takes part. A nested call
// runs alone. Rethrows the error of the smallest i; later ones may not have been read.
void for_each_read(std::size_t count, FunctionRef<void(std::size_t)> read);

}  // namespace capibara
