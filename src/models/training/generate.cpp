// Generation: the prompt in chunks of few sizes, then repeated calls of a one-token program.
#include <capibara/training/generate.h>

#include <capibara/jit.h>
#include <capibara/lax.h>
#include <capibara/random.h>

#include <algorithm>
#include <cmath>

#include "models/training/generation.h"

namespace capibara::training {

namespace lax = jax::lax;

namespace {

struct Extended {
  Array logits;  // [vocabulary], of the last token
  ModelCache cache;
};
CAPIBARA_TREE(Extended, logits, cache)

struct Decoded {
  Array token;
  ModelCache cache;
};
CAPIBARA_TREE(Decoded, token, cache)

// The most likely token, or one drawn by the Gumbel trick.
Array choose_token(const Array& logits, const Array& temperature, const Array& key, int64_t top_k, bool greedy) {
  Array scores = lax::convert_element_type(logits, DType::float32);
  if (greedy) return lax::argmax(scores, 0);
  scores = scores / temperature;
  if (top_k > 0 && top_k < scores.size()) {
    Array least = lax::index_in_dim(lax::top_k(scores, top_k).first, top_k - 1, 0, true);
    scores = lax::select(lax::lt(scores, lax::broadcast_in_dim(least, scores.shape(), {0})),
                         lax::full_like(scores, -INFINITY), scores);
  }
  Array noise = jax::random::gumbel(key, {.shape = scores.shape()});
  return lax::argmax(scores + noise, 0);
}

}  // namespace

void require_generates(const char* what, const LanguageModel& model, const Parameters& parameters, int64_t capacity) {
  if (capacity < 2) throw ValueError(concat(what, ": capacity must be at least 2 tokens, got ", capacity));
  if (model.config().positions == "learned" && capacity > model.config().max_length) {
    throw ValueError(
        concat(what, ": capacity ", capacity, " is beyond the model's max_length ", model.config().max_length));
  }
  for (const auto& [name, shape] : model.shapes()) {
    // A matrix [inputs, outputs], or a table [outputs, inputs], as codes; experts have several.
    const auto outputs = name == "embedding" ? shape.size() - 2 : shape.size() - 1;
    if (const auto codes = find_codes(parameters, name, 0)) {
      if (codes->codes.ndim() > 1 && codes->codes.shape(shape.size() == 3 ? 1 : 0) == shape[outputs]) continue;
      throw ValueError(concat(what, ": the codes of parameter '", name, "' have type ", to_string(codes->codes.type()),
                              ", which does not fit the model's config"));
    }
    const Array& array = parameter(parameters, name);
    if (array.shape() == shape) continue;
    throw ValueError(concat(what, ": parameter '", name, "' has type ", to_string(array.type()),
                            ", which does not fit the model's config"));
  }
}

void require_prompt(const char* what, std::span<const int32_t> prompt, int64_t vocabulary, int64_t capacity) {
  const auto length = static_cast<int64_t>(prompt.size());
  if (length == 0) throw ValueError(concat(what, ": the prompt must have at least one token"));
  if (length >= capacity) {
    throw ValueError(concat(what, ": a prompt of ", length, " tokens leaves no room in the capacity of ", capacity));
  }
  for (int32_t token : prompt) {
    if (token >= 0 && token < vocabulary) continue;
    throw ValueError(concat(what, ": token ", token, " of the prompt is outside of the vocabulary of ", vocabulary));
  }
}

int64_t prompt_chunk(int64_t left) {
  int64_t chunk = 256;
  while (chunk > left && chunk > 1) chunk /= 4;
  return chunk;
}

struct Generator::Programs {
  std::function<Extended(const Parameters&, const Array&, ModelCache)> extend;
  // (parameters, token, cache, temperature, key, top_k, greedy)
  std::function<Decoded(const Parameters&, const Array&, ModelCache, const Array&, const Array&, int64_t, bool)> decode;
};

Generator::Generator(LanguageModel model, Parameters parameters, int64_t capacity)
    : model_(std::move(model)), parameters_(std::move(parameters)), capacity_(capacity) {
  require_generates("Generator", model_, parameters_, capacity);
  auto programs = std::make_shared<Programs>();
  programs->extend = jax::jit(
      [model = model_](const Parameters& p, const Array& tokens, const ModelCache& cache) {
        auto [logits, next] = model.extend(p, tokens, cache);
        Array last = lax::index_in_dim(lax::squeeze(logits, {0}), logits.shape(1) - 1, 0, false);
        return Extended{last, next};
      },
      {.donate_argnums = {2}, .name = "extend"});
  programs->decode = jax::jit(
      [model = model_](const Parameters& p, const Array& token, const ModelCache& cache, const Array& temperature,
                       const Array& key, int64_t top_k, bool greedy) {
        auto [logits, next] = model.extend(p, lax::reshape(token, {1, 1}), cache);
        Array own = jax::random::fold_in(key, next.position);
        return Decoded{choose_token(lax::reshape(logits, {logits.size()}), temperature, own, top_k, greedy), next};
      },
      {.static_argnums = {5, 6}, .donate_argnums = {2}, .name = "decode"});
  programs_ = std::move(programs);
}

std::vector<int32_t> Generator::generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                         const OnToken& on_token) const {
  const auto length = static_cast<int64_t>(prompt.size());
  const auto require = [](bool right, const char* name, const auto& got) {
    if (!right) throw ValueError(concat("generate: expected 0 or more (argument '", name, "'), got ", got));
  };
  require(options.max_new_tokens >= 0, "max_new_tokens", options.max_new_tokens);
  require(options.temperature >= 0, "temperature", options.temperature);  // rejects NaN too
  require(options.top_k >= 0, "top_k", options.top_k);
  require_prompt("generate", prompt, model_.config().vocabulary, capacity_);
  const bool greedy = options.temperature <= 0;
  const Array temperature = lax::full({}, greedy ? 1.0f : static_cast<float>(options.temperature));
  const Array key = jax::random::key(static_cast<int64_t>(options.seed));
  ModelCache cache = model_.make_cache(1, capacity_, parameter(parameters_, "norm.scale").dtype());
  for (int64_t done = 0; done < length - 1;) {  // all but the last token
    const int64_t chunk = prompt_chunk(length - 1 - done);
    const auto part = prompt.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(chunk));
    Array tokens = array<int32_t>(std::vector<int32_t>(part.begin(), part.end()), Shape{1, chunk});
    cache = programs_->extend(parameters_, tokens, std::move(cache)).cache;
    done += chunk;
  }
  std::vector<int32_t> answer;
  Array token = array<int32_t>({prompt.back()});
  const int64_t room = std::min(options.max_new_tokens, capacity_ - length);
  for (int64_t i = 0; i < room; ++i) {
    Decoded next = programs_->decode(parameters_, token, std::move(cache), temperature, key, options.top_k, greedy);
    cache = std::move(next.cache);
    token = std::move(next.token);
    answer.push_back(token.item<int32_t>());
    if (on_token && !on_token(answer.back())) break;
    if (std::find(options.stop.begin(), options.stop.end(), answer.back()) != options.stop.end()) break;
  }
  return answer;
}

}  // namespace capibara::training
