// Published weights: models in the form of GPT-2 and Llama from safetensors files.
#pragma once

#include <capibara/training/language_model.h>

#include <string>
#include <utility>

namespace capibara::training {

// The model of a folder with model.safetensors and config.json, as published: model_type gpt2 or llama.
// ValueError that names the field or tensor that is missing or has the wrong shape.
std::pair<LanguageModel, Parameters> load_pretrained(const std::string& folder);

}  // namespace capibara::training
