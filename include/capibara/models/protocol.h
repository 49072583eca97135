// Compiled named models as models that can be trained.
#pragma once

#include <capibara/model.h>
#include <capibara/models/compile.h>

namespace capibara::models {

struct TrainableOptions {
  std::vector<std::string> batch =
      {};                           // which data key each array of a batch is for; empty: data_keys() in their order
  std::string output = {};          // what apply returns; empty: the only output besides the loss
  std::string loss = "final_cost";  // the output that is trained, as TrainModel names it
  // In place of an output: the loss of the outputs and the batch, whose arrays behind the data keys are its own.
  std::function<Array(const ValueMap& outputs, const Arrays& batch)> loss_of = {};
  ValueMap parameters = {};  // to begin with; those that are missing are drawn as randomize_params does
};

// A compiled model as one that trainers, plans and checkpointing take: its parameters are the trainable keys.
AnyModel trainable(const CompiledModel& model, const TrainableOptions& options = {});

}  // namespace capibara::models
