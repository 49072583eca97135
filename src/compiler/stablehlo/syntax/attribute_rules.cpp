// Parses attributes, builtin ones and those of the StableHLO dialects.
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <capibara/error.h>

#include "compiler/stablehlo/syntax/dense.h"
#include "compiler/stablehlo/syntax/parser_rules.h"

namespace capibara::stablehlo {

Attribute make_integer(std::int64_t value, std::string type) {
  return Attribute::of(Integer{value, Type::scalar(std::move(type))});
}

Attribute make_enumeration(std::string_view kind, std::string_view value) {
  DialectAttribute attribute;
  attribute.dialect = "stablehlo";
  attribute.kind = kind;
  attribute.value = value;
  return Attribute::of(std::move(attribute));
}

Attribute make_integers(std::vector<std::int64_t> values) {
  DenseArray array;
  array.element = "i64";
  array.integers = std::move(values);
  return Attribute::of(std::move(array));
}

Attribute Parser::checked(Attribute attribute, std::size_t offset) const {
  if (attribute.depth() > node_depth_limit || attribute.weight() > attribute_weight_limit) {
    fail(offset, "expected a smaller attribute");
  }
  return attribute;
}

Dictionary Parser::make_dictionary(Entries entries, std::size_t offset) const {
  if (const auto name = Dictionary::repeated_name(entries)) {
    fail(offset, concat("expected each attribute once, got '", *name, "' twice"));
  }
  return Dictionary(std::move(entries));
}

Attribute Parser::parse_attribute(bool may_have_type) {
  const NestingGuard guard(*this);
  const std::size_t offset = token().offset;
  switch (token().kind) {
    case TokenKind::integer:
    case TokenKind::floating:
      return parse_number(may_have_type);
    case TokenKind::string:
      return Attribute::of(String{expect_string()});
    case TokenKind::symbol:
      return parse_symbol_reference();
    case TokenKind::hash:
      return parse_dialect_attribute();
    case TokenKind::bang:
      return Attribute::of(parse_type());
    case TokenKind::punctuation:
      if (token().is('-')) return parse_number(may_have_type);
      if (token().is('[')) return checked(parse_array(), offset);
      if (token().is('(')) return Attribute::of(parse_type());
      if (token().is('{')) {
        Entries entries;
        parse_dictionary(entries);
        return checked(Attribute::of(make_dictionary(std::move(entries), offset)), offset);
      }
      fail_expected("an attribute");
    case TokenKind::identifier:
      break;
    default:
      fail_expected("an attribute");
  }
  const std::string_view word = token().text;
  if (word == "true" || word == "false") {
    advance();
    return Attribute::of(word == "true");
  }
  if (word == "unit") {
    advance();
    return Attribute::of(Unit{});
  }
  if (word == "dense") return parse_dense();
  if (word == "array") return parse_dense_array();
  if (word == "loc") return parse_location();
  if (word == "dense_resource" || word == "sparse") {
    fail(offset, concat("expected dense<...>, got ", word, "<...>: write the elements into the text"));
  }
  if (word == "affine_map" || word == "affine_set" || word == "strided") {
    advance();
    if (!token().is('<')) fail_expected("'<'");
    return Attribute::of(OpaqueAttribute{concat(word, "<", take_bracketed_text('>'), ">")});
  }
  return Attribute::of(parse_type());
}

std::uint64_t Parser::expect_magnitude(bool negative) {
  if (token().kind != TokenKind::integer) fail_expected("an integer");
  const bool hexadecimal = token().text.starts_with("0x");
  const std::string_view digits = token().text.substr(hexadecimal ? 2 : 0);
  std::uint64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
  if (result.ec != std::errc() || (negative && value > std::uint64_t{1} << 63)) fail_expected("an integer of 64 bits");
  advance();
  return value;
}

std::int64_t Parser::expect_integer() {
  const std::size_t offset = token().offset;
  const bool negative = take('-');
  const std::uint64_t magnitude = expect_magnitude(negative);
  if (!negative && magnitude >> 63) fail(offset, "expected an integer below 2^63");
  return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
}

namespace {

bool is_float_name(std::string_view name) { return name.starts_with('f') || name == "bf16" || name == "tf32"; }

double float_from_bits(std::uint64_t bits, std::string_view name) {
  if (name == "f64") return std::bit_cast<double>(bits);
  if (name == "f32") return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  const std::optional<DType> dtype = Type::scalar(std::string(name)).dtype();
  const SmallFormat* format = dtype ? find_small_format(*dtype) : nullptr;
  return format ? decode_small_float(*format, static_cast<std::uint32_t>(bits)) : std::nan("");
}

}  // namespace

Attribute Parser::parse_number(bool may_have_type) {
  const bool negative = take('-');
  if (token().kind == TokenKind::floating) {
    double value = 0;
    const char* end = token().text.data() + token().text.size();
    const auto result = std::from_chars(token().text.data(), end, value);
    if (result.ec == std::errc::result_out_of_range) value = std::strtod(std::string(token().text).c_str(), nullptr);
    advance();
    const Type type = may_have_type && take(':') ? parse_type() : Type::scalar("f64");
    return Attribute::of(Float{negative ? -value : value, type});
  }
  const std::size_t offset = token().offset;
  const bool is_pattern = token().text.starts_with("0x");
  const std::uint64_t magnitude = expect_magnitude(negative);
  const auto value = static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
  if (!may_have_type || !take(':')) {
    if (!negative && magnitude >> 63) fail(offset, "expected an integer below 2^63");
    return make_integer(value);
  }
  Type type = parse_type();
  if (type.kind() == Type::Kind::scalar && is_float_name(type.element())) {
    if (is_pattern) return Attribute::of(Float{float_from_bits(magnitude, type.element()), type});
    return Attribute::of(Float{negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude), type});
  }
  if (type.kind() == Type::Kind::scalar && type.element() == "i1") return Attribute::of(magnitude != 0);
  return Attribute::of(Integer{value, std::move(type)});
}

