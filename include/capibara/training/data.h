// Text for language models: tokenizers, tokens in mapped files, and batches that are the same in every run.
#pragma once

#include <capibara/array.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capibara {
class MappedFile;
}

namespace capibara::training {

// ---- tokenizer ---------------------------------------------------------------------------------------------------

// Bytes and merged pairs: token 256 + i represents the two tokens of merge i. Without merges: plain bytes.
class Tokenizer {
 public:
  using Merges = std::vector<std::pair<int32_t, int32_t>>;

  Tokenizer() = default;
  // ValueError if a merge names a token that does not exist before it.
  explicit Tokenizer(Merges merges);

  // Byte-level BPE: repeatedly merges the most frequent pair of neighbours, ties to the lower tokens, until there
  // are `vocabulary` tokens or no pair occurs twice. Pairs do not cross word boundaries.
  static Tokenizer train(std::string_view text, int64_t vocabulary);

  int64_t vocabulary() const { return 256 + static_cast<int64_t>(merges_.size()); }
  const Merges& merges() const { return merges_; }
  std::vector<int32_t> encode(std::string_view text) const;
  // ValueError for a token that does not exist.
  std::string decode(std::span<const int32_t> tokens) const;

  // One line for each merge.
  std::string to_text() const;
  void save(const std::string& path) const;
  static Tokenizer load(const std::string& path);

 private:
  Merges merges_;
  std::vector<std::string> texts_ = {};  // of the merged tokens
};

// The words of a text: runs of letters, digits or other characters, each with the space before it; runs of white space.
std::vector<std::string_view> split_words(std::string_view text);

// ---- tokens in files ---------------------------------------------------------------------------------------------

// Tokens of one or two bytes each in a mapped file.
class TokenFile {
 public:
  // `width` is the number of bytes per token: 1 or 2.
  TokenFile(const std::string& path, int width);

  int64_t size() const { return size_; }
  int32_t operator[](int64_t position) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  int width_;
  int64_t size_ = 0;
};

// The text files at a path: the file itself, or all files of a folder, recursively, sorted by name; gs:// too.
std::vector<std::string> text_files(const std::string& path);
// The bytes of one of them.
std::string read_text(const std::string& path);
// Encodes text files into one file of tokens, little-endian, atomically; returns the bytes per token.
int write_tokens(const std::vector<std::string>& texts, const Tokenizer& tokenizer, const std::string& path);

// ---- batches -----------------------------------------------------------------------------------------------------

struct LoaderOptions {
  int64_t batch = 8, length = 128;
  int64_t first = 0, last = -1;  // the range of tokens to read; -1: to the end
  uint64_t seed = 0;
  int64_t num_workers = 1;  // threads that prepare batches
};

// Batches int32 [batch, length + 1]. Batch n depends only on the options: each pass over the tokens
// visits every window once, in its own order. Threads prefetch batches; their number has no effect on the batches.
class Loader {
 public:
  // `next` is the index of the first batch that next() returns.
  Loader(TokenFile tokens, const LoaderOptions& options, int64_t next = 0);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();

  // The next batch, in the order of the calls.
  Array next();
  int64_t position() const { return position_; }
  // Any batch, by index.
  Array batch(int64_t number) const;
  // Windows per pass.
  int64_t windows() const;

 private:
  struct Queue;
  TokenFile tokens_;
  LoaderOptions options_;
  int64_t position_;
  std::unique_ptr<Queue> queue_;
};

// Bits per byte of a bigram model of bytes on the second text, with add-one counts from the first.
double bigram_bits_per_byte(std::string_view training, std::string_view held_out);

}  // namespace capibara::training
