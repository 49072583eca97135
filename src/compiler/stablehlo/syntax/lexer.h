// Splits StableHLO text into tokens, one at a time; maps every byte to its line and column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::stablehlo {

enum class TokenKind : std::uint8_t {
  end,
  identifier,  // stablehlo.add, dims, x
  value,       // %name, without a following #1
  block,       // ^bb0
  symbol,      // @name or @"any name"
  hash,        // #alias, #stablehlo.dot, the #1 of %0#1; a lone # has the text "#"
  bang,        // !alias, !stablehlo.token
  string,      // "..." with its quotes
  integer,     // 12, 0xFF
  floating,    // 1.5e-3
  arrow,       // ->
  punctuation  // one character
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  std::size_t offset = 0;

  bool is(char character) const { return kind == TokenKind::punctuation && text.front() == character; }
  bool is_word(std::string_view word) const { return kind == TokenKind::identifier && text == word; }
};

// The offsets at which lines begin; computed once per text.
class LineTable {
 public:
  explicit LineTable(std::string_view text);
  SourcePosition position(std::size_t offset) const;

 private:
  std::vector<std::size_t> starts_;
};

// Reads tokens from `begin` to `end` of a text. The cursor is just after the current token, so that a caller may read
// raw characters from there and then continue with `move_to`.
class Lexer {
 public:
  Lexer(std::string_view text, const LineTable& lines, std::size_t begin, std::size_t end);

  const Token& current() const { return current_; }
  void advance();
  std::size_t cursor() const { return cursor_; }
  std::size_t end() const { return text_.size(); }
  std::string_view text() const { return text_; }
  // Makes the token at or after `offset` the current one.
  void move_to(std::size_t offset);

  // The offset of the bracket that closes the one before `offset`; skips strings and comments, handles nested brackets
  // ( [ { < and ignores the > of an arrow.
  std::size_t find_closing_bracket(std::size_t offset, char closing) const;

  SourcePosition position(std::size_t offset) const { return lines_->position(offset); }
  [[noreturn]] void fail(std::size_t offset, std::string_view message) const;
  // "expected `what`, got <the current token>".
  [[noreturn]] void fail_expected(std::string_view what) const;

 private:
  std::size_t skip_space(std::size_t at) const;
  std::size_t skip_string(std::size_t at) const;
  void take(TokenKind kind, std::size_t begin, std::size_t end);
  void lex_number(std::size_t begin);
  void lex_symbol(std::size_t begin);

  std::string_view text_;
  const LineTable* lines_;
  std::size_t cursor_ = 0;
  Token current_;
};

// The characters of a string token: quotes removed, \n \t \\ \" and \hh replaced.
std::string unescape_string(const Lexer& lexer, const Token& token);

}  // namespace capibara::stablehlo
