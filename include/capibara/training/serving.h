// Many prompts at once: a language model that decodes requests together as they come and go.
#pragma once

#include <capibara/training/generate.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace capibara::training {

// How a token is drawn from its logits; the restrictions apply in the order of the fields.
struct SamplingOptions {
  double temperature = 1;  // 0: the most likely token
  int64_t top_k = 0;       // from this many of the most likely tokens; 0: from all
  double top_p = 1;        // from the fewest likely tokens whose probabilities sum to this
  double min_p = 0;        // from tokens that are at least this likely, relative to the most likely one
  uint64_t seed = 0;
};

// The token drawn from logits, as the seed and the token's position in the text decide.
int32_t sample_token(std::span<const float> logits, const SamplingOptions& options, int64_t position);

// A prompt to be continued. The functions are called on the generator's thread.
struct ServingRequest {
  enum class End {
    stop,       // a token of `stop`, or on_token returned false
    length,     // max_new_tokens, or the capacity
    cancelled,  // the generator ended
    failed      // by the error that on_end receives
  };

  std::vector<int32_t> prompt;
  int64_t max_new_tokens = 16;
  SamplingOptions sampling = {};
  std::vector<int32_t> stop = {};              // tokens that end the text
  std::function<bool(int32_t)> on_token = {};  // each new token; false ends the text
  std::function<bool()> abandoned = {};        // true ends the text before its prompt is read
  std::function<void(End, const std::string& error)> on_end = {};
};

struct BatchOptions {
  int64_t slots = 4;         // requests that are decoded together
  int64_t capacity = 1024;   // tokens of a request, prompt and answer together
  int64_t max_waiting = 64;  // requests beside those, which wait for a slot
};

// Continuous batching: each step of the model decodes one token of every running request; one that ends makes room for
// the next in line, whose prompt is read in chunks between steps.
class BatchGenerator {
 public:
  struct Counts {
    int64_t running = 0, waiting = 0, finished = 0, prompt_tokens = 0, new_tokens = 0;
  };

  // The weights may be those of convert_weights. ValueError if parameters and model do not fit.
  BatchGenerator(LanguageModel model, Parameters parameters, const BatchOptions& options = {});
  // Ends all requests.
  ~BatchGenerator();
  BatchGenerator(const BatchGenerator&) = delete;
  BatchGenerator& operator=(const BatchGenerator&) = delete;

  // Puts a request in line; false, and no call of its functions, if max_waiting requests wait already. ValueError for
  // an empty or too long prompt, and for tokens or sampling options out of range.
  bool submit(ServingRequest request);
  // Ends all requests as cancelled, and waits until that is done. Later requests are not accepted.
  void stop();
  Counts counts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace capibara::training
