// Reads tokenizer.json: splits text into words, and merges their pieces by rank.
#include <capibara/training/pretrained.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <queue>
#include <sstream>
#include <tuple>
#include <unordered_map>

#include "io/files/json.h"
#include "io/files/json_reader.h"
#include "models/serving/unicode.h"

namespace capibara::training {

namespace {

constexpr std::string_view metaspace = "\u2581";  // a space, in vocabularies of characters

// How byte-level tokenizers divide a text, by the pattern in the file.
struct SplitRule {
  std::string_view pattern;
  bool any_case;         // contractions in capitals too
  bool any_prefix;       // one character of punctuation or space before letters belongs to them; else one space
  int64_t digits;        // in a word; 0: any number
  bool newlines_divide;  // line breaks belong to punctuation before them, and end a run of spaces
};
constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view llama3_pattern = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
                                            R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr SplitRule split_rules[] = {{gpt2_pattern, false, false, 0, false},
                                     {llama3_pattern, true, true, 3, true},
                                     {qwen2_pattern, true, true, 1, true}};

// Finds the end of the word that begins at a position.
class WordSplitter {
 public:
  WordSplitter(std::string_view text, const SplitRule& rule) : text_(text), rule_(rule) {}

  std::size_t end_of_word(std::size_t at) const {
    if (const std::size_t length = contraction(at)) return at + length;
    const Character first = character_at(text_, at);
    const std::size_t second = at + first.bytes;
    const bool space = text_[at] == ' ';
    // What may precede letters: any character but a line break and a number, or a space.
    const bool prefix = rule_.any_prefix ? first.kind != Character::number && !is_break(at) : space;
    if (first.kind == Character::letter) return run(at, Character::letter);
    if (prefix && kind(second) == Character::letter) return run(second, Character::letter);
    if (first.kind == Character::number) return run(at, Character::number, rule_.digits);
    if (space && rule_.digits == 0 && kind(second) == Character::number) return run(second, Character::number);
    if (first.kind == Character::other) return punctuation(at);
    if (space && kind(second) == Character::other) return punctuation(second);
    return spaces(at);
  }

 private:
  Character::Kind kind(std::size_t at) const {
    return at < text_.size() ? character_at(text_, at).kind : Character::space;
  }
  bool is_break(std::size_t at) const { return text_[at] == '\n' || text_[at] == '\r'; }

  std::size_t run(std::size_t at, Character::Kind wanted, int64_t limit = 0) const {
    for (int64_t count = 0; at < text_.size() && (limit == 0 || count < limit); ++count) {
      const Character next = character_at(text_, at);
      if (next.kind != wanted) break;
      at += next.bytes;
    }
    return at;
  }

  std::size_t punctuation(std::size_t at) const {
    at = run(at, Character::other);
    while (rule_.newlines_divide && at < text_.size() && is_break(at)) ++at;
    return at;
  }

  std::size_t spaces(std::size_t at) const {
    const std::size_t end = run(at, Character::space);
    if (rule_.newlines_divide) {
      for (std::size_t last = end; last > at; --last) {
        if (is_break(last - 1)) return last;
      }
    }
    if (end == text_.size()) return end;
    std::size_t last = at;  // where the last character of the run begins: it belongs to the following word
    for (std::size_t next = at; next < end; next += character_at(text_, next).bytes) last = next;
    return last == at ? end : last;
  }

  std::size_t contraction(std::size_t at) const {
    if (text_[at] != '\'') return 0;
    for (const std::string_view ending : {"s", "t", "re", "ve", "m", "ll", "d"}) {
      const std::string_view found = text_.substr(at + 1, ending.size());
      const auto same = [&](char a, char b) { return a == b || (rule_.any_case && (a | 0x20) == b); };
      if (found.size() == ending.size() && std::equal(found.begin(), found.end(), ending.begin(), same))
        return 1 + ending.size();
    }
    return 0;
  }

  std::string_view text_;
  const SplitRule& rule_;
};

// The printable characters that byte-level vocabularies write for the 256 bytes: the byte's own character where that
// is printable, and the characters from 256 on for the others, in order.
const std::unordered_map<std::string, char>& bytes_by_letter() {
  static const std::unordered_map<std::string, char> table = [] {
    std::unordered_map<std::string, char> made;
    uint32_t next = 256;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      std::string letter;
      append_utf8(letter, printable ? byte : next++);
      made.emplace(std::move(letter), static_cast<char>(byte));
    }
    return made;
  }();
  return table;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (std::size_t at = 0;;) {
    const std::size_t found = text.find(from, at);
    result += text.substr(at, found - at);
    if (found == std::string_view::npos) return result;
    result += to;
    at = found + from.size();
  }
}

struct Merge {
  int32_t rank, token;
};

uint64_t pair_key(int32_t first, int32_t second) {
  return static_cast<uint64_t>(static_cast<uint32_t>(first)) << 32 | static_cast<uint32_t>(second);
}

struct Added {
  std::string text;
  int32_t token;
};

}  // namespace

