// The folder of a training run: created once, reopened by later starts.
#include <capibara/training/run.h>

#include <capibara/checkpoint.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/runtime/warning.h"
#include "io/files/json.h"
#include "io/files/object_store.h"
#include "models/training/run_files.h"
#include "models/training/run_lock.h"
#include "models/training/settings.h"
#include "models/training/token_bytes.h"

namespace capibara::training {

namespace fs = std::filesystem;

namespace {

bool has_checkpoint(const std::string& folder) {
  const std::string checkpoints = in_folder(folder, run_file::checkpoints);
  return fs::exists(checkpoints) && Checkpointer(checkpoints).latest_step().has_value();
}

// The first setting that affects results and has changed: "width is 128 there and 64 now". More steps
// than there are accepted: they extend a run.
std::string first_difference(const RunConfig& there, const RunConfig& now) {
  const Json before = Json::parse(to_json(there), "settings"), after = Json::parse(to_json(now), "settings");
  for (const auto& [name, value] : *before.object()) {
    if (name == "checkpoint_every" || name == "keep") continue;  // may change between starts
    if (name == "vocabulary_limit" || name == "mesh" || name == "num_workers") continue;
    if (name == "steps" && now.trainer.steps > there.trainer.steps) continue;
    const Json* other = after.find(name);
    // A tokenizer that found fewer pairs than the limit would find no more with a higher one.
    const bool found_all = there.vocabulary_limit != there.model.vocabulary;
    if (name == "vocabulary" && found_all && now.model.vocabulary >= there.model.vocabulary) continue;
    if (value.dump() != other->dump()) return concat(name, " is ", value.dump(), " there and ", other->dump(), " now");
  }
  return {};
}

// Settings as stored in the folder: each start chooses its own devices.
RunConfig of_any_machine(RunConfig config) {
  config.trainer.mesh = {};
  config.trainer.num_workers = 1;
  return config;
}

std::string in_words(const TextRecord& text) {
  return concat(text.files, text.files == 1 ? " file of " : " files of ", text.all.bytes, " bytes");
}

// How the text differs from the one that the run began with; empty if it does not, or if it can no longer be
// read, which is a warning: its tokens are in the folder.
std::string changed_text(const std::string& folder, const std::string& path) {
  const std::optional<RunManifest> manifest = RunManifest::read(folder);
  if (!manifest || manifest->text.files == 0) return {};
  TextRecord now;
  try {
    if (!is_object_path(path) && !fs::exists(path)) throw ValueError("it is not there");
    now = text_record(path);
  } catch (const std::exception& error) {
    warn(concat("train: the text ", path, " cannot be compared with the one that ", folder, " was begun with (",
                error.what(), "); the run continues with its tokens.bin"),
         WarningKind::runtime);
    return {};
  }
  if (now == manifest->text) return {};
  const bool same_size = now.all.bytes == manifest->text.all.bytes && now.files == manifest->text.files;
  return concat("the text ", path, " has changed: ", in_words(manifest->text), " there and ",
                same_size ? "as many, but other ones, now" : concat(in_words(now), " now"));
}

// A file or folder in a run's folder that no run made; empty if there is none.
std::string first_strange_name(const std::string& folder) {
  const std::string checkpoints = in_folder(folder, run_file::checkpoints);
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!is_run_file(entry.path().filename().string())) return entry.path().string();
  }
  if (!fs::exists(checkpoints)) return {};
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    if (!fs::exists(entry.path() / "capibara.json")) return entry.path().string();
  }
  return {};
}

struct Prepared {
  Tokenizer tokenizer;
  std::string tokens;  // as stored in tokens.bin
  TextRecord text;
};

