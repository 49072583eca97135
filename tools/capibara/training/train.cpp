// capibara demo and capibara train: train a small language model on text.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

#include <capibara/checkpoint.h>
#include <capibara/error.h>
#include <capibara/version.h>

#include "commands.h"

namespace capibara::command {

namespace {

constexpr char demo_prompt[] = "\"My dear Mr. Bennet,\" said";

training::RunConfig demo_config() {
  training::RunConfig config;
  config.text = data_file("pride_and_prejudice.txt");
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
  integer("keep", trainer.keep);
  integer("remat", model.checkpoint_every_n_layers);
  number("learning-rate", trainer.learning_rate), number("weight-decay", trainer.weight_decay);
  number("held-out", config.held_out);
  trainer.seed = static_cast<uint64_t>(arguments.integer("seed", static_cast<int>(trainer.seed)));
  trainer.optimizer = arguments.text("optimizer", trainer.optimizer);
  if (arguments.has("layers")) model.layers = split(arguments.text("layers", ""), ',');
  if (arguments.has("bf16")) trainer.compute = DType::bfloat16;
  if (arguments.has("mesh")) trainer.mesh = training::training_mesh_from_text(arguments.text("mesh", ""));
  integer("num-workers", trainer.num_workers);
}

// Result of a finished run; `bigram` is 0 if too little text was held out to compute it.
struct Outcome {
  int code = 0;  // 128 + signal if one stopped it
  double own = 0, bigram = 0;
};

void print_beginning(const training::TrainingRun& run, const training::Trainer& trainer) {
  const training::LanguageModel model = run.model();
  std::printf("capibara %s trains a language model of %.2f million parameters on %s\n", capibara::version(),
              static_cast<double>(model.parameter_count()) / 1e6, run.config().text.c_str());
  std::string layers;
  for (const std::string& layer : model.config().layers) layers += (layers.empty() ? "" : ", ") + layer;
  std::printf("  layers: %s; %ld tokens of %ld kinds\n", layers.c_str(), static_cast<long>(run.tokens().size()),
              static_cast<long>(run.tokenizer().vocabulary()));
  if (trainer.steps_done() > 0) std::printf("  continues after step %ld\n", static_cast<long>(trainer.steps_done()));
  if (run.extended_from() > 0) {
    std::printf("  extended from %ld to %ld steps: the learning rate follows the cosine to step %ld, now %.3g\n",
                static_cast<long>(run.extended_from()), static_cast<long>(trainer.config().steps),
                static_cast<long>(trainer.config().steps), trainer.learning_rate());
  }
  std::fflush(stdout);
}

Outcome train_run(const training::TrainingRun& run, const std::string& prompt) {
  training::Trainer trainer = run.trainer();
  print_beginning(run, trainer);
  if (const int signal = train_visibly(run, trainer)) {
    const bool saved = trainer.steps_done() > 0;
    std::printf("\n  stopped (%s) after step %ld%s; the same command continues from there\n", strsignal(signal),
                static_cast<long>(trainer.steps_done()), saved ? " and saved" : "");
    return {128 + signal};
  }
  Outcome outcome;
  const int64_t held_out = run.tokens().size() - run.first_held_out(),
                window = trainer.config().batch * trainer.config().length + 1;
  if (held_out >= window) {
    outcome.own =
        training::bits_per_byte(trainer, run.tokens(), run.tokenizer(), run.first_held_out(), run.tokens().size());
    outcome.bigram = training::bigram_bits_per_byte(run.training_text(), run.held_out_text());
    std::printf("  held-out text: %.3f bits per byte; a bigram model of bytes: %.3f; margin %.3f\n", outcome.own,
                outcome.bigram, outcome.bigram - outcome.own);
  } else {
    std::printf("  held-out text: not measured, its %ld tokens are fewer than one batch of %ld\n",
                static_cast<long>(held_out), static_cast<long>(window));
  }
  std::printf("\n%s", prompt.c_str());
  print_sample(run, trainer.parameters(), prompt, {.max_new_tokens = 160, .temperature = 0.8, .top_k = 40});
  std::printf("\n\n  loss curve   %s\n  checkpoint   %s\n  more text    %s sample %s --prompt '...'\n",
              run.curve_path().c_str(), run.config().trainer.folder.c_str(), program_name().c_str(),
              run.folder().c_str());
  return outcome;
}

std::string prompt_of(const Arguments& arguments, const std::string& standard) {
  const std::string prompt = arguments.text("prompt", standard);
  if (prompt.empty()) throw UsageError{"--prompt needs at least one character"};
  return prompt;
}

// True if the run in a folder has to be restarted: it is complete, or has other settings.
bool is_over(const training::TrainingRun& run, const training::RunConfig& now) {
  training::RunConfig there = run.config();
  const std::string checkpoints = there.trainer.folder;
  if (std::filesystem::exists(checkpoints) &&
      Checkpointer(checkpoints).latest_step().value_or(0) >= there.trainer.steps)
    return true;
  there.model.vocabulary = std::exchange(there.vocabulary_limit, 0);
  there.trainer.checkpoint_every = now.trainer.checkpoint_every;
  there.trainer.keep = now.trainer.keep;
  return to_json(there) != to_json(now);
}

// The shortest form: 0.004, 512.
std::string shown(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

std::vector<Option> training_options(const std::string& folder, const std::string& prompt) {
  const training::RunConfig config = demo_config();
  const training::LanguageModelConfig& model = config.model;
  const training::TrainerConfig& trainer = config.trainer;
  auto count = [](int64_t value) { return std::to_string(value); };
  std::string layers;
  for (const std::string& layer : model.layers) layers += (layers.empty() ? "" : ",") + layer;
  return {
      {"folder", "FOLDER", "of the run: settings, tokens, losses, checkpoints", folder},
      {"steps", "N", "of training; more than a run had extend it", count(trainer.steps)},
      {"batch", "N", "windows of text in a batch", count(trainer.batch)},
      {"length", "N", "tokens of a window", count(trainer.length)},
      {"accumulate", "N", "batches whose gradients are averaged in one step", count(trainer.accumulate)},
      {"layers", "LIST", "attention or mamba, alone or with +mlp or +moe", layers},
      {"width", "N", "of the model", count(model.width)},
      {"heads", "N", "of attention", count(model.heads)},
      {"hidden", "N", "width inside of mlp and moe", count(model.hidden)},
      {"experts", "N", "of moe", count(model.experts)},
      {"vocabulary", "N", "tokens that the tokenizer may have, at least 256", count(model.vocabulary)},
      {"optimizer", "NAME", "sgd, momentum, adam, adamw, lion, adafactor or muon", trainer.optimizer},
      {"learning-rate", "X", "after the warm-up; then a cosine to a tenth of it", shown(trainer.learning_rate)},
      {"weight-decay", "X", "of adamw, lion and muon", shown(trainer.weight_decay)},
      {"warmup", "N", "steps until the learning rate is reached", count(trainer.warmup)},
      {"checkpoint-every", "N", "steps between checkpoints", count(trainer.checkpoint_every)},
      {"keep", "N", "newest checkpoints that are kept", count(trainer.keep)},
      {"remat", "N", "layers of a group that is computed again in the backward pass; 0: none",
       count(model.checkpoint_every_n_layers)},
      {"held-out", "SHARE", "of the tokens, at the end, that training does not see; 0 to 0.5", shown(config.held_out)},
      {"seed", "N", "of the parameters and of the order of the text", count(static_cast<int64_t>(trainer.seed))},
      {"prompt", "TEXT", "that the sample at the end continues", prompt},
      {"bf16", "", "compute in bfloat16; parameters stay float32", ""},
      {"mesh", "AXES",
       "devices of data, fsdp, expert, sequence, stages and tensor, as data=2,fsdp=4; JAX_NUM_CPU_DEVICES "
       "says how many there are",
       "one device"},
      {"num-workers", "N", "threads that prepare batches", count(trainer.num_workers)},
  };
}

std::vector<Option> sampling_options(bool with_prompt) {
  std::vector<Option> rows = {
      {"tokens", "N", "that are written", "200"},
      {"temperature", "X", "0: always the likeliest token", "0.8"},
      {"top-k", "N", "likeliest tokens that one is drawn from; 0: all", "40"},
      {"seed", "N", "of the draws", "0"},
      {"weights", "KIND", "how they are stored while sampling: float32, bfloat16, int8, int4 or vq", "float32"},
  };
  if (with_prompt) rows.insert(rows.begin(), {"prompt", "TEXT", "that the text continues", "a new line"});
  return rows;
}

constexpr char demo_folder[] = "build/demo", train_folder[] = "capibara-run";

}  // namespace

int demo(const Arguments& arguments) {
  if (!arguments.words.empty()) throw UsageError{concat("takes no words, got '", arguments.words[0], "'")};
  training::RunConfig config = demo_config();
  read_options(arguments, config);
  const std::string folder = arguments.text("folder", demo_folder), prompt = prompt_of(arguments, demo_prompt);
  // The demo shows a whole training run each time: only an interrupted one is resumed.
  if (training::TrainingRun::exists(folder) && is_over(training::TrainingRun::open(folder), config))
    training::TrainingRun::clear(folder, "demo");
  const Outcome outcome = train_run(training::TrainingRun::begin(folder, config, "demo"), prompt);
  if (outcome.code != 0 || outcome.own < outcome.bigram) return outcome.code;
  std::fprintf(stderr, "capibara demo: the model is no better than a bigram model of bytes\n");
  return 1;
}

int train(const Arguments& arguments) {
  if (arguments.words.size() != 1) throw UsageError{"one file or folder of text is needed"};
  training::RunConfig config = demo_config();
  config.text = arguments.words[0];
  read_options(arguments, config);
  const std::string prompt = prompt_of(arguments, "\n");
  return train_run(training::TrainingRun::begin(arguments.text("folder", train_folder), config), prompt).code;
}

std::vector<Command> training_commands() {
  return {
      {"demo",
       "Trains a small language model on the text of the repository, in about two minutes, and samples from it.",
       {{"", {"folder", "..."}}},
       training_options(demo_folder, demo_prompt),
       demo,
       "A finished demo in the folder is replaced; an interrupted one continues."},
      {"train",
       "Trains a language model on a file or folder of text.",
       {{"TEXT", {"folder", "steps", "..."}}},
       training_options(train_folder, "a new line"),
       train,
       "Ctrl-C, SIGTERM and SIGHUP save a checkpoint; the same command continues from it."},
      {"sample",
       "Prints text that the model of a training run writes.",
       {{"[FOLDER]", {"prompt", "tokens", "..."}}},
       sampling_options(true),
       sample,
       concat("Without FOLDER: the run in ", demo_folder, ".")},
      {"chat",
       "Reads lines and lets the model of a training run continue each.",
       {{"[FOLDER]", {"tokens", "..."}}},
       sampling_options(false),
       chat,
       concat("Without FOLDER: the run in ", demo_folder, ".")},
  };
}

}  // namespace capibara::command
