// The folder of a training run: begun once, opened again by later starts.
#include <capibara/training/run.h>

#include <capibara/checkpoint.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "io/json.h"
#include "io/mapped_file.h"

namespace capibara::training {

namespace fs = std::filesystem;

namespace {

std::string in_folder(const std::string& folder, const char* name) { return (fs::path(folder) / name).string(); }

void write_whole(const std::string& path, const std::string& text) {
  std::ofstream file(path + ".partial", std::ios::binary);
  file << text;
  file.close();
  if (!file) throw ValueError(concat(path, " cannot be written"));
  fs::rename(path + ".partial", path);
}

std::string read_whole(const std::string& path) {
  const MappedFile file(path);
  return std::string(file.text());
}

int token_width(const Tokenizer& tokenizer) { return tokenizer.vocabulary() <= 256 ? 1 : 2; }

// The first setting that decides what is computed and is another one now: "width is 128 there and 64 now".
std::string first_difference(const RunConfig& there, const RunConfig& now) {
  const Json before = Json::parse(to_json(there), "settings"), after = Json::parse(to_json(now), "settings");
  for (const auto& [name, value] : *before.object()) {
    if (name == "checkpoint_every" || name == "keep") continue;  // may change from start to start
    if (name == "vocabulary_limit") continue;
    const Json* other = after.find(name);
    // A tokenizer that found fewer pairs than were allowed would find no more today.
    const bool found_all = there.vocabulary_limit != there.model.vocabulary;
    if (name == "vocabulary" && found_all && now.model.vocabulary >= there.model.vocabulary) continue;
    if (value.dump() != other->dump()) return concat(name, " is ", value.dump(), " there and ", other->dump(), " now");
  }
  return {};
}

}  // namespace

TrainingRun::TrainingRun(std::string folder, RunConfig config, Tokenizer tokenizer, TokenFile tokens)
    : folder_(std::move(folder)),
      config_(std::move(config)),
      tokenizer_(std::move(tokenizer)),
      tokens_(std::move(tokens)) {
  config_.trainer.folder = in_folder(folder_, "checkpoints");
}

TrainingRun TrainingRun::begin(const std::string& folder, RunConfig config) {
  if (config.held_out < 0 || config.held_out > 0.5) {
    throw ValueError(concat("train: held_out is a share between 0 and 0.5, got ", config.held_out));
  }
  const std::string path = in_folder(folder, "config.json");
  // Without a checkpoint there is nothing to lose: a start that stopped on wrong settings does not bind the next one.
  const bool begun = Checkpointer(in_folder(folder, "checkpoints")).latest_step().has_value();
  if (fs::exists(path)) {
    const RunConfig before = run_config_from_json(read_whole(path), path);
    const std::string difference = first_difference(before, config);
    if (difference.empty()) {
      TrainingRun run = open(folder);
      run.config_.trainer.checkpoint_every = config.trainer.checkpoint_every;
      run.config_.trainer.keep = config.trainer.keep;
      return run;
    }
    if (begun) {
      throw ValueError(concat("train: ", folder, " holds a run with other settings: ", difference,
                              "; give the same, name another folder, or remove it to begin again"));
    }
    for (const char* left : {"config.json", "losses.txt", "loss.svg"}) fs::remove(in_folder(folder, left));
  }
  fs::create_directories(folder);
  const std::vector<std::string> texts = text_files(config.text);
  std::string all;
  for (const std::string& text : texts) all += read_text(text);
  const Tokenizer tokenizer = Tokenizer::train(all, config.model.vocabulary);
  tokenizer.save(in_folder(folder, "tokenizer.txt"));
  write_tokens(texts, tokenizer, in_folder(folder, "tokens.bin"));
  config.vocabulary_limit = std::exchange(config.model.vocabulary, tokenizer.vocabulary());
  LanguageModel check(config.model);
  write_whole(path, to_json(config));  // last: where it exists, the rest is whole
  return open(folder);
}

TrainingRun TrainingRun::open(const std::string& folder) {
  const std::string path = in_folder(folder, "config.json");
  if (!fs::exists(path)) {
    throw ValueError(
        concat("there is no training run in ", folder, ": it has no config.json; 'capibara train' makes one"));
  }
  RunConfig config = run_config_from_json(read_whole(path), path);
  Tokenizer tokenizer = Tokenizer::load(in_folder(folder, "tokenizer.txt"));
  if (tokenizer.vocabulary() != config.model.vocabulary) {
    throw ValueError(concat(folder, ": tokenizer.txt has ", tokenizer.vocabulary(), " tokens, config.json ",
                            config.model.vocabulary));
  }
  TokenFile tokens(in_folder(folder, "tokens.bin"), token_width(tokenizer));
  return TrainingRun(folder, std::move(config), std::move(tokenizer), std::move(tokens));
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
  std::ifstream file(in_folder(folder_, "losses.txt"));
  std::vector<double> losses;
  for (double loss = 0; file >> loss;) losses.push_back(loss);
  return losses;
}

void TrainingRun::write_losses(const std::vector<double>& losses) const {
  std::string text;
  char line[40];
  for (double loss : losses) {
    std::snprintf(line, sizeof line, "%.9g\n", loss);
    text += line;
  }
  write_whole(in_folder(folder_, "losses.txt"), text);
  write_whole(curve_path(), loss_curve(losses, "loss in nats per token, by step"));
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
  // Each step is faint; the average of the last steps is what one reads.
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
