// The folder of a training run: the model, the text, its tokens, checkpoints and loss curve.
#pragma once

#include <capibara/training/generate.h>
#include <capibara/training/trainer.h>

#include <memory>
#include <string>
#include <vector>

namespace capibara::training {

struct RunConfig {
  LanguageModelConfig model;     // its vocabulary is the maximum of the tokenizer; in a run, its actual size
  TrainerConfig trainer;         // its folder is set by the run
  std::string text;              // a file or folder
  double held_out = 0.05;        // fraction of the tokens, at the end, excluded from training
  int64_t vocabulary_limit = 0;  // in a run: the requested maximum vocabulary
};

class RunLock;

class TrainingRun {
 public:
  // Begins a run in a folder: trains the tokenizer, encodes the text, writes config.json; or continues an existing run,
  // which must have the same model, text and settings that affect results; more steps extend it. The
  // folder is locked while the run exists. ValueError if it holds something else, if another process trains in
  // it, or if a file of the run is damaged; a failed start leaves nothing behind. `made_by` is the
  // command recorded in the folder's manifest.
  static TrainingRun begin(const std::string& folder, RunConfig config, const std::string& made_by = "train");
  // The run of a folder, for reading; ValueError if there is none, or if a required file is damaged.
  static TrainingRun open(const std::string& folder);
  // True if a folder holds a run; ValueError if it holds something else.
  static bool exists(const std::string& folder);
  // Removes the files of a run, and no others, from a folder whose manifest names `made_by` as its creator; ValueError
  // elsewhere.
  static void clear(const std::string& folder, const std::string& made_by);

  const std::string& folder() const { return folder_; }
  // The number of steps before this start extended it; 0 if it did not.
  int64_t extended_from() const { return extended_from_; }
  const RunConfig& config() const { return config_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const TokenFile& tokens() const { return tokens_; }
  int64_t first_held_out() const;  // token
  LanguageModel model() const { return LanguageModel(config_.model); }
  // A trainer in the state of the newest checkpoint.
  Trainer trainer() const;
  // The texts before and after first_held_out().
  std::string training_text() const;
  std::string held_out_text() const;

  // Losses by step, of which a resumed run drops those after its checkpoint; and their plot.
  std::vector<double> losses() const;
  void write_losses(const std::vector<double>& losses) const;
  std::string curve_path() const { return folder_ + "/loss.svg"; }

 private:
  TrainingRun(std::string folder, RunConfig config, Tokenizer tokenizer, TokenFile tokens);
  static TrainingRun resume(const std::string& folder, const RunConfig& config, std::shared_ptr<const RunLock> lock);

  std::string folder_;
  RunConfig config_;
  Tokenizer tokenizer_;
  TokenFile tokens_;
  int64_t extended_from_ = 0;
  std::shared_ptr<const RunLock> lock_;
};

// A curve of losses as SVG text.
std::string loss_curve(const std::vector<double>& losses, const std::string& title);

// The config as JSON.
std::string to_json(const RunConfig& config);
// The config of a JSON text; ValueError that begins with `what` for missing fields.
RunConfig run_config_from_json(const std::string& text, const std::string& what);

}  // namespace capibara::training
