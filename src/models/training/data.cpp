// Tokens in mapped files, and the loader: the windows of a batch are a function of its index.
#include <capibara/training/data.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "io/files/mapped_file.h"
#include "io/files/object_store.h"
#include "models/training/ordered_workers.h"
#include "models/training/shuffle.h"
#include "models/training/token_bytes.h"

namespace capibara::training {

// ---- files -------------------------------------------------------------------------------------------------------

TokenFile::TokenFile(const std::string& path, int width) : file_(std::make_shared<MappedFile>(path)), width_(width) {
  if (width != 1 && width != 2) throw ValueError(concat("TokenFile: width is 1 or 2 bytes, got ", width));
  if (file_->bytes().size() % static_cast<std::size_t>(width) != 0) {
    throw ValueError(concat("TokenFile: ", path, " has ", file_->bytes().size(), " bytes, no multiple of ", width));
  }
  size_ = static_cast<int64_t>(file_->bytes().size()) / width;
}

int32_t TokenFile::operator[](int64_t position) const {
  const auto* bytes = reinterpret_cast<const unsigned char*>(file_->bytes().data()) + position * width_;
  return width_ == 1 ? bytes[0] : bytes[0] | bytes[1] << 8;
}

namespace {

// The object of this name, or all objects under it.
std::vector<std::string> text_objects(const std::string& path) {
  if (!path.ends_with('/') && stat_object(path)) return {path};
  const std::string bucket = path.substr(0, path.find('/', 5));
  std::vector<std::string> names;
  for (const ObjectInfo& object : list_objects(path, true).objects) {
    if (object.size > 0) names.push_back(bucket + "/" + object.name);
  }
  std::sort(names.begin(), names.end());
  if (names.empty()) throw ValueError(concat("train: there is no object ", path, ", and none below it"));
  return names;
}

}  // namespace

std::vector<std::string> text_files(const std::string& path) {
  namespace fs = std::filesystem;
  if (is_object_path(path)) return text_objects(path);
  if (path.find("://") != std::string::npos) {
    throw ValueError(concat("train: data is read from files, folders and gs://, got ", path, "; copy it to a folder"));
  }
  std::error_code error;
  std::vector<std::string> files;
  if (fs::is_directory(path, error)) {
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    if (files.empty()) throw ValueError(concat("train: the folder ", path, " holds no files"));
  } else {
    if (!fs::exists(path, error)) throw ValueError(concat("train: there is no file or folder ", path));
    files.push_back(path);
  }
  return files;
}

std::string read_text(const std::string& path) {
  return is_object_path(path) ? read_object(path) : std::string(MappedFile(path).text());
}

int token_width(const Tokenizer& tokenizer) {
  if (tokenizer.vocabulary() > 1 << 16) {
    throw ValueError(concat("write_tokens: at most 65536 tokens are written, got ", tokenizer.vocabulary()));
  }
  return tokenizer.vocabulary() <= 256 ? 1 : 2;
}

std::string token_bytes(std::string_view text, const Tokenizer& tokenizer) {
  const int width = token_width(tokenizer);
  std::string bytes;
  for (int32_t token : tokenizer.encode(text)) {
    bytes += static_cast<char>(token & 0xff);
    if (width == 2) bytes += static_cast<char>(token >> 8);
  }
  return bytes;
}

int write_tokens(const std::vector<std::string>& texts, const Tokenizer& tokenizer, const std::string& path) {
  const int width = token_width(tokenizer);
  const std::string partial = path + ".partial";
  std::ofstream out(partial, std::ios::binary);
  for (const std::string& text : texts) {
    const std::string bytes = token_bytes(read_text(text), tokenizer);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  out.close();
  if (!out) {
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    throw ValueError(concat("write_tokens: ", partial, " cannot be written"));
  }
  std::filesystem::rename(partial, path);
  return width;
}

// ---- loader ------------------------------------------------------------------------------------------------------

struct Loader::Queue : OrderedWorkers<Array> {
  using OrderedWorkers::OrderedWorkers;
};

Loader::Loader(TokenFile tokens, const LoaderOptions& options, int64_t next)
    : tokens_(std::move(tokens)), options_(options), position_(next) {
  if (options_.last < 0) options_.last = tokens_.size();
  auto require_positive = [](const char* argument, int64_t value) {
    if (value < 1) throw ValueError(concat("Loader: ", argument, " must be positive, got ", value));
  };
  require_positive("batch", options_.batch);
  require_positive("length", options_.length);
  require_positive("num_workers", options_.num_workers);
  if (next < 0) throw ValueError(concat("Loader: next, the number of a batch, must not be negative, got ", next));
  if (options_.first < 0 || options_.first > options_.last || options_.last > tokens_.size()) {
    throw ValueError(concat("Loader: expected first and last between 0 and ", tokens_.size(),
                            ", the number of tokens, got ", options_.first, " and ", options_.last));
  }
  if (windows() < 1) {
    throw ValueError(concat("Loader: the range of ", options_.last - options_.first,
                            " tokens is shorter than one window of ", options_.length,
                            " + 1 tokens; use more text or a smaller length"));
  }
  auto make = [this](int64_t number) { return std::optional(batch(number)); };
  const int64_t ahead = std::max<int64_t>(4, 2 * options_.num_workers);
  queue_ = std::make_unique<Queue>(make, next, options_.num_workers, ahead);
}

Loader::~Loader() = default;

// One window is lost to the offset at the start of each pass.
int64_t Loader::windows() const {
  const int64_t all = (options_.last - options_.first - 1) / options_.length;
  return all > 1 ? all - 1 : all;
}

Array Loader::next() {
  Array batch = *queue_->next();
  ++position_;
  return batch;
}

Array Loader::batch(int64_t number) const {
  if (number < 0) throw ValueError(concat("Loader.batch: the number must not be negative, got ", number));
  const auto count = static_cast<uint64_t>(windows());
  const auto length = static_cast<uint64_t>(options_.length);
  const bool shifts = options_.last - options_.first - 1 >= 2 * options_.length;
  std::vector<int32_t> tokens;
  for (int64_t row = 0; row < options_.batch; ++row) {
    const auto sample = static_cast<uint64_t>(number * options_.batch + row);
    const uint64_t pass = sample / count;
    const uint64_t key = mixed(options_.seed ^ mixed(pass));
    const uint64_t shift = shifts ? mixed(key) % length : 0;
    const uint64_t window = permuted(sample % count, count, key);
    const int64_t start = options_.first + static_cast<int64_t>(shift + window * length);
    for (int64_t i = 0; i <= options_.length; ++i) tokens.push_back(tokens_[start + i]);
  }
  return array<int32_t>(tokens, Shape{options_.batch, options_.length + 1});
}

double bigram_bits_per_byte(std::string_view training, std::string_view held_out) {
  std::vector<int64_t> pairs(256 * 256, 1), totals(256, 256);
  auto code = [](char c) { return static_cast<std::size_t>(static_cast<unsigned char>(c)); };
  for (std::size_t i = 0; i + 1 < training.size(); ++i) {
    ++pairs[code(training[i]) * 256 + code(training[i + 1])];
    ++totals[code(training[i])];
  }
  double bits = 0;
  for (std::size_t i = 0; i + 1 < held_out.size(); ++i) {
    const std::size_t first = code(held_out[i]);
    bits -=
        std::log2(static_cast<double>(pairs[first * 256 + code(held_out[i + 1])]) / static_cast<double>(totals[first]));
  }
  return held_out.size() < 2 ? std::numeric_limits<double>::quiet_NaN()
                             : bits / static_cast<double>(held_out.size() - 1);
}

}  // namespace capibara::training
