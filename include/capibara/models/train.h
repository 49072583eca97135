// TrainModel: a model with losses, regularizations and metrics, whose output final_cost is minimized by training.
#pragma once

#include <capibara/models/model.h>

namespace capibara::models {

class TrainModel {
 public:
  explicit TrainModel(const Model& model);

  // Adds a loss; `reduce_steps` (Mean, Sum, Max, ...) make it a scalar, by default Mean. Connections name keys of the
  // model, or new inputs such as the target.
  void add_loss(const Model& loss, const std::vector<Model>& reduce_steps, const Entries& connections,
                const Value& coefficient = {});
  // Adds a penalty on a parameter. `input` is a key of the model, or a regular expression for several; `key` is the
  // penalty's key to connect it to, `others` are connections of its other keys.
  void add_regularization(const Model& penalty, const Value& coefficient, const std::string& input,
                          bool pattern = false, const std::string& key = "input", const Entries& others = {});
  // Adds a model whose output is reported under a name but not trained.
  void add_metric(const Model& metric, const std::vector<Model>& reduce_steps, const Entries& connections,
                  const std::string& name = {});
  // Sets how several losses are combined into one number; by default their sum.
  void set_loss_combiner(const Model& combiner);

  // The complete model: the outputs of the given one, and final_cost.
  Model model();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace capibara::models
