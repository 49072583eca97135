// The pretty forms of operations without regions: a table for regular ones, a function for each of the others.
#include <array>
#include <charconv>
#include <initializer_list>

#include <capibara/error.h>

#include "compiler/stablehlo/syntax/dense.h"
#include "compiler/stablehlo/syntax/parser_rules.h"

namespace capibara::stablehlo {
namespace {

// The syntax of `keyword = value` in a pretty form.
enum class ArgumentKind {
  attribute,  // any attribute, without a type; the default
  integers,   // [0, 1]
  word,       // NAME, a member of the enumeration named by `enumeration`
  words,      // [NAME, NAME]
  format,     // e5m10: the two bit counts of reduce_precision
};

struct KeywordArgument {
  std::string_view keyword;
  std::string_view attribute;
  ArgumentKind kind = ArgumentKind::attribute;
  std::string_view enumeration = {};
};

struct KeywordForm {
  std::string_view operation;
  std::array<KeywordArgument, 3> arguments;
};

constexpr auto integers = ArgumentKind::integers;

// clang-format off
constexpr KeywordForm keyword_forms[] = {
    {"stablehlo.broadcast", {{{"sizes", "broadcast_sizes", integers}}}},
    {"stablehlo.broadcast_in_dim", {{{"dims", "broadcast_dimensions", integers}}}},
    {"stablehlo.concatenate", {{{"dim", "dimension"}}}},
    {"stablehlo.dot", {{{"precision", "precision_config", ArgumentKind::words, "precision"}}}},
    {"stablehlo.dynamic_broadcast_in_dim", {{{"dims", "broadcast_dimensions", integers}}}},
    {"stablehlo.dynamic_iota", {{{"dim", "iota_dimension"}}}},
    {"stablehlo.dynamic_slice", {{{"sizes", "slice_sizes", integers}}}},
    {"stablehlo.einsum", {{{"config", "einsum_config"}}}},
    {"stablehlo.fft", {{{"type", "fft_type", ArgumentKind::word, "fft_type"}, {"length", "fft_length", integers}}}},
    {"stablehlo.get_dimension_size", {{{"dim", "dimension"}}}},
    {"stablehlo.iota", {{{"dim", "iota_dimension"}}}},
    {"stablehlo.pad", {{{"low", "edge_padding_low", integers}, {"high", "edge_padding_high", integers},
                        {"interior", "interior_padding", integers}}}},
    {"stablehlo.reduce_precision", {{{"format", "", ArgumentKind::format}}}},
    {"stablehlo.reverse", {{{"dims", "dimensions", integers}}}},
    {"stablehlo.rng", {{{"distribution", "rng_distribution", ArgumentKind::word, "rng_distribution"}}}},
    {"stablehlo.rng_bit_generator", {{{"algorithm", "rng_algorithm", ArgumentKind::word, "rng_algorithm"}}}},
    {"stablehlo.set_dimension_size", {{{"dim", "dimension"}}}},
    {"stablehlo.transpose", {{{"dims", "permutation", integers}}}},
    {"stablehlo.unary_einsum", {{{"config", "einsum_config"}}}},
};
// clang-format on

KeywordArgument find_argument(std::string_view operation, std::string_view keyword) {
  for (const KeywordForm& form : keyword_forms) {
    if (form.operation != operation) continue;
    for (const KeywordArgument& argument : form.arguments)
      if (argument.keyword == keyword) return argument;
  }
  return {keyword, keyword};
}

// Operations that end a block or check a value: their types are those of the operands, and they have no results.
bool has_no_results(std::string_view name) { return name.ends_with(".return") || name.starts_with("check."); }

}  // namespace

void Parser::parse_pretty_operation(Draft& draft) {
  using Rule = void (Parser::*)(Draft&);
  static const std::unordered_map<std::string_view, Rule> rules = {
      {"stablehlo.constant", &Parser::parse_constant},
      {"chlo.constant", &Parser::parse_constant},
      {"stablehlo.compare", &Parser::parse_compare},
      {"stablehlo.slice", &Parser::parse_slice},
      {"stablehlo.dot_general", &Parser::parse_dot_general},
      {"stablehlo.custom_call", &Parser::parse_custom_call},
      {"stablehlo.composite", &Parser::parse_composite},
      {"stablehlo.get_tuple_element", &Parser::parse_get_tuple_element},
      {"stablehlo.convolution", &Parser::parse_convolution},
      {"stablehlo.reduce", &Parser::parse_reduce},
      {"stablehlo.while", &Parser::parse_while},
      {"func.call", &Parser::parse_call},
      {"check.expect_eq_const", &Parser::parse_expect_constant},
      {"check.expect_almost_eq_const", &Parser::parse_expect_constant},
      {"sdy.mesh", &Parser::parse_mesh},
      {"sdy.sharding_constraint", &Parser::parse_sharding_constraint},
      {"sdy.manual_computation", &Parser::parse_manual_computation},
  };
  std::string& name = draft.operation.name;
  // Inside a function the prefix "func." may be omitted.
  if (name == "return" || name == "call") name.insert(0, "func.");
  if (name.find('.') == std::string::npos) {
    fail(draft.offset, concat("expected an operation, got '", name, "'"));
  }
  const auto rule = rules.find(name);
  if (rule == rules.end()) return parse_table_form(draft);
  (this->*rule->second)(draft);
}

// name {attributes} %a, %b, keyword = value {attributes} : types, with or without parentheses around the operands.
void Parser::parse_table_form(Draft& draft) {
  parse_optional_attributes(draft);
  const bool has_parentheses = take('(');
  while (token().kind == TokenKind::value || token().kind == TokenKind::identifier || token().is(',')) {
    if (token().is_word("loc")) break;
    // dynamic_slice of a scalar prints `%x, , sizes = []`.
    if (take(',')) continue;
    parse_pretty_item(draft);
    if (!token().is(',')) break;
  }
  if (has_parentheses) expect(')');
  parse_optional_attributes(draft);
  parse_signature(draft);
}

void Parser::parse_pretty_item(Draft& draft) {
  if (token().kind == TokenKind::value) {
    draft.uses.push_back(parse_use());
    return;
  }
  const std::string_view keyword = expect_identifier("an operand or 'keyword ='");
  expect('=');
  parse_keyword_argument(draft, keyword);
}

void Parser::parse_keyword_argument(Draft& draft, std::string_view keyword) {
  const KeywordArgument argument = find_argument(draft.operation.name, keyword);
  Attribute value;
  switch (argument.kind) {
    case ArgumentKind::attribute:
      value = parse_attribute(false);
      break;
    case ArgumentKind::integers:
      value = parse_integer_list();
      break;
    case ArgumentKind::word:
      value = make_enumeration(argument.enumeration, expect_identifier("a name"));
      break;
    case ArgumentKind::words:
      value = parse_enumeration_list(argument.enumeration);
      break;
    case ArgumentKind::format: {
      const std::string_view text = token().text;
      std::int32_t exponent = -1;
      std::int32_t mantissa = -1;
      const char* end = text.data() + text.size();
      if (token().kind == TokenKind::identifier && text.starts_with('e')) {
        const auto first = std::from_chars(text.data() + 1, end, exponent);
        if (first.ec == std::errc() && first.ptr < end && *first.ptr == 'm') {
          const auto second = std::from_chars(first.ptr + 1, end, mantissa);
          if (second.ec != std::errc() || second.ptr != end) mantissa = -1;
        }
      }
      if (exponent < 0 || mantissa < 0) fail_expected("a format such as e5m10");
      advance();
      draft.attributes.emplace_back("exponent_bits", make_integer(exponent, "i32"));
      draft.attributes.emplace_back("mantissa_bits", make_integer(mantissa, "i32"));
      return;
    }
  }
  draft.attributes.emplace_back(argument.attribute, std::move(value));
}

Attribute Parser::parse_integer_list() {
  if (!token().is('[')) return parse_attribute(false);
  advance();
  std::vector<std::int64_t> values;
  if (!take(']')) {
    do {
      values.push_back(expect_integer());
    } while (take(','));
    expect(']');
  }
  return make_integers(std::move(values));
}

Attribute Parser::parse_enumeration_list(std::string_view kind) {
  expect('[');
  Array array;
  if (!take(']')) {
    do {
      array.elements.push_back(make_enumeration(kind, expect_identifier("a name")));
    } while (take(','));
    expect(']');
  }
  return Attribute::of(std::move(array));
}

void Parser::parse_optional_attributes(Draft& draft) {
  if (token().is('{')) parse_dictionary(draft.attributes);
}

// Signatures: `: (a, b) -> c`, `: a, b -> c`, or the short forms without results.
void Parser::parse_signature(Draft& draft) {
  if (!take(':')) {
    if (!draft.uses.empty()) fail_expected("':'");
    return;
  }
  if (token().is('(')) return parse_functional_signature(draft);
  const std::size_t offset = token().offset;
  std::vector<Type> types;
  do {
    types.push_back(parse_type());
  } while (take(','));
  if (token().kind != TokenKind::arrow) return apply_short_signature(draft, types, offset);
  advance();
  set_types(draft, types, parse_result_types());
}

void Parser::parse_functional_signature(Draft& draft) {
  expect('(');
  const std::vector<Type> inputs = parse_types_until(')');
  expect_arrow();
  set_types(draft, inputs, parse_result_types());
}

void Parser::apply_short_signature(Draft& draft, const std::vector<Type>& types, std::size_t offset) {
  const std::string& name = draft.operation.name;
  const std::size_t operands = draft.uses.size();
  if (has_no_results(name)) return set_types(draft, types, {});
  if (name == "stablehlo.optimization_barrier") return set_types(draft, types, types);
  if (name == "stablehlo.select" && types.size() == 2) {
    return set_types(draft, {types[0], types[1], types[1]}, {types[1]});
  }
  if (types.size() != 1) {
    fail(offset, concat(name, ": expected one type or (types) -> types, got ", types.size(), " types"));
  }
  const Type& type = types.front();
  if (name == "stablehlo.tuple" && type.is_tuple()) return set_types(draft, type.elements(), {type});
  const std::string_view element = type.element();
  if (name == "stablehlo.complex" && type.is_tensor() && element.starts_with("complex<")) {
    const std::string part(element.substr(8, element.size() - 9));
    const Type operand = type.is_ranked() ? Type::tensor(type.dims(), part) : Type::unranked_tensor(part);
    return set_types(draft, std::vector<Type>(operands, operand), {type});
  }
  set_types(draft, std::vector<Type>(operands, type), {type});
}

// constant {attributes} dense<..> : type
void Parser::parse_constant(Draft& draft) {
  parse_optional_attributes(draft);
  const std::size_t offset = token().offset;
  const Attribute value = parse_attribute();
  const DenseElements* dense = value.as<DenseElements>();
  if (!dense) fail(offset, concat(draft.operation.name, ": expected dense<...> : tensor<...>"));
  draft.attributes.emplace_back("value", value);
  set_types(draft, {}, {dense->type});
}

// compare EQ, %a, %b, FLOAT {attributes} : signature
void Parser::parse_compare(Draft& draft) {
  draft.attributes.emplace_back("comparison_direction",
                                make_enumeration("comparison_direction", expect_identifier("a comparison direction")));
  while (take(',')) {
    if (token().kind == TokenKind::value) {
      draft.uses.push_back(parse_use());
    } else {
      draft.attributes.emplace_back("compare_type",
                                    make_enumeration("comparison_type", expect_identifier("a comparison type")));
    }
  }
  parse_optional_attributes(draft);
  parse_signature(draft);
}

// slice %x [0:4, 1:9:2] : signature
void Parser::parse_slice(Draft& draft) {
  draft.uses.push_back(parse_use());
  expect('[');
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> limits;
  std::vector<std::int64_t> strides;
  if (!take(']')) {
    do {
      starts.push_back(expect_integer());
      expect(':');
      limits.push_back(expect_integer());
      strides.push_back(take(':') ? expect_integer() : 1);
    } while (take(','));
    expect(']');
  }
  draft.attributes.emplace_back("start_indices", make_integers(std::move(starts)));
  draft.attributes.emplace_back("limit_indices", make_integers(std::move(limits)));
  draft.attributes.emplace_back("strides", make_integers(std::move(strides)));
  parse_optional_attributes(draft);
  parse_signature(draft);
}

// dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [..], algorithm = <..>
void Parser::parse_dot_general(Draft& draft) {
  Entries fields;
  const auto parse_list = [&](std::string name) {
    const Attribute list = parse_integer_list();
    const auto* array = list.as<DenseArray>();
    if (!array) fail_expected("a list of dimensions");
    Array numbers;
    for (std::int64_t value : array->integers) numbers.elements.push_back(make_integer(value));
    // The generic form omits empty lists.
    if (!numbers.elements.empty()) fields.emplace_back(std::move(name), Attribute::of(std::move(numbers)));
  };
  do {
    if (token().kind == TokenKind::value) {
      draft.uses.push_back(parse_use());
      continue;
    }
    const std::string_view keyword = expect_identifier("an operand or 'keyword ='");
    const std::size_t offset = token().offset;
    expect('=');
    if (keyword == "batching_dims" || keyword == "contracting_dims") {
      const std::string name = keyword == "batching_dims" ? "batching_dimensions" : "contracting_dimensions";
      parse_list("lhs_" + name);
      expect_word("x");
      parse_list("rhs_" + name);
    } else if (keyword == "precision") {
      draft.attributes.emplace_back("precision_config", parse_enumeration_list("precision"));
    } else if (keyword == "algorithm") {
      DialectAttribute algorithm;
      algorithm.dialect = "stablehlo";
      algorithm.kind = "dot_algorithm";
      expect('<');
      algorithm.fields = make_dictionary(parse_fields(), offset);
      expect('>');
      draft.attributes.emplace_back("algorithm", Attribute::of(std::move(algorithm)));
    } else {
      fail(offset,
           concat("stablehlo.dot_general: expected batching_dims, contracting_dims, precision or algorithm, got ",
                  keyword));
    }
  } while (take(','));
  DialectAttribute numbers;
  numbers.dialect = "stablehlo";
  numbers.kind = "dot";
  numbers.fields = make_dictionary(std::move(fields), draft.offset);
  draft.attributes.emplace_back("dot_dimension_numbers", Attribute::of(std::move(numbers)));
  parse_optional_attributes(draft);
  parse_signature(draft);
}

// call @f(%a, %b) {attributes} : signature
void Parser::parse_call(Draft& draft) {
  draft.attributes.emplace_back("callee", parse_symbol_reference());
  expect('(');
  draft.uses = parse_uses_until(')');
  parse_optional_attributes(draft);
  parse_signature(draft);
}

// custom_call @target(%a, %b) {attributes} : signature
void Parser::parse_custom_call(Draft& draft) {
  draft.attributes.emplace_back("call_target_name", Attribute::of(String{expect_symbol()}));
  expect('(');
  draft.uses = parse_uses_until(')');
  parse_optional_attributes(draft);
  parse_signature(draft);
}

// composite "name" %a, %b {attributes} : signature
void Parser::parse_composite(Draft& draft) {
  draft.attributes.emplace_back("name", Attribute::of(String{expect_string()}));
  if (token().kind == TokenKind::value) {
    do {
      draft.uses.push_back(parse_use());
    } while (take(','));
  }
  parse_optional_attributes(draft);
  parse_signature(draft);
}

// get_tuple_element %t[1] {attributes} : signature
void Parser::parse_get_tuple_element(Draft& draft) {
  draft.uses.push_back(parse_use());
  expect('[');
  draft.attributes.emplace_back("index", make_integer(expect_integer(), "i32"));
  expect(']');
  parse_optional_attributes(draft);
  parse_signature(draft);
}

// check.expect_eq_const %a, dense<..> : type
void Parser::parse_expect_constant(Draft& draft) {
  draft.uses.push_back(parse_use());
  expect(',');
  const std::size_t offset = token().offset;
  const Attribute value = parse_attribute();
  const DenseElements* dense = value.as<DenseElements>();
  if (!dense) fail(offset, concat(draft.operation.name, ": expected dense<...> : tensor<...>"));
  draft.attributes.emplace_back("value", value);
  set_types(draft, {dense->type}, {});
}

// convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2]} {attributes} : signature
void Parser::parse_convolution(Draft& draft) {
  expect('(');
  draft.uses = parse_uses_until(')');
  expect_word("dim_numbers");
  expect('=');
  draft.attributes.emplace_back("dimension_numbers", parse_convolution_numbers());
  if (take(',')) {
    expect_word("window");
    expect('=');
    parse_convolution_window(draft);
  }
  parse_optional_attributes(draft);
  parse_signature(draft);
}

void Parser::parse_convolution_window(Draft& draft) {
  static constexpr std::pair<std::string_view, std::string_view> lists[] = {
      {"stride", "window_strides"}, {"lhs_dilate", "lhs_dilation"}, {"rhs_dilate", "rhs_dilation"}};
  expect('{');
  if (take('}')) return;
  do {
    const std::size_t offset = token().offset;
    const std::string_view keyword = expect_identifier("a part of the window");
    expect('=');
    if (keyword == "pad") {
      // [[low, high], ...] becomes dense<..> : tensor<Nx2xi64>.
      std::vector<std::uint8_t> bytes;
      std::int64_t count = 0;
      const auto put = [&](std::int64_t value) {
        for (int i = 0; i < 8; ++i)
          bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * i)));
      };
      expect('[');
      if (!take(']')) {
        do {
          expect('[');
          put(expect_integer());
          expect(',');
          put(expect_integer());
          expect(']');
          ++count;
        } while (take(','));
        expect(']');
      }
      DenseElements padding = make_dense(Type::tensor({count, 2}, "i64"), std::move(bytes), 8);
      draft.attributes.emplace_back("padding", Attribute::of(std::move(padding)));
      continue;
    }
    if (keyword == "reverse") {
      DenseArray reversal;
      reversal.element = "i1";
      expect('[');
      if (!take(']')) {
        do {
          const bool is_number = token().kind == TokenKind::integer;
          if (!is_number && !token().is_word("true") && !token().is_word("false")) fail_expected("true or false");
          reversal.integers.push_back(is_number ? token().text != "0" : token().text == "true");
          advance();
        } while (take(','));
        expect(']');
      }
      draft.attributes.emplace_back("window_reversal", Attribute::of(std::move(reversal)));
      continue;
    }
    std::string_view attribute;
    for (const auto& [word, name] : lists)
      if (word == keyword) attribute = name;
    if (attribute.empty()) {
      fail(offset,
           concat("stablehlo.convolution: expected stride, pad, lhs_dilate, rhs_dilate or reverse, got ", keyword));
    }
    draft.attributes.emplace_back(attribute, parse_integer_list());
  } while (take(','));
  expect('}');
}

}  // namespace capibara::stablehlo
