// Parses types: tensor<2x?xf32>, tuple<..>, (a) -> b, f32, !dialect.name, and aliases of them.
#include <charconv>

#include <capibara/error.h>

#include "compiler/stablehlo/syntax/parser_rules.h"

namespace capibara::stablehlo {

// i1, ui8, si32, f32, bf16, f8E4M3FN, tf32, index: names that are types by themselves.
bool Parser::is_scalar_name(std::string_view name) {
  if (name == "index" || name == "tf32" || name == "bf16") return true;
  const auto starts_number = [&](std::size_t at) { return at < name.size() && name[at] >= '0' && name[at] <= '9'; };
  if (name.front() == 'f') return starts_number(1);
  const std::size_t prefix = name.starts_with("ui") || name.starts_with("si") ? 2 : name.starts_with('i') ? 1 : 0;
  if (prefix == 0 || !starts_number(prefix)) return false;
  return name.find_first_not_of("0123456789", prefix) == std::string_view::npos;
}

Type Parser::checked(Type type, std::size_t offset) const {
  if (type.depth() > node_depth_limit || type.weight() > type_weight_limit) fail(offset, "expected a smaller type");
  return type;
}

Type Parser::parse_type() {
  const NestingGuard guard(*this);
  const std::size_t offset = token().offset;
  if (token().is('(')) return parse_function_type();
  if (token().kind == TokenKind::bang) {
    const std::string_view name = token().text;
    if (Alias* alias = find_alias(name)) {
      const Type type = resolve_alias(*alias).type;
      advance();
      return type;
    }
    if (name.find('.') == std::string_view::npos) {
      fail(offset, concat("expected a known type, got the undefined alias '", name, "'"));
    }
    advance();
    if (name == "!stablehlo.token" || name == "!mhlo.token") return Type::token();
    std::string text(name);
    if (token().is('<')) text += "<" + take_bracketed_text('>') + ">";
    return Type::opaque(std::move(text));
  }
  if (token().kind != TokenKind::identifier) fail_expected("a type");
  const std::string_view name = token().text;
  if (name == "tensor") return parse_tensor_type();
  if (name == "none") {
    advance();
    return Type();
  }
  if (name == "tuple") {
    advance();
    expect('<');
    return checked(Type::tuple(parse_types_until('>')), offset);
  }
  if (name == "complex") {
    advance();
    expect('<');
    if (token().kind != TokenKind::identifier || !is_scalar_name(token().text)) fail_expected("a number type");
    std::string text = concat("complex<", token().text, ">");
    advance();
    expect('>');
    return Type::scalar(std::move(text));
  }
  if (name == "vector" || name == "memref") {
    advance();
    if (!token().is('<')) fail_expected("'<'");
    return Type::opaque(concat(name, "<", take_bracketed_text('>'), ">"));
  }
  if (!is_scalar_name(name)) fail_expected("a type");
  std::string text(name);
  advance();
  return Type::scalar(std::move(text));
}

// Sizes are read as characters, because the lexer would take 0x8xf32 for a hexadecimal number.
std::vector<std::int64_t> Parser::parse_dimensions(std::size_t& at, bool& ranked) {
  const std::string_view text = lexer_.text();
  const auto is_at = [&](char c) { return at < text.size() && text[at] == c; };
  const auto skip_space = [&] {
    while (is_at(' ') || is_at('\n') || is_at('\t') || is_at('\r')) ++at;
  };
  const auto expect_x = [&] {
    if (!is_at('x')) fail(at, "expected 'x' after a dimension's size");
    ++at;
  };
  std::vector<std::int64_t> dims;
  std::int64_t room = element_limit;
  skip_space();
  if (is_at('*')) {
    ++at;
    expect_x();
    ranked = false;
    return dims;
  }
  while (at < text.size() && (text[at] == '?' || (text[at] >= '0' && text[at] <= '9'))) {
    const std::size_t begin = at;
    std::int64_t size = dynamic_size;
    if (is_at('?')) {
      ++at;
    } else {
      const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), size);
      // A zero size does not relax the limit: the other sizes are still multiplied.
      if (error != std::errc() || size > room) fail(begin, "expected a tensor of at most 2^56 elements");
      if (size > 1) room /= size;
      at = static_cast<std::size_t>(end - text.data());
    }
    expect_x();
    dims.push_back(size);
    if (dims.size() > rank_limit) fail(begin, concat("expected at most ", rank_limit, " dimensions"));
    skip_space();
  }
  return dims;
}

Type Parser::parse_tensor_type() {
  const std::size_t offset = token().offset;
  advance();
  if (!token().is('<')) fail_expected("'<'");
  const std::size_t begin = lexer_.cursor();
  std::size_t close = lexer_.text().find_first_of("<>", begin);
  if (close == std::string_view::npos) close = lexer_.end();
  if (close == lexer_.end() || lexer_.text()[close] == '<') close = lexer_.find_closing_bracket(begin, '>');
  const std::string_view key = lexer_.text().substr(begin, close - begin);
  if (const auto known = tensor_types_.find(key); known != tensor_types_.end()) {
    lexer_.move_to(close + 1);
    return known->second;
  }
  std::size_t at = begin;
  bool ranked = true;
  std::vector<std::int64_t> dims = parse_dimensions(at, ranked);
  lexer_.move_to(at);
  const std::size_t element_offset = token().offset;
  const Type element = parse_type();
  if (element.kind() != Type::Kind::scalar && element.kind() != Type::Kind::opaque) {
    fail(element_offset, "expected an element type, got " + element.text());
  }
  Type type;
  if (!ranked) {
    type = Type::unranked_tensor(element.element());
  } else {
    Attribute encoding;
    if (take(',')) encoding = parse_attribute();
    type = checked(Type::tensor(std::move(dims), element.element(), encoding), offset);
  }
  expect('>');
  tensor_types_.emplace(key, type);
  return type;
}

std::vector<Type> Parser::parse_types_until(char closing) {
  std::vector<Type> types;
  if (take(closing)) return types;
  do {
    types.push_back(parse_type());
  } while (take(','));
  expect(closing);
  return types;
}

std::vector<Type> Parser::parse_result_types() {
  if (take('(')) return parse_types_until(')');
  return {parse_type()};
}

Type Parser::parse_function_type() {
  const std::size_t offset = token().offset;
  expect('(');
  std::vector<Type> inputs = parse_types_until(')');
  expect_arrow();
  std::vector<Type> results = parse_result_types();
  return checked(Type::function(std::move(inputs), std::move(results)), offset);
}

}  // namespace capibara::stablehlo
