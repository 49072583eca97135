// Shared by the memory and time models.
#pragma once

#include <capibara/tpu/plan.h>

namespace capibara::tpu {

double as_number(int64_t value);
void check_training(const Training& training);      // raises ValueError
double recomputed_share(const Training& training);  // of the forward pass
double host_bytes(const Training& training);        // that a device keeps in the host's memory

}  // namespace capibara::tpu
