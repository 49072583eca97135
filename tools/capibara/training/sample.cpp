// capibara sample and capibara chat: generate text with the model of a training run.
#include <cstdio>
#include <iostream>

#include <capibara/error.h>

#include "commands.h"

namespace capibara::command {

std::string folder_of(const Arguments& arguments) {
  if (arguments.words.size() > 1) throw UsageError{"one folder at most"};
  return arguments.words.empty() ? "build/demo" : arguments.words[0];
}

training::Trainer trained(const training::TrainingRun& run) {
  training::Trainer trainer = run.trainer();
  if (trainer.steps_done() == 0) throw ValueError(concat(run.folder(), " has no checkpoint yet"));
  return trainer;
}

namespace {

constexpr int64_t capacity = 1024;

training::GenerateOptions read_options(const Arguments& arguments) {
  training::GenerateOptions options;
  options.max_new_tokens = arguments.integer("tokens");
  options.temperature = arguments.number("temperature");
  options.top_k = arguments.integer("top-k");
  options.seed = static_cast<uint64_t>(arguments.integer("seed"));
  return options;
}

// The parameters of the newest checkpoint, with weights as --weights says.
training::Parameters read_weights(const training::TrainingRun& run, const Arguments& arguments) {
  return training::convert_weights(trained(run).parameters(), arguments.text("weights"));
}

void print_answer(const training::Generator& generator, const training::Tokenizer& tokenizer, const std::string& prompt,
                  const training::GenerateOptions& options, const std::atomic<bool>* stop) {
  std::vector<int32_t> tokens = tokenizer.encode(prompt);
  if (static_cast<int64_t>(tokens.size()) > capacity / 2) tokens.erase(tokens.begin(), tokens.end() - capacity / 2);
  generator.generate(tokens, options, [&](int32_t token) {
    const std::string text = tokenizer.decode(std::span(&token, 1));
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return !(stop && stop->load());
  });
}

}  // namespace

void print_sample(const training::TrainingRun& run, const training::Parameters& parameters, const std::string& prompt,
                  const training::GenerateOptions& options, const std::atomic<bool>* stop) {
  const training::Generator generator(run.model(), parameters, capacity);
  print_answer(generator, run.tokenizer(), prompt, options, stop);
}

int sample(const Arguments& arguments) {
  const training::TrainingRun run = training::TrainingRun::open(folder_of(arguments));
  const training::GenerateOptions options = read_options(arguments);
  const std::string prompt = arguments.text("prompt", "\n");
  if (prompt.empty()) throw UsageError{"--prompt needs at least one character"};
  const InterruptGuard guard;
  const training::Parameters parameters = read_weights(run, arguments);
  std::fputs(prompt.c_str(), stdout);
  print_sample(run, parameters, prompt, options, &guard.interrupted());
  std::puts("");
  return guard.interrupted() ? 128 + guard.caught() : 0;
}

int chat(const Arguments& arguments) {
  const training::TrainingRun run = training::TrainingRun::open(folder_of(arguments));
  training::GenerateOptions options = read_options(arguments);
  const training::Generator generator(run.model(), read_weights(run, arguments), capacity);
  std::printf("A model of %ld steps on %s; it continues what you type. An empty line or Ctrl-D ends.\n",
              static_cast<long>(run.config().trainer.steps), run.config().text.c_str());
  std::string line;
  for (;;) {
    std::fputs("> ", stdout);
    std::fflush(stdout);
    if (!std::getline(std::cin, line) || line.empty()) break;
    const InterruptGuard guard;  // Ctrl-C ends an answer
    print_answer(generator, run.tokenizer(), line, options, &guard.interrupted());
    std::puts("");
    ++options.seed;
  }
  std::puts("");
  return 0;
}

}  // namespace capibara::command
