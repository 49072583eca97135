// Compiled named models as trainable models.
#pragma once

#include <capibara/model.h>
#include <capibara/models/compile.h>

namespace capibara::models {

struct TrainableOptions {
  std::vector<std::string> batch =
      {};                           // the data key that each array of a batch is for; empty: data_keys() in their order
  std::string output = {};          // returned by apply; empty: the only output besides the loss
  std::string loss = "final_cost";  // the output to minimize, as named by TrainModel
  // Instead of an output: the loss as a function of the outputs and the batch, which may have additional arrays.
  std::function<Array(const ValueMap& outputs, const Arrays& batch)> loss_of = {};
  ValueMap parameters = {};  // initial values; missing ones are drawn as randomize_params does
};

// A compiled model for trainers, plans and checkpointing: its parameters are the trainable keys.
AnyModel trainable(const CompiledModel& model, const TrainableOptions& options = {});

}  // namespace capibara::models