Attribute Parser::parse_dense() {
  advance();
  if (!token().is('<')) fail_expected("'<'");
  const std::size_t begin = lexer_.cursor();
  const std::size_t close = lexer_.find_closing_bracket(begin, '>');
  lexer_.move_to(close + 1);
  expect(':');
  const Type type = parse_type();
  return Attribute::of(decode_dense(lexer_, begin, close, type));
}

Attribute Parser::parse_dense_array() {
  advance();
  expect('<');
  DenseArray array;
  if (token().kind != TokenKind::identifier || !is_scalar_name(token().text)) fail_expected("an element type");
  array.element = token().text;
  const bool is_floating = is_float_name(array.element);
  advance();
  if (take(':')) {
    do {
      if (is_floating) {
        const Attribute number = parse_number(false);
        const Float* value = number.as<Float>();
        array.floats.push_back(value ? value->value : static_cast<double>(number.as<Integer>()->value));
      } else if (token().is_word("true") || token().is_word("false")) {
        array.integers.push_back(token().text == "true");
        advance();
      } else {
        array.integers.push_back(expect_integer());
      }
    } while (take(','));
  }
  expect('>');
  return Attribute::of(std::move(array));
}

Attribute Parser::parse_array() {
  expect('[');
  Array array;
  if (!take(']')) {
    do {
      array.elements.push_back(parse_attribute());
    } while (take(','));
    expect(']');
  }
  return Attribute::of(std::move(array));
}

Attribute Parser::parse_symbol_reference() {
  SymbolReference symbol;
  symbol.name = expect_symbol();
  while (token().is(':') && lexer_.text().substr(token().offset, 3) == "::@") {
    advance();
    advance();
    symbol.nested.push_back(expect_symbol());
  }
  return Attribute::of(std::move(symbol));
}

// { name, name = attribute, "name" = attribute }
void Parser::parse_dictionary(Entries& entries) {
  expect('{');
  if (take('}')) return;
  do {
    std::string name;
    if (token().kind == TokenKind::string) {
      name = expect_string();
    } else {
      name = expect_identifier("an attribute's name");
    }
    entries.emplace_back(std::move(name), take('=') ? parse_attribute() : Attribute::of(Unit{}));
  } while (take(','));
  expect('}');
}

// #alias, #dialect.kind<body>, #dialect<kind body>.
Attribute Parser::parse_dialect_attribute() {
  const std::size_t offset = token().offset;
  const std::string_view name = token().text;
  if (Alias* alias = find_alias(name)) {
    const Attribute attribute = resolve_alias(*alias).attribute;
    advance();
    return attribute;
  }
  advance();
  const std::size_t dot = name.find('.');
  const bool has_body = token().is('<') && token().offset == offset + name.size();
  if (name.size() == 1 || (dot == std::string_view::npos && !has_body)) {
    fail(offset, concat("expected a known attribute, got the undefined alias '", name, "'"));
  }
  if (dot != std::string_view::npos) {
    std::string dialect(name.substr(1, dot - 1));
    std::string kind(name.substr(dot + 1));
    if (!has_body) {
      DialectAttribute attribute;
      attribute.dialect = std::move(dialect);
      attribute.kind = std::move(kind);
      return Attribute::of(std::move(attribute));
    }
    const std::size_t begin = lexer_.cursor();
    const std::size_t close = lexer_.find_closing_bracket(begin, '>');
    return checked(parse_dialect_body(std::move(dialect), std::move(kind), begin, close), offset);
  }
  const std::size_t close = lexer_.find_closing_bracket(lexer_.cursor(), '>');
  advance();
  std::string kind(expect_identifier("an attribute's kind"));
  if (token().is('<')) {
    const std::size_t begin = lexer_.cursor();
    const std::size_t inner_close = lexer_.find_closing_bracket(begin, '>');
    const Attribute attribute = parse_dialect_body(std::string(name.substr(1)), std::move(kind), begin, inner_close);
    expect('>');
    return checked(attribute, offset);
  }
  return checked(parse_dialect_body(std::string(name.substr(1)), std::move(kind), token().offset, close), offset);
}

