// The folder of a training run: what is trained, on which text, its tokens, checkpoints and loss curve.
#pragma once

#include <capibara/training/generate.h>
#include <capibara/training/trainer.h>

#include <string>
#include <vector>

namespace capibara::training {

struct RunConfig {
  LanguageModelConfig model;     // its vocabulary is how many tokens the tokenizer may have; in a run, how many it has
  TrainerConfig trainer;         // its folder is set by the run
  std::string text;              // a file or folder
  double held_out = 0.05;        // the share of the tokens at the end that training does not see
  int64_t vocabulary_limit = 0;  // in a run: how many tokens the tokenizer might have had
};

class TrainingRun {
 public:
  // Begins a run in a folder: trains the tokenizer, encodes the text, writes config.json; or goes on with the one that
  // is there, which must have the same model, text and settings that decide what is computed.
  static TrainingRun begin(const std::string& folder, RunConfig config);
  // The run of a folder; ValueError where there is none.
  static TrainingRun open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const RunConfig& config() const { return config_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const TokenFile& tokens() const { return tokens_; }
  int64_t first_held_out() const;  // token
  LanguageModel model() const { return LanguageModel(config_.model); }
  // A trainer in the state of the newest checkpoint.
  Trainer trainer() const;
  // The texts before and behind first_held_out().
  std::string training_text() const;
  std::string held_out_text() const;

  // Losses by step, of which a resumed run drops those behind its checkpoint; and their picture.
  std::vector<double> losses() const;
  void write_losses(const std::vector<double>& losses) const;
  std::string curve_path() const { return folder_ + "/loss.svg"; }

 private:
  TrainingRun(std::string folder, RunConfig config, Tokenizer tokenizer, TokenFile tokens);

  std::string folder_;
  RunConfig config_;
  Tokenizer tokenizer_;
  TokenFile tokens_;
};

// A curve of losses as SVG text.
std::string loss_curve(const std::vector<double>& losses, const std::string& title);

// The config as JSON.
std::string to_json(const RunConfig& config);
// The config of a JSON text; ValueError that begins with `what` for missing fields.
RunConfig run_config_from_json(const std::string& text, const std::string& what);

}  // namespace capibara::training
