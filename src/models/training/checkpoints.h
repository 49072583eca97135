// The state of a trainer in the checkpoints of a folder.
#pragma once

#include <capibara/training/trainer.h>

namespace capibara::training {

// Writes the state after `step` steps and removes all but the `keep` newest checkpoints.
void save_checkpoint(const std::string& folder, int64_t step, const TrainState& state, int64_t keep);
// Replaces the state by that of the newest whole checkpoint, and returns its step; nothing where there is none.
std::optional<int64_t> load_checkpoint(const std::string& folder, TrainState& state);

}  // namespace capibara::training
