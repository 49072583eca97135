// JSON text as values. A small reader of its own: the core builds with nothing but a compiler.
#include <capibara/models.h>

#include <cstdlib>

namespace capibara::models {

namespace {

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  Value document() {
    Value value = read(0);
    skip_space();
    if (at_ != text_.size()) fail("nothing more");
    return value;
  }

 private:
  static constexpr int max_depth = 512;  // of nested brackets: a bound on the stack

  [[noreturn]] void fail(const std::string& expected) const {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n';
    }
    std::string got = at_ < text_.size() ? concat("'", text_[at_], "'") : std::string("the end of the text");
    throw ParseError(concat("json: line ", line, ", column ", column, ": expected ", expected, ", got ", got));
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take_word(const char* word) {
    std::string expected(word);
    if (text_.compare(at_, expected.size(), expected) != 0) return false;
    at_ += expected.size();
    return true;
  }

  Value read(int depth) {
    if (depth > max_depth) fail(concat("at most ", max_depth, " nested brackets"));
    skip_space();
    if (take('{')) return read_object(depth);
    if (take('[')) return read_list(depth);
    if (at_ < text_.size() && text_[at_] == '"') return read_string();
    if (take_word("true")) return true;
    if (take_word("false")) return false;
    if (take_word("null")) return None{};
    if (take_word("NaN")) return std::strtod("nan", nullptr);
    if (take_word("Infinity")) return std::strtod("inf", nullptr);
    if (take_word("-Infinity")) return std::strtod("-inf", nullptr);
    return read_number();
  }

  Value read_object(int depth) {
    Entries entries;
    if (take('}')) return Value::dictionary({});
    do {
      skip_space();
      if (at_ >= text_.size() || text_[at_] != '"') fail("a name in quotes");
      std::string name = read_string();
      if (!take(':')) fail("':'");
      entries.emplace_back(std::move(name), read(depth + 1));
    } while (take(','));
    if (!take('}')) fail("',' or '}'");
    return Value::dictionary(std::move(entries));
  }

  Value read_list(int depth) {
    List list;
    if (take(']')) return list;
    do {
      list.push_back(read(depth + 1));
    } while (take(','));
    if (!take(']')) fail("',' or ']'");
    return list;
  }

  std::string read_string() {
    std::string result;
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c != '\\') {
        result += c;
        continue;
      }
      if (at_ >= text_.size()) break;
      char escape = text_[at_++];
      static const std::string names = "nrtbf";
      static const std::string codes = "\n\r\t\b\f";
      if (std::size_t found = names.find(escape); found != std::string::npos) {
        result += codes[found];
      } else if (escape == 'u') {
        if (at_ + 4 > text_.size()) fail("four hexadecimal digits");
        append_code(result, std::strtoul(text_.substr(at_, 4).c_str(), nullptr, 16));
        at_ += 4;
      } else {
        result += escape;
      }
    }
    if (at_ >= text_.size()) fail("'\"'");
    ++at_;
    return result;
  }

  static void append_code(std::string& out, unsigned long code) {
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xc0 | (code >> 6));
      out += static_cast<char>(0x80 | (code & 0x3f));
    } else {
      out += static_cast<char>(0xe0 | (code >> 12));
      out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
      out += static_cast<char>(0x80 | (code & 0x3f));
    }
  }

  Value read_number() {
    const char* begin = text_.c_str() + at_;
    char* end = nullptr;
    double number = std::strtod(begin, &end);
    if (end == begin) fail("a value");
    std::string digits(begin, static_cast<std::size_t>(end - begin));
    at_ += digits.size();
    if (digits.find_first_of(".eExXnN") != std::string::npos) return number;
    return static_cast<int64_t>(std::strtoll(begin, nullptr, 10));
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

Value parse_json(const std::string& text) { return Reader(text).document(); }

}  // namespace capibara::models
