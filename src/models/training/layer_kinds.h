// The layer kinds of LanguageModelConfig::layers, and properties of a config for the model protocol.
#pragma once

#include <capibara/training/language_model.h>

#include <string>

namespace capibara::training {

struct LayerKind {
  std::string mixer;         // attention or mamba
  std::string feed_forward;  // mlp, moe or nothing
};
// ValueError if the text is not a kind of layer.
LayerKind layer_kind(const std::string& text);

// Names of the dimensions of each parameter.
LogicalAxes logical_axes_of(const LanguageModelConfig& config);
ModelSizes sizes_of(const LanguageModel& model);

}  // namespace capibara::training
