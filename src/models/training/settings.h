// Validation of training settings before anything is written.
#pragma once

#include <capibara/training/trainer.h>

namespace capibara::training {

// The optimizer of a config; ValueError that names the first setting that makes a trainer impossible.
optimizers::Optimizer checked_optimizer(const AnyModel& model, const TrainerConfig& config);

}  // namespace capibara::training