// The contents of a new run, in memory: errors in its settings or text are found before any file is written.
Prepared prepare(const RunConfig& config) {
  Prepared made;
  std::vector<std::string> texts;
  std::string all;
  for (const std::string& path : text_files(config.text)) {
    texts.push_back(read_text(path));
    made.text.add(record_of(texts.back()));
    all += texts.back();
  }
  made.tokenizer = Tokenizer::train(all, config.model.vocabulary);
  LanguageModelConfig model = config.model;
  model.vocabulary = made.tokenizer.vocabulary();
  checked_optimizer(LanguageModel(model), config.trainer);
  for (const std::string& text : texts) made.tokens += token_bytes(text, made.tokenizer);
  const auto count = static_cast<int64_t>(made.tokens.size()) / token_width(made.tokenizer);
  const int64_t trained = count - static_cast<int64_t>(config.held_out * static_cast<double>(count));
  if (trained < config.trainer.length + 1) {
    throw ValueError(concat("train: ", config.text, " gives ", trained,
                            " tokens to train on, which is shorter than one", " window of ", config.trainer.length,
                            " + 1 tokens; use more text or a smaller length"));
  }
  return made;
}

}  // namespace

TrainingRun::TrainingRun(std::string folder, RunConfig config, Tokenizer tokenizer, TokenFile tokens)
    : folder_(std::move(folder)),
      config_(std::move(config)),
      tokenizer_(std::move(tokenizer)),
      tokens_(std::move(tokens)) {
  config_.trainer.folder = in_folder(folder_, run_file::checkpoints);
}

TrainingRun TrainingRun::begin(const std::string& folder, RunConfig config, const std::string& made_by) {
  if (!(config.held_out >= 0 && config.held_out <= 0.5)) {
    throw ValueError(concat("train: held_out is a share between 0 and 0.5, got ", config.held_out));
  }
  auto lock = std::make_shared<const RunLock>(folder);
  const std::string path = in_folder(folder, run_file::config);
  if (fs::exists(path)) {
    require_undamaged(folder, run_file::config);
    const RunConfig before = run_config_from_json(read_whole(path), path);
    std::string difference = first_difference(before, config);
    if (!difference.empty()) difference = concat("holds a run with other settings: ", difference);
    if (difference.empty()) {
      difference = changed_text(folder, config.text);
      if (!difference.empty()) difference = concat("was begun with another text: ", difference);
    }
    if (difference.empty()) return resume(folder, config, std::move(lock));
    // Without a checkpoint there is nothing to lose: a start that failed on wrong settings does not bind the next one.
    if (has_checkpoint(folder)) {
      throw ValueError(concat("train: ", folder, " ", difference,
                              "; give the same, name another folder, or remove it to begin again"));
    }
  }
  const Prepared made = prepare(config);
  for (const char* left : {run_file::config, run_file::losses, run_file::curve, run_file::manifest})
    fs::remove(in_folder(folder, left));
  config.vocabulary_limit = std::exchange(config.model.vocabulary, made.tokenizer.vocabulary());
  const std::string settings = to_json(of_any_machine(config)), merges = made.tokenizer.to_text();
  RunManifest manifest{made_by, made.text, {}};
  manifest.files[run_file::config] = {record_of(settings)};
  manifest.files[run_file::tokenizer] = {record_of(merges)};
  manifest.files[run_file::tokens] = {record_of(made.tokens)};
  write_whole(in_folder(folder, run_file::tokenizer), merges);
  write_whole(in_folder(folder, run_file::tokens), made.tokens);
  manifest.write(folder);
  write_whole(path, settings);  // last: if it exists, the rest is complete
  TrainingRun run = open(folder);
  run.lock_ = std::move(lock);
  run.config_.trainer.mesh = config.trainer.mesh;
  run.config_.trainer.num_workers = config.trainer.num_workers;
  return run;
}

