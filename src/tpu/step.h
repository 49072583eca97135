// Shared by the memory and time models.
#pragma once

#include <capibara/tpu/plan.h>

namespace capibara::tpu {

double as_number(int64_t value);
void check_training(const Training& training);  // raises ValueError
// What a policy keeps of each layer besides its input: results of matmuls by name.
struct Kept {
  bool qkv = false, context = false, projection = false, products = false, down = false;
};
const std::vector<std::string>& remat_policies();
Kept kept_by(const std::string& remat);
double recomputed_share(const Training& training);  // of the forward pass
double host_bytes(const Training& training);        // that a device keeps in the host's memory

}  // namespace capibara::tpu
