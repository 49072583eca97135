// Parses functions: func.func in pretty and in generic form.
#include <algorithm>

#include <capibara/error.h>

#include "compiler/stablehlo/syntax/parser_rules.h"

namespace capibara::stablehlo {

Function Parser::parse_function() {
  Function function;
  function.position = lexer_.position(token().offset);
  // A function cannot use outer values, and numbers its own from 0.
  decltype(values_) outer_values;
  decltype(scopes_) outer_scopes;
  decltype(value_types_) outer_types;
  std::swap(values_, outer_values);
  std::swap(scopes_, outer_scopes);
  std::swap(value_types_, outer_types);
  enter_scope();
  const bool is_generic = token().kind == TokenKind::string;
  advance();
  if (is_generic) {
    parse_generic_function(function);
  } else {
    parse_pretty_function(function);
  }
  function.location = parse_optional_location();
  function.value_count = static_cast<ValueId>(value_types_.size());
  std::swap(values_, outer_values);
  std::swap(scopes_, outer_scopes);
  std::swap(value_types_, outer_types);
  return function;
}

Parser::Argument Parser::parse_argument() {
  Argument argument;
  argument.definition = parse_value_name();
  expect(':');
  argument.type = parse_type();
  if (token().is('{')) parse_dictionary(argument.attributes);
  argument.location = parse_optional_location();
  return argument;
}

void Parser::define_arguments(Block& block, const std::vector<Argument>& arguments) {
  for (const Argument& argument : arguments) {
    const ValueId id = define(argument.definition, {argument.type});
    block.arguments.push_back({id, argument.type, argument.location});
  }
}

void Parser::parse_function_arguments(Function& function, std::vector<Argument>& arguments) {
  expect('(');
  if (!take(')')) {
    do {
      if (token().kind == TokenKind::value) {
        arguments.push_back(parse_argument());
      } else {
        // A declaration has types only.
        Argument argument;
        argument.type = parse_type();
        if (token().is('{')) parse_dictionary(argument.attributes);
        arguments.push_back(std::move(argument));
      }
    } while (take(','));
    expect(')');
  }
  for (Argument& argument : arguments) {
    const ValueId id = define(argument.definition, {argument.type});
    function.arguments.push_back({id, argument.type,
                                  make_dictionary(std::move(argument.attributes), argument.definition.offset),
                                  argument.location});
  }
}

void Parser::parse_function_results(Function& function) {
  if (token().kind != TokenKind::arrow) return;
  advance();
  if (!take('(')) {
    function.results.push_back({parse_type(), {}});
    return;
  }
  if (take(')')) return;
  do {
    const std::size_t offset = token().offset;
    FunctionResult result{parse_type(), {}};
    Entries entries;
    if (token().is('{')) parse_dictionary(entries);
    result.attributes = make_dictionary(std::move(entries), offset);
    function.results.push_back(std::move(result));
  } while (take(','));
  expect(')');
}

void Parser::parse_pretty_function(Function& function) {
  for (std::string_view word : {"public", "private", "nested"}) {
    if (take_word(word)) {
      function.visibility = word;
      break;
    }
  }
  const std::size_t offset = token().offset;
  function.name = expect_symbol();
  std::vector<Argument> arguments;
  parse_function_arguments(function, arguments);
  parse_function_results(function);
  Entries attributes;
  if (take_word("attributes")) parse_dictionary(attributes);
  function.attributes = make_dictionary(std::move(attributes), offset);
  function.is_declaration = !token().is('{');
  if (function.is_declaration) return;
  for (const Argument& argument : arguments) {
    if (argument.definition.name.empty()) fail_expected("no body after arguments without names");
  }
  advance();
  parse_block_operations(function.body);
  if (!token().is('}')) fail_expected("'}' (a function has one block)");
  advance();
}

// The properties of a generic func.func are what the pretty form has before the body.
void Parser::apply_function_properties(Function& function, Entries entries, std::size_t offset) {
  const Dictionary all = make_dictionary(std::move(entries), offset);
  const auto text_of = [&](std::string_view name) {
    const Attribute attribute = all.find(name);
    if (attribute && !attribute.as<String>()) fail(offset, concat("func.func: expected a string as ", name));
    return attribute ? attribute.as<String>()->value : std::string();
  };
  const auto dictionary_of = [&](std::string_view name, std::size_t index, std::size_t count) {
    const Attribute attribute = all.find(name);
    if (!attribute) return Dictionary();
    const Array* array = attribute.as<Array>();
    const Dictionary* dictionary =
        array && array->elements.size() == count ? array->elements[index].as<Dictionary>() : nullptr;
    if (!dictionary) fail(offset, concat("func.func: expected ", count, " dictionaries in ", name));
    return *dictionary;
  };
  function.name = text_of("sym_name");
  function.visibility = text_of("sym_visibility");
  const Attribute type_attribute = all.find("function_type");
  const Type* type = type_attribute.as<Type>();
  if (!type || !type->is_function()) fail(offset, "func.func: expected a function type as function_type");
  for (std::size_t i = 0; i < type->inputs().size(); ++i) {
    function.arguments.push_back({-1, type->inputs()[i], dictionary_of("arg_attrs", i, type->inputs().size()), {}});
  }
  for (std::size_t i = 0; i < type->results().size(); ++i) {
    function.results.push_back({type->results()[i], dictionary_of("res_attrs", i, type->results().size())});
  }
  Entries others;
  for (const Dictionary::Entry& entry : all) {
    const std::string& name = entry.first;
    if (name != "sym_name" && name != "sym_visibility" && name != "function_type" && name != "arg_attrs" &&
        name != "res_attrs") {
      others.push_back(entry);
    }
  }
  function.attributes = Dictionary(std::move(others));
}

void Parser::parse_generic_function(Function& function) {
  const std::size_t offset = token().offset;
  expect('(');
  expect(')');
  Entries entries;
  if (take('<')) {
    parse_dictionary(entries);
    expect('>');
  }
  expect('(');
  const std::size_t region_offset = token().offset;
  Region region = parse_region();
  expect(')');
  if (token().is('{')) parse_dictionary(entries);
  expect(':');
  parse_function_type();
  apply_function_properties(function, std::move(entries), offset);
  function.is_declaration = region.blocks.empty();
  if (function.is_declaration) {
    for (FunctionArgument& argument : function.arguments) argument.id = define({}, {argument.type});
    return;
  }
  if (region.blocks.size() != 1) fail(region_offset, "func.func: expected one block");
  Block& block = region.blocks.front();
  const bool matches =
      std::equal(block.arguments.begin(), block.arguments.end(), function.arguments.begin(), function.arguments.end(),
                 [](const BlockArgument& a, const FunctionArgument& b) { return a.type == b.type; });
  if (!matches) fail(region_offset, "func.func: expected the block's arguments to be the function's");
  for (std::size_t i = 0; i < block.arguments.size(); ++i) {
    function.arguments[i].id = block.arguments[i].id;
    function.arguments[i].location = block.arguments[i].location;
  }
  block.arguments.clear();
  function.body = std::move(block);
}

}  // namespace capibara::stablehlo
