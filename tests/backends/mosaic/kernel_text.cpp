// Reads the text of a TPU kernel into a tree.
#include "kernel_text.h"

#include <cctype>
#include <cstdlib>
#include <cstring>

namespace capibara::mosaic {

namespace {

constexpr int64_t element_limit = 1 << 26;
constexpr int depth_limit = 64;

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  Operation module() {
    Operation operation = this->operation();
    if (operation.name != "builtin.module") fail("expected builtin.module, got " + operation.name);
    return operation;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(const std::string& token) {
    skip();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  void expect(const std::string& token) {
    if (!take(token)) fail("expected '" + token + "' at byte " + std::to_string(at_));
  }
  char next() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  std::string word() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || std::strchr("_.$%@^#-", text_[at_])))
      ++at_;
    if (at_ == begin) fail("expected a name at byte " + std::to_string(at_));
    return text_.substr(begin, at_ - begin);
  }
  std::string quoted() {
    expect("\"");
    const std::size_t end = text_.find('"', at_);
    if (end == std::string::npos) fail("a string does not end");
    std::string inner = text_.substr(at_, end - at_);
    at_ = end + 1;
    return inner;
  }
  // Text up to one of `stops` outside of brackets and strings.
  std::string balanced(const char* stops) {
    skip();
    const std::size_t begin = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        at_ = text_.find('"', at_ + 1);
        if (at_ == std::string::npos) fail("a string does not end");
        continue;
      }
      if (c == '-' && at_ + 1 < text_.size() && text_[at_ + 1] == '>') {
        if (depth == 0 && std::strchr(stops, '-')) break;
        ++at_;
        continue;
      }
      if (depth == 0 && std::strchr(stops, c)) break;
      if (std::strchr("([{<", c)) ++depth;
      if (std::strchr(")]}>", c) && --depth < 0) break;
    }
    if (at_ >= text_.size()) fail("a bracket does not close");
    std::size_t end = at_;
    while (end > begin && std::isspace(static_cast<unsigned char>(text_[end - 1]))) --end;
    return text_.substr(begin, end - begin);
  }
  std::vector<std::string> list(const char* close) {
    std::vector<std::string> items;
    while (!take(close)) {
      if (!items.empty()) expect(",");
      items.push_back(balanced(","));
      if (items.back().empty()) fail("an entry of a list is empty");
    }
    return items;
  }
  void dictionary(std::map<std::string, std::string>& into) {
    while (!take("}")) {
      if (!into.empty()) take(",");
      const std::string key = word();
      into[key] = take("=") ? balanced(",") : "";
    }
  }
  Block block() {
    Block block;
    if (next() == '^') {
      word();
      expect("(");
      for (const std::string& argument : list(")")) {
        const std::size_t colon = argument.find(':');
        if (colon == std::string::npos) fail("an argument has no type");
        std::size_t type = colon + 1;
        while (type < argument.size() && argument[type] == ' ') ++type;
        block.arguments.emplace_back(argument.substr(0, colon), argument.substr(type));
      }
      expect(":");
    }
    while (!take("}")) block.operations.push_back(operation());
    return block;
  }
  Operation operation() {
    if (++depth_ > depth_limit) fail("regions are nested too deeply");
    Operation operation;
    if (next() == '%') {
      do operation.results.push_back(word());
      while (take(","));
      expect("=");
    }
    operation.name = quoted();
    constexpr const char* prefix = "stable_mosaic.";
    if (operation.name.rfind(prefix, 0) == 0) operation.name.erase(0, std::strlen(prefix));
    expect("(");
    operation.operands = list(")");
    if (take("<{")) {
      dictionary(operation.attributes);
      expect(">");
    }
    if (take("({")) {
      do operation.regions.push_back(block());
      while (take(",") && take("{"));
      expect(")");
    }
    if (take("{")) dictionary(operation.attributes);
    expect(":");
    expect("(");
    operation.operand_types = list(")");
    expect("->");
    if (take("("))
      operation.result_types = list(")");
    else
      operation.result_types = {type()};
    if (operation.result_types.size() != operation.results.size() ||
        operation.operand_types.size() != operation.operands.size())
      fail(operation.name + ": the numbers of values and of types differ");
    --depth_;
    return operation;
  }
  std::string type() {
    std::string name = word();
    if (next() == '<') {
      expect("<");
      name += "<" + balanced("") + ">";
      expect(">");
    }
    return name;
  }

  const std::string& text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Operation read_kernel(const std::string& text) { return Reader(text).module(); }

int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size < 0 || (size > 0 && count > element_limit / size)) fail("an array is too large");
    count *= size;
  }
  return count;
}

std::vector<int64_t> numbers_in(const std::string& text) {
  std::vector<int64_t> numbers;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool negative =
        text[i] == '-' && i + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[i + 1]));
    if (!negative && !std::isdigit(static_cast<unsigned char>(text[i]))) continue;
    char* end = nullptr;
    numbers.push_back(std::strtoll(text.c_str() + i, &end, 10));
    i = static_cast<std::size_t>(end - text.c_str());
  }
  return numbers;
}

Type type_of(const std::string& text) {
  const std::size_t open = text.find('<');
  if (open == std::string::npos) return {"", text, {}};
  Type type{text.substr(0, open), "", {}};
  std::size_t at = open + 1;
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) {
    char* end = nullptr;
    type.shape.push_back(std::strtoll(text.c_str() + at, &end, 10));
    at = static_cast<std::size_t>(end - text.c_str());
    if (at >= text.size() || text[at] != 'x') fail("type " + text + " is malformed");
    ++at;
  }
  const std::size_t end = text.find_first_of(",>", at);
  if (end == std::string::npos) fail("type " + text + " is malformed");
  type.element = text.substr(at, end - at);
  count_of(type.shape);
  return type;
}

}  // namespace capibara::mosaic
