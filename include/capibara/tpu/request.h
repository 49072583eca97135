// Requests to the planner: any model by its sizes, a slice, a batch; and the assumptions for missing fields.
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

// A model as seen by the planner.
struct ModelDescription {
  Architecture sizes;
  double parameters = 0;                 // as counted by the model, or else from its sizes
  bool inferred = false;                 // some sizes are inferred from the names and shapes of parameters
  std::vector<std::string> assumptions;  // as text
};
// Sizes that the model does not state are filled in, and recorded in `assumptions`. TPUError for unknown presets,
// TypeError if layers or width are unknown; both begin with `operation`.
ModelDescription describe(const PlannedModel& model, const std::string& operation = "plan");

// A modelled figure, or the reason why there is none.
struct Figure {
  std::optional<double> value = {};
  std::string origin = {};  // "modelled for v4-8 with 4 sequences of 2048", or the reason for an absent value
};

struct PlanRequest {
  PlannedModel model;
  std::string tpu = {};                   // a slice such as v4-8; empty: assumed
  int64_t sequence_length = 2048;         // tokens
  std::optional<double> batch_size = {};  // sequences of the whole job; absent: one per device
  std::string mesh = {};                  // fsdp=16,tensor=4; empty: fsdp, and tensor where devices share a sequence
  std::string remat = "full";             // none, minimal, qkv, full, offload
  bool flash = true;                      // attention by a kernel that does not write its scores to memory
};

// A request with assumptions for all missing fields.
struct CompletedRequest {
  Training training;
  std::string tpu;
  double batch_size = 0;
  std::vector<std::string> assumed;  // as text: what was inferred about the model, and which fields were missing

  std::string origin() const;  // modelled for TPU with N sequences of L; assumed: ...
};
// TPUError, beginning with `operation`, for invalid slices, meshes and numbers.
CompletedRequest complete(const PlanRequest& request, const std::string& operation = "plan",
                          const std::string& default_tpu = "v4-8");

}  // namespace capibara::tpu
