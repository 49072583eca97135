// Parses locations, and aliases of locations and of other attributes and types.
#include <algorithm>
#include <cstring>

#include <capibara/error.h>

#include "compiler/stablehlo/syntax/parser_rules.h"

namespace capibara::stablehlo {

Attribute Parser::parse_optional_location() { return token().is_word("loc") ? parse_location() : Attribute(); }

Attribute Parser::parse_location() {
  expect_word("loc");
  expect('(');
  const Attribute location = parse_location_body();
  expect(')');
  return location;
}

Attribute Parser::parse_location_body() {
  const NestingGuard guard(*this);
  const std::size_t offset = token().offset;
  Location location;
  if (token().kind == TokenKind::hash) {
    const Attribute attribute = parse_dialect_attribute();
    if (!attribute.as<Location>()) fail(offset, "expected a location, got another attribute");
    return attribute;
  }
  if (token().kind == TokenKind::string) {
    location.name = expect_string();
    location.kind = Location::Kind::name;
    if (take('(')) {
      location.children.push_back(parse_location_body());
      expect(')');
    } else if (take(':')) {
      location.kind = Location::Kind::file;
      location.line = expect_integer();
      expect(':');
      location.column = expect_integer();
      if (take_word("to")) {
        if (token().kind == TokenKind::integer) expect_integer();
        expect(':');
        expect_integer();
      }
    }
  } else if (take_word("callsite")) {
    location.kind = Location::Kind::call_site;
    expect('(');
    location.children.push_back(parse_location_body());
    expect_word("at");
    location.children.push_back(parse_location_body());
    expect(')');
  } else if (take_word("fused")) {
    location.kind = Location::Kind::fused;
    if (token().is('<')) take_bracketed_text('>');
    expect('[');
    if (!take(']')) {
      do {
        location.children.push_back(parse_location_body());
      } while (take(','));
      expect(']');
    }
  } else if (!take_word("unknown")) {
    fail_expected("a location");
  }
  return checked(Attribute::of(std::move(location)), offset);
}

// Definitions are collected before anything is parsed: those of locations come after the module that uses them.
void Parser::find_aliases(std::size_t begin, std::size_t end) {
  const std::string_view text = lexer_.text();
  std::size_t line = begin;
  while (line < end) {
    std::size_t at = text.find_first_not_of(" \t", line);
    if (at != std::string_view::npos && at < end && (text[at] == '#' || text[at] == '!')) {
      const std::size_t name_end = std::min(text.find_first_of(" \t=\n<(", at), end);
      const std::size_t equals = text.find_first_not_of(" \t", name_end);
      if (name_end > at + 1 && equals < end && text[equals] == '=') {
        Alias alias;
        alias.name_offset = at;
        alias.begin = equals + 1;
        const std::string_view name = text.substr(at, name_end - at);
        if (!aliases_.emplace(name, alias).second) fail(at, concat("expected one definition of '", name, "', got two"));
      }
    }
    const void* newline = std::memchr(text.data() + line, '\n', end - line);
    if (!newline) break;
    line = static_cast<std::size_t>(static_cast<const char*>(newline) - text.data()) + 1;
  }
}

Parser::Alias* Parser::find_alias(std::string_view name) {
  const auto found = aliases_.find(name);
  return found == aliases_.end() ? nullptr : &found->second;
}

// Does not change the current token.
const Parser::Alias& Parser::resolve_alias(Alias& alias) {
  if (alias.is_resolved) return alias;
  if (alias.is_being_resolved) fail(token().offset, "expected an alias that does not contain itself");
  const NestingGuard guard(*this);
  const std::size_t resume = token().offset;
  const bool is_type = token().kind == TokenKind::bang;
  alias.is_being_resolved = true;
  lexer_.move_to(alias.begin);
  if (is_type) {
    alias.type = parse_type();
  } else {
    alias.attribute = parse_attribute();
  }
  alias.end = token().offset;
  alias.is_being_resolved = false;
  alias.is_resolved = true;
  lexer_.move_to(resume);
  return alias;
}

void Parser::parse_alias_definition() {
  Alias* alias = find_alias(token().text);
  if (!alias || alias->name_offset != token().offset) {
    fail(token().offset, "expected a module, a function, an operation or an alias definition on a line of its own");
  }
  lexer_.move_to(resolve_alias(*alias).end);
}

}  // namespace capibara::stablehlo
