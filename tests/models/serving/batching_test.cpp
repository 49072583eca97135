// Requests that are decoded together give what each gives alone.
#include <capibara/random.h>
#include <capibara/training/serving.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace capibara::training {
namespace {

using End = ServingRequest::End;

struct Finished {
  std::vector<int32_t> tokens;
  End end;
  std::string error;
};

LanguageModel small_model(std::vector<std::string> layers = {"attention+mlp", "mamba", "attention+moe"}) {
  LanguageModelConfig config;
  config.vocabulary = 61, config.width = 32, config.heads = 4, config.key_heads = 2, config.hidden = 48;
  config.layers = std::move(layers);
  return LanguageModel(config);
}

// The request with functions that fulfil the promise.
ServingRequest recorded(ServingRequest request, const std::shared_ptr<std::promise<Finished>>& promise) {
  const auto tokens = std::make_shared<std::vector<int32_t>>();
  const auto inner = request.on_token;
  request.on_token = [=](int32_t token) {
    tokens->push_back(token);
    return !inner || inner(token);
  };
  request.on_end = [=](End end, const std::string& error) { promise->set_value({*tokens, end, error}); };
  return request;
}

std::future<Finished> begin(BatchGenerator& generator, ServingRequest request) {
  const auto promise = std::make_shared<std::promise<Finished>>();
  EXPECT_TRUE(generator.submit(recorded(std::move(request), promise)));
  return promise->get_future();
}

std::vector<int32_t> prompt_of(int length, int seed) {
  std::vector<int32_t> prompt;
  for (int i = 0; i < length; ++i) prompt.push_back((7 * i * i + 13 * seed + i) % 61);
  return prompt;
}

TEST(BatchGenerator, AnswersAreThoseOfOnePromptAlone) {
  const LanguageModel model = small_model();
  const Parameters parameters = model.init(jax::random::key(3));
  const Generator alone(model, parameters, 128);
  for (const int64_t slots : {1, 3}) {
    BatchGenerator generator(model, parameters, {.slots = slots, .capacity = 128});
    std::vector<std::future<Finished>> answers;
    std::vector<std::vector<int32_t>> prompts;
    for (int i = 0; i < 7; ++i) {  // more than there are slots, of different lengths
      prompts.push_back(prompt_of(1 + 11 * i, i));
      answers.push_back(
          begin(generator, {.prompt = prompts.back(), .max_new_tokens = 5 + 3 * i, .sampling = {.temperature = 0}}));
    }
    for (int i = 0; i < 7; ++i) {
      const Finished got = answers[static_cast<std::size_t>(i)].get();
      EXPECT_EQ(got.end, End::length) << got.error;
      EXPECT_EQ(got.tokens, alone.generate(prompts[static_cast<std::size_t>(i)], {.max_new_tokens = 5 + 3 * i})) << i;
    }
    const BatchGenerator::Counts counts = generator.counts();
    EXPECT_EQ(counts.finished, 7);
    EXPECT_EQ(counts.waiting, 0);
    EXPECT_EQ(counts.new_tokens, 7 * 5 + 3 * 21);
    EXPECT_EQ(counts.prompt_tokens, 7 + 11 * 21);
  }
}

TEST(BatchGenerator, EndsAtStopsTheCapacityAndWhenToldTo) {
  const LanguageModel model = small_model({"attention+mlp"});
  const Parameters parameters = model.init(jax::random::key(0));
  const std::vector<int32_t> prompt = prompt_of(5, 0);
  const std::vector<int32_t> whole = Generator(model, parameters, 32).generate(prompt, {.max_new_tokens = 100});
  ASSERT_EQ(whole.size(), 27u);  // the capacity less the prompt
  BatchGenerator generator(model, parameters, {.slots = 2, .capacity = 32});
  const SamplingOptions greedy = {.temperature = 0};

  Finished full = begin(generator, {.prompt = prompt, .max_new_tokens = 100, .sampling = greedy}).get();
  EXPECT_EQ(full.tokens, whole);
  EXPECT_EQ(full.end, End::length);

  Finished stopped =
      begin(generator, {.prompt = prompt, .max_new_tokens = 100, .sampling = greedy, .stop = {whole[4]}}).get();
  EXPECT_EQ(stopped.end, End::stop);
  const auto first = std::find(whole.begin(), whole.end(), whole[4]) - whole.begin();
  EXPECT_EQ(stopped.tokens, std::vector<int32_t>(whole.begin(), whole.begin() + first));  // without the stop itself

  int left = 3;
  Finished told = begin(generator, {.prompt = prompt,
                                    .max_new_tokens = 100,
                                    .sampling = greedy,
                                    .on_token = [&](int32_t) { return --left > 0; }})
                      .get();
  EXPECT_EQ(told.end, End::stop);
  EXPECT_EQ(told.tokens.size(), 3u);
}

TEST(BatchGenerator, RefusesWhatDoesNotFitAndWhatIsTooMuch) {
  const LanguageModel model = small_model({"attention+mlp"});
  const Parameters parameters = model.init(jax::random::key(0));
  EXPECT_THROW(BatchGenerator(model, parameters, {.slots = 0}), ValueError);
  EXPECT_THROW(BatchGenerator(model, parameters, {.capacity = 1}), ValueError);
  EXPECT_THROW(BatchGenerator(model, {}, {}), Error);
  BatchGenerator generator(model, parameters, {.slots = 1, .capacity = 16, .max_waiting = 1});
  EXPECT_THROW(generator.submit({.prompt = {}}), ValueError);
  EXPECT_THROW(generator.submit({.prompt = {61}}), ValueError);
  EXPECT_THROW(generator.submit({.prompt = {-1}}), ValueError);
  EXPECT_THROW(generator.submit({.prompt = prompt_of(16, 0)}), ValueError);
  EXPECT_THROW(generator.submit({.prompt = {1}, .max_new_tokens = 0}), ValueError);
  EXPECT_THROW(generator.submit({.prompt = {1}, .sampling = {.top_p = 7}}), ValueError);

  // One request is held at its first token, one waits, the third is too much.
  std::promise<void> begun, go_on;
  auto held = begin(generator, {.prompt = {1}, .max_new_tokens = 2, .on_token = [&, first = true](int32_t) mutable {
                                  if (std::exchange(first, false)) begun.set_value(), go_on.get_future().wait();
                                  return true;
                                }});
  begun.get_future().wait();
  auto waiting = begin(generator, {.prompt = {2}, .max_new_tokens = 2});
  EXPECT_EQ(generator.counts().waiting, 1);
  bool called = false;
  EXPECT_FALSE(generator.submit({.prompt = {3}, .on_end = [&](End, const std::string&) { called = true; }}));
  go_on.set_value();
  EXPECT_EQ(held.get().tokens.size(), 2u);
  EXPECT_EQ(waiting.get().tokens.size(), 2u);
  EXPECT_FALSE(called);
}

TEST(BatchGenerator, StoppingEndsEveryRequest) {
  const LanguageModel model = small_model({"attention+mlp"});
  const Parameters parameters = model.init(jax::random::key(0));
  BatchGenerator generator(model, parameters, {.slots = 2, .capacity = 4096});
  std::vector<std::future<Finished>> answers;
  for (int i = 0; i < 6; ++i) answers.push_back(begin(generator, {.prompt = {1, 2, i}, .max_new_tokens = 4000}));
  while (generator.counts().new_tokens == 0) std::this_thread::yield();
  generator.stop();
  for (auto& answer : answers) EXPECT_EQ(answer.get().end, End::cancelled);
  EXPECT_FALSE(generator.submit({.prompt = {1}}));
}

TEST(BatchGenerator, ARequestWithLogitsThatAreNotNumbersFailsAlone) {
  const LanguageModel model = small_model({"attention+mlp"});
  Parameters parameters = model.init(jax::random::key(0));
  // The embedding of token 5 has a NaN: prompts without it are not affected.
  Array table = parameters.at("embedding");
  parameters["embedding"] = table.at(5, 0).set(std::numeric_limits<float>::quiet_NaN());
  LanguageModelConfig config = model.config();
  config.tied = false;
  const LanguageModel untied(config);
  Parameters both = untied.init(jax::random::key(0));
  both["embedding"] = parameters["embedding"];
  BatchGenerator generator(untied, both, {.slots = 2, .capacity = 64});
  auto bad = begin(generator, {.prompt = {1, 5, 2}, .max_new_tokens = 4, .sampling = {.temperature = 0}});
  auto good = begin(generator, {.prompt = {1, 2}, .max_new_tokens = 4, .sampling = {.temperature = 0}, .stop = {5}});
  const Finished failed = bad.get();
  EXPECT_EQ(failed.end, End::failed);
  EXPECT_NE(failed.error.find("NaN"), std::string::npos) << failed.error;
  EXPECT_NE(good.get().end, End::failed);
}

}  // namespace
}  // namespace capibara::training
