// Saving and loading the state of a trainer in a folder's checkpoints.
#pragma once

#include <capibara/training/trainer.h>

namespace capibara::training {

// Writes the state after `step` steps and removes all but the newest `keep` checkpoints.
void save_checkpoint(const std::string& folder, int64_t step, const TrainState& state, int64_t keep);
// Replaces the state by that of the newest complete checkpoint, and returns its step; absent if there is none.
std::optional<int64_t> load_checkpoint(const std::string& folder, TrainState& state);

}  // namespace capibara::training
