// What the texts of LanguageModelConfig::layers mean.
#pragma once

#include <string>

namespace capibara::training {

struct LayerKind {
  std::string mixer;         // attention or mamba
  std::string feed_forward;  // mlp, moe or nothing
};
// ValueError where the text names no kind of layer.
LayerKind layer_kind(const std::string& text);

}  // namespace capibara::training
