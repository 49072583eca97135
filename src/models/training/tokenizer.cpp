// Byte-level BPE: training by pair counts over distinct words, encoding by lowest merge first.
#include <capibara/training/data.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <map>
#include <unordered_map>

namespace capibara::training {

namespace {

constexpr int32_t byte_tokens = 256;
// Each merge may double the longest text: a file of forty lines could represent a terabyte.
constexpr std::size_t max_token_bytes = std::size_t{1} << 16, free_token_bytes = std::size_t{1} << 22,
                      max_mean_token_bytes = 256;

enum class Sign { letter, digit, space, other };

Sign sign_of(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x80 || std::isalpha(byte)) return Sign::letter;  // bytes of other scripts stay together
  if (std::isdigit(byte)) return Sign::digit;
  return std::isspace(byte) ? Sign::space : Sign::other;
}

std::vector<int32_t> bytes_of(std::string_view word) {
  std::vector<int32_t> tokens;
  for (char c : word) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

using Pair = std::pair<int32_t, int32_t>;

// Replaces each occurrence of the pair, from the left.
void merge_pair(std::vector<int32_t>& tokens, const Pair& pair, int32_t merged) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i + 1 < tokens.size() && tokens[i] == pair.first && tokens[i + 1] == pair.second) {
      tokens[kept++] = merged;
      ++i;
    } else {
      tokens[kept++] = tokens[i];
    }
  }
  tokens.resize(kept);
}

bool may_hold(std::size_t longest, std::size_t total, std::size_t tokens) {
  return longest <= max_token_bytes && total <= free_token_bytes + max_mean_token_bytes * tokens;
}

struct Word {
  std::vector<int32_t> tokens;
  int64_t count = 0;
};

}  // namespace

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t start = 0; start < text.size();) {
    std::size_t end = start;
    if (text[end] == ' ' && end + 1 < text.size() && sign_of(text[end + 1]) != Sign::space) ++end;
    const Sign sign = sign_of(text[end]);
    while (end < text.size() && sign_of(text[end]) == sign) ++end;
    // The last space of a run belongs to the following word.
    if (sign == Sign::space && end < text.size() && end - start > 1 && text[end - 1] == ' ') --end;
    words.push_back(text.substr(start, end - start));
    start = end;
  }
  return words;
}

Tokenizer::Tokenizer(Merges merges) : merges_(std::move(merges)) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < merges_.size(); ++i) {
    const int32_t below = byte_tokens + static_cast<int32_t>(i);
    std::string text;
    for (int32_t part : {merges_[i].first, merges_[i].second}) {
      if (part < 0 || part >= below) {
        throw ValueError(concat("Tokenizer: merge ", i, " names token ", part, ", of which only 0 to ", below - 1,
                                " exist before it"));
      }
      if (part < byte_tokens)
        text += static_cast<char>(part);
      else
        text += texts_[static_cast<std::size_t>(part - byte_tokens)];
    }
    total += text.size();
    if (!may_hold(text.size(), total, merges_.size())) {
      throw ValueError(concat("Tokenizer: merge ", i, " makes a token of ", text.size(), " bytes, ", total,
                              " with those before it; expected at most ", max_token_bytes, " and ",
                              max_mean_token_bytes, " on average"));
    }
    texts_.push_back(std::move(text));
  }
}

