// The policies of gradient checkpointing by the names that configurations give them.
#pragma once

#include <capibara/remat.h>

#include <string>

namespace capibara {

// ValueError that lists the names where there is no policy of this one.
const jax::CheckpointPolicy& checkpoint_policy_of(const std::string& name);

}  // namespace capibara