// The body from `begin` to the closing bracket at `close`, which is consumed.
Attribute Parser::parse_dialect_body(std::string dialect, std::string kind, std::size_t begin, std::size_t close) {
  const NestingGuard guard(*this);
  DialectAttribute attribute;
  attribute.dialect = std::move(dialect);
  attribute.kind = std::move(kind);
  lexer_.move_to(begin);
  if (attribute.dialect == "stablehlo" || attribute.dialect == "chlo" || attribute.dialect == "mhlo") {
    if (attribute.kind == "conv" && token().is('[')) {
      const Attribute numbers = parse_convolution_numbers();
      expect('>');
      return numbers;
    }
    if (token().is('>')) {
      advance();
      return Attribute::of(std::move(attribute));
    }
    if (token().kind == TokenKind::identifier) {
      const std::string_view word = token().text;
      advance();
      if (token().is('>')) {
        advance();
        attribute.value = word;
        return Attribute::of(std::move(attribute));
      }
      const bool is_raw = attribute.kind == "conv" && word == "raw";
      if (is_raw || token().is('=')) {
        if (!is_raw) lexer_.move_to(begin);
        attribute.fields = make_dictionary(parse_fields(), begin);
        expect('>');
        return Attribute::of(std::move(attribute));
      }
    }
  }
  attribute.text = lexer_.text().substr(begin, close - begin);
  lexer_.move_to(close + 1);
  return Attribute::of(std::move(attribute));
}

// name = value, name = value
Parser::Entries Parser::parse_fields() {
  Entries entries;
  do {
    if (token().is('>')) break;
    std::string name(expect_identifier("a field's name"));
    expect('=');
    entries.emplace_back(std::move(name), parse_field_value());
  } while (take(','));
  return entries;
}

Attribute Parser::parse_field_value() {
  const NestingGuard guard(*this);
  if (take('?')) return make_integer(dynamic_size);
  if (token().is('[')) {
    advance();
    Array array;
    if (!take(']')) {
      do {
        array.elements.push_back(parse_field_value());
      } while (take(','));
      expect(']');
    }
    return Attribute::of(std::move(array));
  }
  if (token().is('<') || token().is('(')) {
    const bool is_angle = token().is('<');
    return Attribute::of(String{take_bracketed_text(is_angle ? '>' : ')')});
  }
  if (token().kind == TokenKind::identifier && token().text != "true" && token().text != "false") {
    std::string word(token().text);
    advance();
    return Attribute::of(String{std::move(word)});
  }
  return parse_attribute();
}

// [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], as the fields of the raw form.
Attribute Parser::parse_convolution_numbers() {
  Entries fields;
  // One list: the positions of the two lettered dimensions and of each spatial one.
  const auto parse_list = [&](char first, std::string_view first_name, char second, std::string_view second_name,
                              std::string_view spatial_name) {
    const std::size_t offset = token().offset;
    std::int64_t first_at = -1;
    std::int64_t second_at = -1;
    std::vector<std::pair<std::int64_t, std::int64_t>> spatial;  // number, position
    expect('[');
    std::int64_t position = 0;
    if (!take(']')) {
      do {
        if (take('?')) {
          ++position;  // a dimension without a role
          continue;
        }
        if (token().kind == TokenKind::integer) {
          spatial.emplace_back(expect_integer(), position++);
          continue;
        }
        const std::string_view letter = expect_identifier("a dimension's letter or number");
        std::int64_t* at = letter.size() != 1    ? nullptr
                           : letter[0] == first  ? &first_at
                           : letter[0] == second ? &second_at
                                                 : nullptr;
        if (!at || *at >= 0) fail(offset, concat("expected '", first, "' and '", second, "' once each in the list"));
        *at = position++;
      } while (take(','));
      expect(']');
    }
    if (first_at < 0 || second_at < 0) fail(offset, concat("expected '", first, "' and '", second, "' in the list"));
    Array positions;
    positions.elements.resize(spatial.size());
    for (const auto& [number, at] : spatial) {
      if (number < 0 || number >= static_cast<std::int64_t>(spatial.size()) ||
          positions.elements[static_cast<std::size_t>(number)]) {
        fail(offset, "expected the spatial dimensions 0, 1, ... once each in the list");
      }
      positions.elements[static_cast<std::size_t>(number)] = make_integer(at);
    }
    fields.emplace_back(first_name, make_integer(first_at));
    fields.emplace_back(second_name, make_integer(second_at));
    fields.emplace_back(spatial_name, Attribute::of(std::move(positions)));
  };
  parse_list('b', "input_batch_dimension", 'f', "input_feature_dimension", "input_spatial_dimensions");
  expect_word("x");
  parse_list('i', "kernel_input_feature_dimension", 'o', "kernel_output_feature_dimension",
             "kernel_spatial_dimensions");
  expect_arrow();
  parse_list('b', "output_batch_dimension", 'f', "output_feature_dimension", "output_spatial_dimensions");
  DialectAttribute attribute;
  attribute.dialect = "stablehlo";
  attribute.kind = "conv";
  attribute.fields = Dictionary(std::move(fields));
  return Attribute::of(std::move(attribute));
}

}  // namespace capibara::stablehlo
