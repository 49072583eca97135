// Text generation by a language model: one token at a time, with cached keys and values.
#pragma once

#include <capibara/training/language_model.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace capibara::training {

struct GenerateOptions {
  int64_t max_new_tokens = 100;
  double temperature = 0;  // 0: the most likely token
  int64_t top_k = 0;       // draw from this many of the most likely tokens; 0: from all
  uint64_t seed = 0;
  std::vector<int32_t> stop = {};  // tokens that end the text
};

// Generates with one model and its parameters; the programs are compiled once.
class Generator {
 public:
  // `capacity` is the maximum number of tokens, prompt and answer together. Keys and values are cached in the dtype of
  // the norms. The weights may be those of convert_weights.
  Generator(LanguageModel model, Parameters parameters, int64_t capacity);

  // The tokens that follow the prompt. `on_token` receives each one immediately; it ends the text by returning false.
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
