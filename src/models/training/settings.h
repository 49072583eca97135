// The check of a training's settings, for who must know that they are right before anything is written.
#pragma once

#include <capibara/training/trainer.h>

namespace capibara::training {

// The optimizer of a config; ValueError that names the first setting with which no trainer could be made.
optimizers::Optimizer checked_optimizer(const AnyModel& model, const TrainerConfig& config);

}  // namespace capibara::training