struct PublishedTokenizer::Data {
  std::unordered_map<std::string, int32_t> vocabulary;  // by bytes if byte_level, else by characters
  std::unordered_map<uint64_t, Merge> merges;           // by pair
  std::vector<std::string> texts;                       // by token; empty for special ones
  std::vector<Added> added;                             // longest first
  std::array<bool, 256> begins_added{};                 // by the first byte of an added token
  std::array<int32_t, 256> byte_tokens{};               // -1 if a byte has none
  std::vector<int32_t> before;                          // special tokens before a text
  const SplitRule* rule = nullptr;                      // of byte-level tokenizers; null: a text is one word
  bool byte_level = false;
  bool whole_words = false;    // words of the vocabulary are not merged
  bool space_first = false;    // a space is put before a text, and after each added token in it
  bool space_unless = false;   // the same, unless there is one
  bool only_at_start = false;  // not after added tokens
  bool strip_first = false;    // decoding removes a space at the start
  std::optional<int32_t> unknown;

  void append_word(std::string_view word, std::vector<int32_t>& tokens) const;
  void append_text(std::string_view text, bool first, std::vector<int32_t>& tokens) const;
  std::vector<int32_t> pieces(std::string_view word) const;
};

namespace {

// The members of a tokenizer.json, with errors that name the file and the member.
class TokenizerFile {
 public:
  explicit TokenizerFile(const std::string& path) : path_(path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) throw ValueError(concat("PublishedTokenizer.load: ", path, " cannot be read"));
    root_ = Json::parse(text.str(), path);
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw ValueError(concat("PublishedTokenizer.load: ", path_, ": ", what));
  }
  // A member of a value; null if it is missing or null.
  static const Json* member(const Json* value, std::string_view name) {
    const Json* found = value ? value->find(name) : nullptr;
    return found && !found->is_null() ? found : nullptr;
  }
  const Json* member(std::string_view name) const { return member(&root_, name); }
  std::string text(const Json* value, std::string_view name) const {
    const Json* found = member(value, name);
    if (!found || !found->text()) refuse(concat("expected a string '", name, "'"));
    return *found->text();
  }
  bool truth(const Json* value, std::string_view name, bool otherwise = false) const {
    const Json* found = member(value, name);
    if (!found) return otherwise;
    if (!found->boolean()) refuse(concat("expected true or false for '", name, "'"));
    return *found->boolean();
  }
  const Json::List& list(const Json* value, std::string_view name) const {
    const Json* found = member(value, name);
    if (!found || !found->list()) refuse(concat("expected a list '", name, "'"));
    return *found->list();
  }
  // The steps of a normalizer, splitter or decoder: those of a sequence, or the one.
  std::vector<const Json*> steps(std::string_view name, std::string_view inner) const {
    const Json* found = member(name);
    if (!found) return {};
    if (text(found, "type") != "Sequence") return {found};
    std::vector<const Json*> result;
    for (const Json& step : list(found, inner)) result.push_back(&step);
    return result;
  }
  int32_t token(const Json& value) const {
    constexpr int64_t most = 1 << 24;
    if (!value.integer() || *value.integer() < 0 || *value.integer() > most)
      refuse(concat("expected the number of a token, 0 to ", most, ", got ", value.dump()));
    return static_cast<int32_t>(*value.integer());
  }

 private:
  std::string path_;
  Json root_;
};

// ---- the members that decide the fields of PublishedTokenizer::Data

const SplitRule* rule_of(const TokenizerFile& file, const std::string& pattern) {
  for (const SplitRule& rule : split_rules) {
    if (rule.pattern == pattern) return &rule;
  }
  file.refuse(concat("the pattern '", pattern,
                     "' of the pre_tokenizer is not implemented; implemented are those of "
                     "GPT-2, Llama 3 and Qwen 2"));
}