TrainingRun TrainingRun::resume(const std::string& folder, const RunConfig& config,
                                std::shared_ptr<const RunLock> lock) {
  if (!RunManifest::read(folder)) {
    warn(concat("train: ", folder, " is a run of an older version, without checksums: its files are taken as they are"),
         WarningKind::runtime);
    RunManifest manifest{"train", {}, {}};
    if (is_object_path(config.text) || fs::exists(config.text)) manifest.text = text_record(config.text);
    for (const char* name : {run_file::config, run_file::tokenizer, run_file::tokens})
      manifest.files[name] = {record_of(read_whole(in_folder(folder, name)))};
    manifest.write(folder);
  }
  const std::optional<std::string> damage = damage_of(folder, run_file::losses);
  if (damage && fs::exists(in_folder(folder, run_file::losses))) {
    throw ValueError(concat("train: ", *damage, "; restore it from a copy, or remove it: the loss curve then begins ",
                            "at the checkpoint, and the training itself loses nothing"));
  }
  TrainingRun run = open(folder);
  run.lock_ = std::move(lock);
  run.config_.trainer.checkpoint_every = config.trainer.checkpoint_every;
  run.config_.trainer.keep = config.trainer.keep;
  run.config_.trainer.mesh = config.trainer.mesh;
  run.config_.trainer.num_workers = config.trainer.num_workers;
  if (config.trainer.steps > run.config_.trainer.steps) {
    RunConfig extended = of_any_machine(run.config_);
    extended.trainer.steps = config.trainer.steps;
    run.extended_from_ = std::exchange(run.config_.trainer.steps, config.trainer.steps);
    write_run_file(folder, run_file::config, to_json(extended));
  }
  return run;
}

TrainingRun TrainingRun::open(const std::string& folder) {
  const std::string path = in_folder(folder, run_file::config);
  if (!fs::exists(path)) {
    throw ValueError(
        concat("there is no training run in ", folder, ": it has no config.json; 'capibara train' makes one"));
  }
  for (const char* name : {run_file::config, run_file::tokenizer, run_file::tokens}) require_undamaged(folder, name);
  for (const char* name : {run_file::losses, run_file::curve}) {  // both are optional
    if (const std::optional<std::string> damage = damage_of(folder, name)) warn(*damage, WarningKind::runtime);
  }
  RunConfig config = run_config_from_json(read_whole(path), path);
  Tokenizer tokenizer = Tokenizer::load(in_folder(folder, run_file::tokenizer));
  if (tokenizer.vocabulary() != config.model.vocabulary) {
    throw ValueError(concat(folder, ": tokenizer.txt has ", tokenizer.vocabulary(), " tokens, config.json ",
                            config.model.vocabulary));
  }
  TokenFile tokens(in_folder(folder, run_file::tokens), token_width(tokenizer));
  return TrainingRun(folder, std::move(config), std::move(tokenizer), std::move(tokens));
}

bool TrainingRun::exists(const std::string& folder) { return holds_run(folder); }

void TrainingRun::clear(const std::string& folder, const std::string& made_by) {
  const std::optional<RunManifest> manifest = RunManifest::read(folder);
  constexpr const char* hint = "; nothing was removed. Name another folder by --folder, or remove this one yourself";
  if (!manifest || manifest->made_by != made_by) {
    throw ValueError(concat(folder, " holds a run that 'capibara ", made_by, "' has not made (",
                            manifest ? concat("'capibara ", manifest->made_by, "' has") : "it has no manifest.json",
                            ")", hint));
  }
  const std::string checkpoints = in_folder(folder, run_file::checkpoints);
  const std::string strange = first_strange_name(folder);
  if (!strange.empty()) throw ValueError(concat(folder, " holds ", strange, ", which is not of a run", hint));
  const RunLock lock(folder);
  if (fs::exists(checkpoints)) {
    Checkpointer checkpointer(checkpoints);
    for (int64_t step : checkpointer.steps()) checkpointer.remove(step);
    fs::remove(checkpoints);
  }
  for (const char* name : {run_file::config, run_file::losses, run_file::curve, run_file::tokenizer, run_file::tokens,
                           run_file::manifest}) {
    fs::remove(in_folder(folder, name));
    fs::remove(in_folder(folder, name) + ".partial");
  }
}

