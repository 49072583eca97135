// Text from a language model: one token after the other, with the keys and values of those before kept.
#pragma once

#include <capibara/training/language_model.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace capibara::training {

struct GenerateOptions {
  int64_t max_new_tokens = 100;
  double temperature = 0;  // 0: the likeliest token
  int64_t top_k = 0;       // of how many likeliest tokens one is drawn; 0: of all
  uint64_t seed = 0;
  std::vector<int32_t> stop = {};  // tokens after which it ends
};

// Generates with one model and its parameters; its programs are compiled once.
class Generator {
 public:
  // `capacity` is the greatest number of tokens, prompt and answer together. Keys and values are kept in the dtype of
  // the norms. Weights may be those of convert_weights.
  Generator(LanguageModel model, Parameters parameters, int64_t capacity);

  // The tokens that follow the prompt. `on_token` sees each at once; false from it ends the text.
  using OnToken = std::function<bool(int32_t)>;
  std::vector<int32_t> generate(std::span<const int32_t> prompt, const GenerateOptions& options = {},
                                const OnToken& on_token = {}) const;

 private:
  struct Programs;
  LanguageModel model_;
  Parameters parameters_;
  int64_t capacity_;
  std::shared_ptr<const Programs> programs_;
};

}  // namespace capibara::training