template <class Data>
void read_splitting(const TokenizerFile& file, Data& data) {
  for (const Json* step : file.steps("pre_tokenizer", "pretokenizers")) {
    const std::string type = file.text(step, "type");
    if (type == "ByteLevel") {
      if (file.truth(step, "add_prefix_space")) data.space_unless = true;
      if (file.truth(step, "use_regex", true)) data.rule = &split_rules[0];
      data.byte_level = true;
    } else if (type == "Split") {
      const Json* pattern = TokenizerFile::member(step, "pattern");
      if (file.text(step, "behavior") != "Isolated" || file.truth(step, "invert"))
        file.refuse("a Split of the pre_tokenizer with a behavior other than Isolated is not implemented");
      data.rule = rule_of(file, file.text(pattern, "Regex"));
    } else if (type == "Metaspace") {
      if (file.truth(step, "split", true)) file.refuse("a Metaspace that splits is not implemented");
      const std::string scheme = file.text(step, "prepend_scheme");
      data.space_unless = scheme != "never";
      data.only_at_start = scheme == "first";
    } else {
      file.refuse(concat("the pre_tokenizer '", type, "' is not implemented"));
    }
  }
  if (data.rule && !data.byte_level) file.refuse("a Split without ByteLevel is not implemented");
}

template <class Data>
void read_normalizer(const TokenizerFile& file, Data& data) {
  for (const Json* step : file.steps("normalizer", "normalizers")) {
    const std::string type = file.text(step, "type");
    if (type == "Prepend" && file.text(step, "prepend") == metaspace) {
      data.space_first = true;
    } else if (type == "Replace" && !data.byte_level && file.text(step, "content") == metaspace &&
               file.text(TokenizerFile::member(step, "pattern"), "String") == " ") {
      continue;  // as for every vocabulary of characters
    } else {
      file.refuse(concat("the normalizer '", type, "' is not implemented"));
    }
  }
}

template <class Data>
void read_decoder(const TokenizerFile& file, Data& data) {
  for (const Json* step : file.steps("decoder", "decoders")) {
    const std::string type = file.text(step, "type");
    if (type == "Strip" || (type == "Metaspace" && (data.space_first || data.space_unless))) data.strip_first = true;
    const bool known = type == "ByteLevel" || type == "Replace" || type == "ByteFallback" || type == "Fuse" ||
                       type == "Strip" || type == "Metaspace";
    if (!known) file.refuse(concat("the decoder '", type, "' is not implemented"));
  }
}

}  // namespace