Tokenizer Tokenizer::train(std::string_view text, int64_t vocabulary) {
  if (vocabulary < byte_tokens) {
    throw ValueError(concat("Tokenizer.train: vocabulary must be at least 256, got ", vocabulary));
  }
  std::unordered_map<std::string_view, int64_t> counts;
  for (std::string_view word : split_words(text)) ++counts[word];
  std::vector<Word> words;
  for (const auto& [word, count] : counts) words.push_back({bytes_of(word), count});
  // For each pair its number of occurrences, and the words that may contain it.
  std::map<Pair, int64_t> pairs;
  std::map<Pair, std::vector<std::size_t>> holders;
  auto count_word = [&](std::size_t index, int64_t sign) {
    const Word& word = words[index];
    for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i) {
      const Pair pair = {word.tokens[i], word.tokens[i + 1]};
      pairs[pair] += sign * word.count;
      if (sign > 0) {
        std::vector<std::size_t>& list = holders[pair];
        if (list.empty() || list.back() != index) list.push_back(index);
      }
    }
  };
  for (std::size_t i = 0; i < words.size(); ++i) count_word(i, 1);
  Merges merges;
  std::vector<std::size_t> lengths(byte_tokens, 1);  // of tokens, in bytes
  std::size_t total = 0;
  while (byte_tokens + static_cast<int64_t>(merges.size()) < vocabulary) {
    const auto best =
        std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == pairs.end() || best->second < 2) break;
    const Pair pair = best->first;
    lengths.push_back(lengths[static_cast<std::size_t>(pair.first)] + lengths[static_cast<std::size_t>(pair.second)]);
    total += lengths.back();
    if (!may_hold(lengths.back(), total, merges.size() + 1)) break;
    std::vector<std::size_t> held = std::move(holders[pair]);
    std::sort(held.begin(), held.end());
    held.erase(std::unique(held.begin(), held.end()), held.end());
    for (std::size_t index : held) {
      count_word(index, -1);
      merge_pair(words[index].tokens, pair, byte_tokens + static_cast<int32_t>(merges.size()));
      count_word(index, 1);
    }
    pairs.erase(pair);
    merges.push_back(pair);
  }
  return Tokenizer(std::move(merges));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  if (merges_.empty()) return bytes_of(text);
  std::map<Pair, int32_t> ranks;
  for (std::size_t i = 0; i < merges_.size(); ++i) ranks.emplace(merges_[i], static_cast<int32_t>(i));
  std::unordered_map<std::string_view, std::vector<int32_t>> known;
  std::vector<int32_t> tokens;
  for (std::string_view word : split_words(text)) {
    auto [entry, fresh] = known.try_emplace(word);
    std::vector<int32_t>& own = entry->second;
    if (fresh) {
      own = bytes_of(word);
      while (own.size() > 1) {
        auto best = ranks.end();
        for (std::size_t i = 0; i + 1 < own.size(); ++i) {
          const auto found = ranks.find({own[i], own[i + 1]});
          if (found != ranks.end() && (best == ranks.end() || found->second < best->second)) best = found;
        }
        if (best == ranks.end()) break;
        merge_pair(own, best->first, byte_tokens + best->second);
      }
    }
    tokens.insert(tokens.end(), own.begin(), own.end());
  }
  return tokens;
}

std::string Tokenizer::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (int32_t token : tokens) {
    if (token < 0 || token >= vocabulary()) {
      throw ValueError(concat("Tokenizer.decode: token ", token, " does not exist; there are ", vocabulary()));
    }
    if (token < byte_tokens)
      text += static_cast<char>(token);
    else
      text += texts_[static_cast<std::size_t>(token - byte_tokens)];
  }
  return text;
}

std::string Tokenizer::to_text() const {
  std::string text = "capibara tokenizer 1\n";
  for (const auto& [first, second] : merges_) text += concat(first, " ", second, "\n");
  return text;
}

void Tokenizer::save(const std::string& path) const {
  std::ofstream file(path, std::ios::binary);
  file << to_text();
  file.flush();
  if (!file) throw ValueError(concat("Tokenizer.save: ", path, " cannot be written"));
}

Tokenizer Tokenizer::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ValueError(concat("Tokenizer.load: ", path, " cannot be opened"));
  std::string line;
  std::getline(file, line);
  if (line != "capibara tokenizer 1") throw ValueError(concat("Tokenizer.load: ", path, " is not a tokenizer's file"));
  Merges merges;
  while (std::getline(file, line)) {
    Pair pair;
    const char* end = line.data() + line.size();
    const auto first = std::from_chars(line.data(), end, pair.first);
    const bool two = first.ec == std::errc() && first.ptr != end && *first.ptr == ' ';
    const auto second = two ? std::from_chars(first.ptr + 1, end, pair.second) : first;
    if (!two || second.ec != std::errc() || second.ptr != end || merges.size() > 1u << 24) {
      throw ValueError(concat("Tokenizer.load: line ", merges.size() + 2, " of ", path, " is not two numbers"));
    }
    merges.push_back(pair);
  }
  return Tokenizer(std::move(merges));
}

}  // namespace capibara::training
