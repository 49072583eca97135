// The tokens of StableHLO text.
#include "compiler/stablehlo/syntax/lexer.h"

#include <algorithm>
#include <cstring>

#include <capibara/error.h>

namespace capibara::stablehlo {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '$' || c == '.'; }
bool is_suffix(char c) { return is_word(c) || c == '-'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

int hex_value(char c) { return is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10; }

template <class Predicate>
std::size_t skip_while(std::string_view text, std::size_t at, Predicate predicate) {
  while (at < text.size() && predicate(text[at])) ++at;
  return at;
}

// The text of a token for messages; long tokens are truncated.
std::string show(const Token& token) {
  if (token.kind == TokenKind::end) return "the end of the text";
  constexpr std::size_t limit = 40;
  std::string out = "'";
  for (char c : token.text.substr(0, limit)) out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  return out + (token.text.size() > limit ? "...'" : "'");
}

}  // namespace

LineTable::LineTable(std::string_view text) : starts_{0} {
  const char* begin = text.data();
  const char* end = begin + text.size();
  const char* at = begin;
  while (at < end) {
    const void* newline = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
    if (!newline) break;
    at = static_cast<const char*>(newline) + 1;
    starts_.push_back(static_cast<std::size_t>(at - begin));
  }
}

SourcePosition LineTable::position(std::size_t offset) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
  const std::size_t start = *(after - 1);
  return {static_cast<std::int32_t>(after - starts_.begin()), static_cast<std::int32_t>(offset - start + 1)};
}

Lexer::Lexer(std::string_view text, const LineTable& lines, std::size_t begin, std::size_t end)
    : text_(text.substr(0, end)), lines_(&lines), cursor_(begin) {
  advance();
}

void Lexer::fail(std::size_t offset, std::string_view message) const {
  const SourcePosition at = position(offset);
  throw ParseError(concat(at.line, ":", at.column, ": ", message));
}

void Lexer::fail_expected(std::string_view what) const {
  fail(current_.offset, concat("expected ", what, ", got ", show(current_)));
}

std::size_t Lexer::skip_space(std::size_t at) const {
  while (at < text_.size()) {
    const char c = text_[at];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++at;
    } else if (c == '/' && at + 1 < text_.size() && text_[at + 1] == '/') {
      const std::size_t newline = text_.find('\n', at);
      at = newline == std::string_view::npos ? text_.size() : newline + 1;
    } else {
      break;
    }
  }
  return at;
}

// From an opening quote to just after the closing one.
std::size_t Lexer::skip_string(std::size_t begin) const {
  std::size_t at = begin + 1;
  while (at < text_.size()) {
    const char c = text_[at];
    if (c == '"') return at + 1;
    if (c == '\n') break;
    at += c == '\\' ? 2 : 1;
  }
  fail(begin, "expected a closing '\"' on the same line, got none");
}

void Lexer::take(TokenKind kind, std::size_t begin, std::size_t end) {
  current_ = {kind, text_.substr(begin, end - begin), begin};
  cursor_ = end;
}

void Lexer::move_to(std::size_t offset) {
  cursor_ = offset;
  advance();
}

void Lexer::lex_number(std::size_t begin) {
  std::size_t at = begin;
  if (text_[at] == '0' && at + 2 < text_.size() && text_[at + 1] == 'x' && is_hex(text_[at + 2])) {
    return take(TokenKind::integer, begin, skip_while(text_, at + 2, is_hex));
  }
  at = skip_while(text_, at, is_digit);
  if (at >= text_.size() || text_[at] != '.') return take(TokenKind::integer, begin, at);
  at = skip_while(text_, at + 1, is_digit);
  if (at < text_.size() && (text_[at] == 'e' || text_[at] == 'E')) {
    std::size_t exponent = at + 1;
    if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
    if (exponent < text_.size() && is_digit(text_[exponent])) at = skip_while(text_, exponent, is_digit);
  }
  take(TokenKind::floating, begin, at);
}

