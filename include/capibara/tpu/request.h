// What a plan is asked for: any model by its sizes, a slice, a batch; and what is assumed where nothing was given.
#pragma once

#include <capibara/model.h>
#include <capibara/tpu/error.h>
#include <capibara/tpu/plan.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace capibara::tpu {

// A model to plan for: the name of a preset, its sizes, or any model of the protocol.
class PlannedModel {
 public:
  PlannedModel(const char* preset) : model_(std::string(preset)) {}
  PlannedModel(std::string preset) : model_(std::move(preset)) {}
  PlannedModel(Architecture sizes) : model_(std::move(sizes)) {}
  PlannedModel(AnyModel model) : model_(std::move(model)) {}
  // The name and the sizes of a model of the protocol.
  PlannedModel(std::string name, ModelSizes sizes) : model_(std::pair(std::move(name), std::move(sizes))) {}

  const auto& given() const { return model_; }

 private:
  std::variant<std::string, Architecture, AnyModel, std::pair<std::string, ModelSizes>> model_;
};

// A model as the planner reads it.
struct ModelDescription {
  Architecture sizes;
  double parameters = 0;                 // as the model counts them, or else as its sizes do
  bool inferred = false;                 // some sizes are a guess from the names and shapes of parameters
  std::vector<std::string> assumptions;  // in words
};
// Sizes that the model does not state are filled in, and said in `assumptions`. TPUError for presets that there are
// not, TypeError where layers or width are unknown; both begin with `operation`.
ModelDescription describe(const PlannedModel& model, const std::string& operation = "plan");

// A modelled figure, or why there is none.
struct Figure {
  std::optional<double> value = {};
  std::string origin = {};  // "modelled for v4-8 with 4 sequences of 2048", or the reason of an absent one
};

struct PlanRequest {
  PlannedModel model;
  std::string tpu = {};                   // a slice such as v4-8; empty: assumed
  int64_t sequence_length = 2048;         // tokens
  std::optional<double> batch_size = {};  // sequences of the whole job; absent: one on each device
  std::string mesh = {};                  // fsdp=16,tensor=4; empty: fsdp, and tensor where devices share a sequence
  std::string remat = "full";             // none, minimal, qkv, full, offload
  bool flash = true;                      // attention by a kernel that does not write its scores to memory
};

// A request with everything that was not given assumed.
struct CompletedRequest {
  Training training;
  std::string tpu;
  double batch_size = 0;
  std::vector<std::string> assumed;  // in words: what was inferred of the model, and what was not given

  std::string origin() const;  // modelled for TPU with N sequences of L; assumed: ...
};
// TPUError, beginning with `operation`, for slices, meshes and numbers that there are not.
CompletedRequest complete(const PlanRequest& request, const std::string& operation = "plan",
                          const std::string& default_tpu = "v4-8");

}  // namespace capibara::tpu
