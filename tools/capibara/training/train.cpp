// capibara demo and capibara train: train a small language model on text.
#include <chrono>
#include <cstdio>
#include <filesystem>

#include <capibara/error.h>
#include <capibara/version.h>

#include "commands.h"

namespace capibara::command {

namespace {

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t comma = text.find(','); comma != std::string::npos; comma = text.find(',', start)) {
    parts.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

training::RunConfig demo_config() {
  training::RunConfig config;
  config.text = std::string(CAPIBARA_EXAMPLES_FOLDER) + "/data/pride_and_prejudice.txt";
  config.model.vocabulary = 512;
  config.model.width = 128;
  config.model.layers = {"attention+mlp", "mamba+mlp", "attention+moe"};
  config.model.hidden = 256;
  config.trainer.steps = 400;
  config.trainer.batch = 16;
  config.trainer.length = 128;
  config.trainer.learning_rate = 4e-3;
  return config;
}

void read_options(const Arguments& arguments, training::RunConfig& config) {
  auto integer = [&](const char* name, int64_t& field) { field = arguments.integer(name, static_cast<int>(field)); };
  auto number = [&](const char* name, double& field) { field = arguments.number(name, field); };
  training::LanguageModelConfig& model = config.model;
  training::TrainerConfig& trainer = config.trainer;
  integer("vocabulary", model.vocabulary), integer("width", model.width), integer("heads", model.heads);
  integer("hidden", model.hidden), integer("experts", model.experts), integer("steps", trainer.steps);
  if (arguments.has("heads")) model.key_heads = model.heads;
  integer("batch", trainer.batch), integer("length", trainer.length), integer("accumulate", trainer.accumulate);
  integer("warmup", trainer.warmup), integer("checkpoint-every", trainer.checkpoint_every);
  integer("remat", model.checkpoint_every_n_layers);
  number("learning-rate", trainer.learning_rate), number("weight-decay", trainer.weight_decay);
  number("held-out", config.held_out);
  trainer.seed = static_cast<uint64_t>(arguments.integer("seed", static_cast<int>(trainer.seed)));
  trainer.optimizer = arguments.text("optimizer", trainer.optimizer);
  if (arguments.has("layers")) model.layers = split_list(arguments.text("layers", ""));
  if (arguments.has("bf16")) trainer.compute = DType::bfloat16;
}

int train_run(const training::RunConfig& config, const std::string& folder, const std::string& prompt) {
  const training::TrainingRun run = training::TrainingRun::begin(folder, config);
  const training::LanguageModel model = run.model();
  std::printf("capibara %s trains a language model of %.2f million parameters on %s\n", capibara::version(),
              static_cast<double>(model.parameter_count()) / 1e6, run.config().text.c_str());
  std::string layers;
  for (const std::string& layer : model.config().layers) layers += (layers.empty() ? "" : ", ") + layer;
  std::printf("  layers: %s; %ld tokens of %ld kinds\n", layers.c_str(), static_cast<long>(run.tokens().size()),
              static_cast<long>(run.tokenizer().vocabulary()));
  training::Trainer trainer = run.trainer();
  if (trainer.steps_done() > 0) std::printf("  goes on after step %ld\n", static_cast<long>(trainer.steps_done()));
  if (!train_visibly(run, trainer)) {
    std::printf("\n  stopped after step %ld and saved; the same command goes on from there\n",
                static_cast<long>(trainer.steps_done()));
    return 130;
  }
  const double own =
      training::bits_per_byte(trainer, run.tokens(), run.tokenizer(), run.first_held_out(), run.tokens().size());
  const double bigram = training::bigram_bits_per_byte(run.training_text(), run.held_out_text());
  std::printf("  held-out text: %.3f bits per byte; a bigram model of bytes: %.3f; margin %.3f\n", own, bigram,
              bigram - own);
  std::printf("\n%s", prompt.c_str());
  print_sample(run, trainer.parameters(), prompt, {.max_new_tokens = 160, .temperature = 0.8, .top_k = 40});
  std::printf("\n\n  loss curve   %s\n  checkpoint   %s\n  more text    %s sample %s --prompt '...'\n",
              run.curve_path().c_str(), run.config().trainer.folder.c_str(), program_name().c_str(), folder.c_str());
  return own < bigram ? 0 : 1;
}

}  // namespace

int demo(const Arguments& arguments) {
  if (!arguments.words.empty()) throw UsageError{concat("takes no words, got '", arguments.words[0], "'")};
  training::RunConfig config = demo_config();
  read_options(arguments, config);
  const std::string folder = arguments.text("folder", "build/demo");
  // The demo shows a whole training each time: only one that was interrupted goes on.
  if (std::filesystem::exists(folder + "/config.json")) {
    bool again = true;
    try {
      const training::TrainingRun before = training::TrainingRun::begin(folder, config);
      again = before.trainer().steps_done() >= before.config().trainer.steps;
    } catch (const ValueError&) {  // a run of other settings
    }
    if (again) std::filesystem::remove_all(folder);
  }
  return train_run(config, folder, "\"My dear Mr. Bennet,\" said");
}

int train(const Arguments& arguments) {
  if (arguments.words.size() != 1) throw UsageError{"one file or folder of text is needed"};
  training::RunConfig config = demo_config();
  config.text = arguments.words[0];
  read_options(arguments, config);
  return train_run(config, arguments.text("folder", "run"), arguments.text("prompt", "\n"));
}

std::vector<Command> training_commands() {
  const std::vector<std::string> options = {
      "folder", "steps",    "batch",  "length",    "accumulate",    "vocabulary",   "width",  "heads",
      "hidden", "experts",  "layers", "optimizer", "learning-rate", "weight-decay", "warmup", "checkpoint-every",
      "remat",  "held-out", "seed",   "prompt"};
  return {
      {"demo",
       "[--folder FOLDER] [options of train]",
       "Trains a small language model on the text of the repository, in about two minutes, and samples from it.",
       options,
       {"bf16"},
       demo},
      {"train",
       "TEXT [--folder run] [--steps N] [--layers attention+mlp,mamba,attention+moe] [--width N] [--heads N] [--hidden "
       "N] "
       "[--experts N] [--vocabulary N] [--batch N] [--length N] [--accumulate N] [--optimizer NAME] [--learning-rate "
       "X] "
       "[--weight-decay X] [--warmup N] [--checkpoint-every N] [--remat N] [--held-out SHARE] [--seed N] [--prompt "
       "TEXT] "
       "[--bf16]",
       "Trains a language model on a file or folder of text; Ctrl-C saves, and the same command goes on.",
       options,
       {"bf16"},
       train},
      {"sample",
       "[FOLDER] [--prompt TEXT] [--tokens N] [--temperature X] [--top-k N] [--seed N] [--weights "
       "float32|bfloat16|int8]",
       "Prints text that the model of a training run writes.",
       {"prompt", "tokens", "temperature", "top-k", "seed", "weights"},
       {},
       sample},
      {"chat",
       "[FOLDER] [--tokens N] [--temperature X] [--top-k N] [--seed N] [--weights float32|bfloat16|int8]",
       "Reads lines and lets the model of a training run go on from each.",
       {"tokens", "temperature", "top-k", "seed", "weights"},
       {},
       chat},
  };
}

}  // namespace capibara::command