void Lexer::lex_symbol(std::size_t begin) {
  const std::size_t at = begin + 1;
  if (at < text_.size() && text_[at] == '"') return take(TokenKind::symbol, begin, skip_string(at));
  const std::size_t end = skip_while(text_, at, is_suffix);
  if (end == at) fail(begin, "expected a name after '@', got none");
  take(TokenKind::symbol, begin, end);
}

void Lexer::advance() {
  const std::size_t at = skip_space(cursor_);
  if (at >= text_.size()) return take(TokenKind::end, text_.size(), text_.size());
  const char c = text_[at];
  if (is_letter(c)) return take(TokenKind::identifier, at, skip_while(text_, at, is_word));
  if (is_digit(c)) return lex_number(at);
  const auto take_suffixed = [&](TokenKind kind) {
    const std::size_t end = at + 1 < text_.size() && is_digit(text_[at + 1]) ? skip_while(text_, at + 1, is_digit)
                                                                             : skip_while(text_, at + 1, is_suffix);
    take(kind, at, end);
  };
  switch (c) {
    case '%':
    case '^':
    case '!':
      take_suffixed(c == '%' ? TokenKind::value : c == '^' ? TokenKind::block : TokenKind::bang);
      if (current_.text.size() == 1) fail(at, concat("expected a name after '", c, "', got none"));
      return;
    case '#':
      return take_suffixed(TokenKind::hash);
    case '@':
      return lex_symbol(at);
    case '"':
      return take(TokenKind::string, at, skip_string(at));
    case '-':
      if (at + 1 < text_.size() && text_[at + 1] == '>') return take(TokenKind::arrow, at, at + 2);
      return take(TokenKind::punctuation, at, at + 1);
    default:
      break;
  }
  if (std::strchr("(){}[]<>,:=+*?/|;", c) && c != '\0') return take(TokenKind::punctuation, at, at + 1);
  fail(at, concat("expected a token, got the byte ", static_cast<int>(static_cast<unsigned char>(c))));
}

std::size_t Lexer::find_closing_bracket(std::size_t offset, char closing) const {
  std::string open(1, closing);
  std::size_t at = offset;
  while (at < text_.size()) {
    const char c = text_[at];
    switch (c) {
      case '"':
        at = skip_string(at);
        continue;
      case '/':
        if (const std::size_t next = skip_space(at); next != at) {
          at = next;
          continue;
        }
        break;
      case '-':
        if (at + 1 < text_.size() && text_[at + 1] == '>') ++at;
        break;
      case '(':
        open += ')';
        break;
      case '[':
        open += ']';
        break;
      case '{':
        open += '}';
        break;
      case '<':
        open += '>';
        break;
      case ')':
      case ']':
      case '}':
      case '>':
        if (open.back() != c) fail(at, concat("expected '", open.back(), "', got '", c, "'"));
        open.pop_back();
        if (open.empty()) return at;
        break;
      default:
        break;
    }
    ++at;
  }
  fail(text_.size(), concat("expected '", open.back(), "', got the end of the text"));
}

std::string unescape_string(const Lexer& lexer, const Token& token) {
  const std::string_view body = token.text.substr(1, token.text.size() - 2);
  std::string out;
  out.reserve(body.size());
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      out += body[i];
      continue;
    }
    const std::string_view escape = body.substr(i + 1, 2);
    if (!escape.empty() && (escape[0] == '"' || escape[0] == '\\')) {
      out += escape[0];
      i += 1;
    } else if (!escape.empty() && (escape[0] == 'n' || escape[0] == 't')) {
      out += escape[0] == 'n' ? '\n' : '\t';
      i += 1;
    } else if (escape.size() == 2 && is_hex(escape[0]) && is_hex(escape[1])) {
      out += static_cast<char>(hex_value(escape[0]) * 16 + hex_value(escape[1]));
      i += 2;
    } else {
      lexer.fail(token.offset + 1 + i, "expected one of \\n, \\t, \\\\, \\\" or two hexadecimal digits after '\\'");
    }
  }
  return out;
}

}  // namespace capibara::stablehlo