PublishedTokenizer PublishedTokenizer::load(const std::string& path) {
  const TokenizerFile file(path);
  auto made = std::make_shared<Data>();
  Data& data = *made;
  read_splitting(file, data);
  read_normalizer(file, data);
  read_decoder(file, data);

  const Json* model = file.member("model");
  if (!model) file.refuse("expected a member 'model'");
  const Json* type = TokenizerFile::member(model, "type");
  if (type && (!type->text() || *type->text() != "BPE"))
    file.refuse(concat("the model ", type->dump(), " is not implemented; expected BPE"));
  for (const char* name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json* given = TokenizerFile::member(model, name);
    if (given && !(given->text() && given->text()->empty())) file.refuse(concat("'", name, "' is not implemented"));
  }
  data.whole_words = file.truth(model, "ignore_merges");
  const Json* vocabulary = TokenizerFile::member(model, "vocab");
  if (!vocabulary || !vocabulary->object()) file.refuse("expected an object 'vocab'");
  const auto place = [&](int32_t token, std::string text) {
    // A file cannot claim a larger table than its own entries justify.
    const std::size_t most = 16 * vocabulary->object()->size() + 65536;
    if (static_cast<std::size_t>(token) >= most)
      file.refuse(concat("token ", token, " is beyond ", most, ", for ", vocabulary->object()->size(), " entries"));
    if (data.texts.size() <= static_cast<std::size_t>(token)) data.texts.resize(static_cast<std::size_t>(token) + 1);
    data.texts[static_cast<std::size_t>(token)] = std::move(text);
  };
  data.byte_tokens.fill(-1);
  for (const auto& [written, number] : *vocabulary->object()) {
    const int32_t token = file.token(number);
    std::string text;
    if (data.byte_level) {
      for (std::size_t at = 0; at < written.size();) {
        const std::size_t length = character_at(written, at).bytes;
        const auto byte = bytes_by_letter().find(written.substr(at, length));
        if (byte == bytes_by_letter().end()) {  // an added token among the others
          text = written;
          break;
        }
        text += byte->second;
        at += length;
      }
      if (text.size() == 1) data.byte_tokens[static_cast<unsigned char>(text[0])] = token;
    } else {
      text = written;
      const bool byte = written.size() == 6 && written.starts_with("<0x") && written.ends_with('>');
      if (byte && file.truth(model, "byte_fallback")) {
        const auto value = static_cast<unsigned char>(std::strtoul(written.c_str() + 3, nullptr, 16));
        data.byte_tokens[value] = token;
        place(token, std::string(1, static_cast<char>(value)));
        data.vocabulary.emplace(written, token);
        continue;
      }
    }
    data.vocabulary.emplace(text, token);
    place(token, data.byte_level ? text : replace_all(text, metaspace, " "));
  }

  int32_t rank = 0;
  for (const Json& merge : file.list(model, "merges")) {
    std::string first, second;
    if (const std::string* text = merge.text()) {
      const std::size_t space = text->find(' ', 1);
      if (space == std::string::npos) file.refuse(concat("merge ", rank, " is not two tokens"));
      first = text->substr(0, space), second = text->substr(space + 1);
    } else if (merge.list() && merge.list()->size() == 2 && (*merge.list())[0].text() && (*merge.list())[1].text()) {
      first = *(*merge.list())[0].text(), second = *(*merge.list())[1].text();
    } else {
      file.refuse(concat("merge ", rank, " is not two tokens"));
    }
    const auto token_of = [&](const std::string& written) {
      const Json* number = vocabulary->find(written);
      if (!number) file.refuse(concat("merge ", rank, " names '", written, "', which is not in 'vocab'"));
      return file.token(*number);
    };
    const int32_t a = token_of(first), b = token_of(second), joined = token_of(first + second);
    data.merges.emplace(pair_key(a, b), Merge{rank++, joined});
  }
  if (const Json* unknown = TokenizerFile::member(model, "unk_token"); unknown && unknown->text()) {
    if (const Json* number = vocabulary->find(*unknown->text())) data.unknown = file.token(*number);
  }

  if (const Json* added = file.member("added_tokens"); added && added->list()) {
    for (const Json& entry : *added->list()) {
      const Json* number = entry.find("id");
      if (!number) file.refuse("an entry of 'added_tokens' has no 'id'");
      for (const char* name : {"single_word", "lstrip", "rstrip"}) {
        if (file.truth(&entry, name)) file.refuse(concat("added tokens with '", name, "' are not implemented"));
      }
      data.added.push_back({file.text(&entry, "content"), file.token(*number)});
      if (data.added.back().text.empty()) file.refuse("an added token is empty");
      data.begins_added[static_cast<unsigned char>(data.added.back().text[0])] = true;
      place(data.added.back().token, file.truth(&entry, "special") ? "" : data.added.back().text);
    }
  }
  std::stable_sort(data.added.begin(), data.added.end(),
                   [](const Added& a, const Added& b) { return a.text.size() > b.text.size(); });

  // Special tokens before a text, of the template for one text.
  for (const Json* step : file.steps("post_processor", "processors")) {
    const std::string kind = file.text(step, "type");
    if (kind == "ByteLevel") continue;
    if (kind != "TemplateProcessing") file.refuse(concat("the post_processor '", kind, "' is not implemented"));
    bool seen_text = false;
    for (const Json& part : file.list(step, "single")) {
      const Json* special = part.find("SpecialToken");
      if (!special) {
        seen_text = true;
        continue;
      }
      if (seen_text) file.refuse("special tokens after a text are not implemented");
      const std::string name = file.text(special, "id");
      const auto found =
          std::find_if(data.added.begin(), data.added.end(), [&](const Added& one) { return one.text == name; });
      if (found == data.added.end()) file.refuse(concat("the post_processor names '", name, "', which does not exist"));
      data.before.push_back(found->token);
    }
  }
  return PublishedTokenizer(std::move(made));
}

// The tokens of a word before any merge.
std::vector<int32_t> PublishedTokenizer::Data::pieces(std::string_view word) const {
  std::vector<int32_t> result;
  const auto add_bytes = [&](std::string_view bytes) {
    for (const char byte : bytes) {
      const int32_t token = byte_tokens[static_cast<unsigned char>(byte)];
      if (token >= 0)
        result.push_back(token);
      else if (unknown)
        result.push_back(*unknown);
    }
  };
  if (byte_level) {
    add_bytes(word);
    return result;
  }
  for (std::size_t at = 0; at < word.size();) {
    const std::string_view character = word.substr(at, character_at(word, at).bytes);
    const auto found = vocabulary.find(std::string(character));
    if (found != vocabulary.end())
      result.push_back(found->second);
    else if (byte_tokens[static_cast<unsigned char>(character[0])] >= 0)
      add_bytes(character);
    else if (unknown)
      result.push_back(*unknown);
    at += character.size();
  }
  return result;
}

