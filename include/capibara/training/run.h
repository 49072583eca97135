// The folder of a training run: what is trained, on which text, its tokens, checkpoints and loss curve.
#pragma once

#include <capibara/training/generate.h>
#include <capibara/training/trainer.h>

#include <memory>
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

class RunLock;

class TrainingRun {
 public:
  // Begins a run in a folder: trains the tokenizer, encodes the text, writes config.json; or goes on with the one that
  // is there, which must have the same model, text and settings that decide what is computed; more steps extend it. The
  // folder is locked while the run exists. ValueError where it holds something else, where another process trains in
  // it, and where a file of the run is not what was written; a failed start leaves nothing behind. `made_by` is the
  // command that the folder's manifest names.
  static TrainingRun begin(const std::string& folder, RunConfig config, const std::string& made_by = "train");
  // The run of a folder, for reading; ValueError where there is none, or where a file that is needed is damaged.
  static TrainingRun open(const std::string& folder);
  // Whether a folder holds a run; ValueError where it holds something else.
  static bool exists(const std::string& folder);
  // Removes the files of a run, and no others, from a folder whose manifest says that `made_by` has made it; ValueError
  // elsewhere.
  static void clear(const std::string& folder, const std::string& made_by);

  const std::string& folder() const { return folder_; }
  // How many steps it had before this start gave it more; 0 where it did not.
  int64_t extended_from() const { return extended_from_; }
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