int64_t TrainingRun::first_held_out() const {
  return tokens_.size() - static_cast<int64_t>(config_.held_out * static_cast<double>(tokens_.size()));
}

Trainer TrainingRun::trainer() const {
  Trainer trainer(model(), config_.trainer);
  trainer.resume();
  return trainer;
}

std::string TrainingRun::training_text() const {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < first_held_out(); ++i) tokens.push_back(tokens_[i]);
  return tokenizer_.decode(tokens);
}

std::string TrainingRun::held_out_text() const {
  std::vector<int32_t> tokens;
  for (int64_t i = first_held_out(); i < tokens_.size(); ++i) tokens.push_back(tokens_[i]);
  return tokenizer_.decode(tokens);
}

// ---- losses ------------------------------------------------------------------------------------------------------

std::vector<double> TrainingRun::losses() const {
  std::ifstream file(in_folder(folder_, run_file::losses));
  std::vector<double> losses;
  for (std::string line; file >> line;) losses.push_back(std::strtod(line.c_str(), nullptr));  // also "nan"
  return losses;
}

void TrainingRun::write_losses(const std::vector<double>& losses) const {
  std::string text;
  char line[40];
  for (double loss : losses) {
    std::snprintf(line, sizeof line, "%.9g\n", loss);
    text += line;
  }
  write_run_file(folder_, run_file::losses, text);
  write_run_file(folder_, run_file::curve, loss_curve(losses, "loss in nats per token, by step"));
}

std::string loss_curve(const std::vector<double>& losses, const std::string& title) {
  constexpr double width = 720, height = 360, left = 56, right = 16, top = 40, bottom = 40;
  std::ostringstream out;
  out.precision(4);
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << width << ' ' << height
      << "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      << "<text x=\"" << left << "\" y=\"24\" font-size=\"15\">" << title << "</text>\n";
  double low = 1e300, high = -1e300;
  for (double loss : losses) {
    if (loss != loss) continue;
    low = std::min(low, loss), high = std::max(high, loss);
  }
  if (losses.size() < 2 || high <= low) return out.str() + "</svg>\n";
  auto x = [&](double step) { return left + (width - left - right) * step / static_cast<double>(losses.size() - 1); };
  auto y = [&](double loss) { return top + (height - top - bottom) * (high - loss) / (high - low); };
  for (int i = 0; i <= 4; ++i) {
    const double loss = low + (high - low) * i / 4, step = static_cast<double>(losses.size() - 1) * i / 4;
    out << "<line x1=\"" << left << "\" x2=\"" << width - right << "\" y1=\"" << y(loss) << "\" y2=\"" << y(loss)
        << "\" stroke=\"#ddd\"/>\n<text x=\"" << left - 6 << "\" y=\"" << y(loss) + 4 << "\" text-anchor=\"end\">"
        << loss << "</text>\n<text x=\"" << x(step) << "\" y=\"" << height - 16 << "\" text-anchor=\"middle\">"
        << static_cast<int64_t>(step) + 1 << "</text>\n";
  }
  // Single steps are faint; the moving average is the readable curve.
  std::ostringstream every, smooth;
  every.precision(5), smooth.precision(5);
  double average = losses[0];
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (losses[i] == losses[i]) average = i == 0 ? losses[i] : 0.9 * average + 0.1 * losses[i];
    const double at = losses[i] == losses[i] ? losses[i] : average;
    every << x(static_cast<double>(i)) << ',' << y(at) << ' ';
    smooth << x(static_cast<double>(i)) << ',' << y(average) << ' ';
  }
  out << "<polyline fill=\"none\" stroke=\"#9ecae1\" points=\"" << every.str() << "\"/>\n"
      << "<polyline fill=\"none\" stroke=\"#08519c\" stroke-width=\"2\" points=\"" << smooth.str() << "\"/>\n</svg>\n";
  return out.str();
}

}  // namespace capibara::training