// Merges the pair of the lowest rank, the leftmost first, until none is left. A queue holds the pairs, so that
// long words take n log n.
void PublishedTokenizer::Data::append_word(std::string_view word, std::vector<int32_t>& tokens) const {
  if (whole_words) {
    if (const auto found = vocabulary.find(std::string(word)); found != vocabulary.end()) {
      tokens.push_back(found->second);
      return;
    }
  }
  std::vector<int32_t> own = pieces(word);
  const auto count = static_cast<int32_t>(own.size());
  std::vector<int32_t> next(own.size()), previous(own.size());  // neighbours that are still there
  for (int32_t i = 0; i < count; ++i)
    next[static_cast<std::size_t>(i)] = i + 1, previous[static_cast<std::size_t>(i)] = i - 1;
  struct Candidate {
    int32_t rank, at, first, second, joined;
    bool operator<(const Candidate& other) const { return std::tie(rank, at) > std::tie(other.rank, other.at); }
  };
  std::priority_queue<Candidate> queue;
  const auto consider = [&](int32_t at) {
    if (at < 0 || next[static_cast<std::size_t>(at)] >= count) return;
    const int32_t first = own[static_cast<std::size_t>(at)];
    const int32_t second = own[static_cast<std::size_t>(next[static_cast<std::size_t>(at)])];
    if (const auto found = merges.find(pair_key(first, second)); found != merges.end())
      queue.push({found->second.rank, at, first, second, found->second.token});
  };
  for (int32_t i = 0; i < count; ++i) consider(i);
  constexpr int32_t gone = -1;
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const auto at = static_cast<std::size_t>(best.at);
    if (own[at] != best.first || next[at] >= count || own[static_cast<std::size_t>(next[at])] != best.second) continue;
    const auto merged = static_cast<std::size_t>(next[at]);
    own[at] = best.joined;
    own[merged] = gone;
    next[at] = next[merged];
    if (next[at] < count) previous[static_cast<std::size_t>(next[at])] = best.at;
    consider(previous[at]);
    consider(best.at);
  }
  std::copy_if(own.begin(), own.end(), std::back_inserter(tokens), [](int32_t token) { return token != gone; });
}

// Appends the tokens of a text without added tokens; `first` if it begins the whole text.
void PublishedTokenizer::Data::append_text(std::string_view text, bool first, std::vector<int32_t>& tokens) const {
  if (text.empty()) return;
  std::string changed;
  if (!byte_level) {
    changed = replace_all(text, " ", metaspace);
    const bool wanted = space_unless && !changed.starts_with(metaspace) && (first || !only_at_start);
    if (space_first || wanted) changed.insert(0, metaspace);
    text = changed;
  } else if (space_unless && text[0] != ' ') {
    changed = concat(" ", text);
    text = changed;
  }
  if (!rule) return append_word(text, tokens);
  const WordSplitter splitter(text, *rule);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = splitter.end_of_word(at);
    append_word(text.substr(at, end - at), tokens);
    at = end;
  }
}

std::vector<int32_t> PublishedTokenizer::encode(std::string_view text, bool add_special) const {
  std::vector<int32_t> tokens;
  if (add_special) tokens = data_->before;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (!data_->begins_added[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const auto found = std::find_if(data_->added.begin(), data_->added.end(),
                                    [&](const Added& one) { return text.substr(at).starts_with(one.text); });
    if (found == data_->added.end()) {
      ++at;
      continue;
    }
    data_->append_text(text.substr(start, at - start), start == 0, tokens);
    tokens.push_back(found->token);
    start = at += found->text.size();
  }
  data_->append_text(text.substr(start), start == 0, tokens);
  return tokens;
}

std::string PublishedTokenizer::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t token : tokens) text += bytes(token);
  if (data_->strip_first && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

std::string PublishedTokenizer::bytes(int32_t token) const {
  const bool known = token >= 0 && static_cast<std::size_t>(token) < data_->texts.size();
  return known ? data_->texts[static_cast<std::size_t>(token)] : "";
}

std::optional<int32_t> PublishedTokenizer::find(std::string_view token) const {
  for (const Added& one : data_->added) {
    if (one.text == token) return one.token;
  }
  return std::nullopt;
}

int64_t PublishedTokenizer::vocabulary() const { return static_cast<int64_t>(data_->texts.size()); }

}  // namespace capibara::training
