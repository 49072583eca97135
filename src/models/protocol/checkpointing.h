// Policies of gradient checkpointing by the names used in configurations.
#pragma once

#include <capibara/remat.h>

#include <string>

namespace capibara {

// ValueError listing the names if there is no policy of this name.
const jax::CheckpointPolicy& checkpoint_policy_of(const std::string& name);

}  // namespace capibara
