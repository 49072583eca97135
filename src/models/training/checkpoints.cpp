// Saving and loading the state of a trainer in a folder's checkpoints.
#include "models/training/checkpoints.h"

#include <capibara/checkpoint.h>

#include <algorithm>

namespace capibara::training {

namespace {

constexpr const char* item = "state";

}  // namespace

void save_checkpoint(const std::string& folder, int64_t step, const TrainState& state, int64_t keep) {
  Checkpointer checkpointer(folder, {.max_to_keep = keep});
  const std::vector<int64_t> steps = checkpointer.steps();
  if (std::find(steps.begin(), steps.end(), step) != steps.end()) return;  // already saved
  checkpointer.save(step, {{item, checkpoint_tree(state)}});
}

std::optional<int64_t> load_checkpoint(const std::string& folder, TrainState& state) {
  const Checkpointer checkpointer(folder);
  if (!checkpointer.latest_step()) return std::nullopt;
  RestoreOptions options;
  options.like[item] = checkpoint_tree(state);
  options.on_corruption = OnCorruption::previous;
  const Checkpoint restored = checkpointer.restore(options);
  state = checkpoint_value<TrainState>(restored.items.at(item));
  return restored.step;
}

}  // namespace capibara::training
