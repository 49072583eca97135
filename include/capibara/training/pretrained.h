// Published models: weights in the form of GPT-2 and Llama from safetensors files, and their tokenizers.
#pragma once

#include <capibara/training/language_model.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capibara::training {

// The model of a folder with model.safetensors and config.json, as published: model_type gpt2 or llama.
// ValueError that names the field or tensor that is missing or has the wrong shape.
std::pair<LanguageModel, Parameters> load_pretrained(const std::string& folder);

// A tokenizer.json of Hugging Face's library: BPE over bytes (GPT-2, Llama 3, Qwen 2) or over characters (Llama 2).
class PublishedTokenizer {
 public:
  // ValueError if the file is damaged, or names a kind, pattern or rule that is not implemented.
  static PublishedTokenizer load(const std::string& path);

  // The tokens of a text. Special tokens in it are recognized; with `add_special`, those that the file puts before a
  // text are added.
  std::vector<int32_t> encode(std::string_view text, bool add_special = true) const;
  // The text of tokens without special ones, as the decoder of the file makes it.
  std::string decode(std::span<const int32_t> tokens) const;
  // The bytes that a token adds to a text: empty for special tokens and for those that do not exist.
  std::string bytes(int32_t token) const;
  // The number of a special or added token, by its text.
  std::optional<int32_t> find(std::string_view token) const;
  // One more than the largest token.
  int64_t vocabulary() const;

 private:
  struct Data;
  explicit PublishedTokenizer(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

}  // namespace capibara::training
