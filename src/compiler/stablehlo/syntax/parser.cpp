// Parses modules, operations, regions and values of StableHLO text.
#include "compiler/stablehlo/syntax/parser.h"

#include <algorithm>

#include <capibara/error.h>

#include "compiler/stablehlo/syntax/parser_rules.h"

namespace capibara::stablehlo {

Parser::Parser(std::string_view text, const LineTable& lines, std::size_t begin, std::size_t end)
    : lexer_(text, lines, begin, end) {
  find_aliases(begin, end);
  enter_scope();
}

Parser::NestingGuard::NestingGuard(Parser& parser) : parser_(parser) {
  if (++parser_.nesting_ > nesting_limit) {
    parser_.fail(parser_.token().offset, concat("expected at most ", nesting_limit, " levels of nesting"));
  }
}

bool Parser::take(char character) {
  if (!token().is(character)) return false;
  advance();
  return true;
}

void Parser::expect(char character) {
  if (!take(character)) fail_expected(concat("'", character, "'"));
}

bool Parser::take_word(std::string_view word) {
  if (!token().is_word(word)) return false;
  advance();
  return true;
}

void Parser::expect_word(std::string_view word) {
  if (!take_word(word)) fail_expected(concat("'", word, "'"));
}

void Parser::expect_arrow() {
  if (token().kind != TokenKind::arrow) fail_expected("'->'");
  advance();
}

std::string_view Parser::expect_identifier(std::string_view what) {
  if (token().kind != TokenKind::identifier) fail_expected(what);
  const std::string_view text = token().text;
  advance();
  return text;
}

std::string Parser::expect_string() {
  if (token().kind != TokenKind::string) fail_expected("a string");
  std::string text = unescape_string(lexer_, token());
  advance();
  return text;
}

std::string Parser::expect_symbol() {
  if (token().kind != TokenKind::symbol) fail_expected("a symbol such as @main");
  std::string name;
  if (token().text[1] == '"') {
    name = unescape_string(lexer_, {TokenKind::string, token().text.substr(1), token().offset + 1});
  } else {
    name = token().text.substr(1);
  }
  advance();
  return name;
}

std::string Parser::take_bracketed_text(char closing) {
  const std::size_t begin = lexer_.cursor();
  const std::size_t close = lexer_.find_closing_bracket(begin, closing);
  std::string text(lexer_.text().substr(begin, close - begin));
  lexer_.move_to(close + 1);
  return text;
}

// Values.

void Parser::leave_scope() {
  for (std::string_view name : scopes_.back()) values_.erase(name);
  scopes_.pop_back();
}

// Assigns the next ids and the given types to the definition's values; returns the first id.
ValueId Parser::define(const Definition& definition, const std::vector<Type>& types) {
  const auto first = static_cast<ValueId>(value_types_.size());
  value_types_.insert(value_types_.end(), types.begin(), types.end());
  const auto count = static_cast<std::int64_t>(types.size());
  if (!definition.name.empty()) {
    if (!values_.emplace(definition.name, std::pair(first, count)).second) {
      fail(definition.offset, concat("expected a new value name, got ", definition.name, ", which is defined already"));
    }
    scopes_.back().push_back(definition.name);
  }
  return first;
}

Parser::Definition Parser::parse_value_name() {
  if (token().kind != TokenKind::value) fail_expected("a value such as %0");
  Definition definition{token().text, 1, token().offset};
  advance();
  return definition;
}

Parser::Use Parser::parse_use() {
  const Definition name = parse_value_name();
  std::int64_t index = 0;
  const bool has_index =
      token().kind == TokenKind::hash && token().text.size() > 1 && token().text[1] >= '0' && token().text[1] <= '9';
  if (has_index) {
    for (char digit : token().text.substr(1)) {
      index = std::min<std::int64_t>(index * 10 + (digit - '0'), result_limit);
    }
    advance();
  }
  const auto found = values_.find(name.name);
  if (found == values_.end()) fail(name.offset, concat("expected a defined value, got ", name.name));
  const auto [first, count] = found->second;
  if (index >= count) {
    fail(name.offset, concat("expected a result of ", name.name, " below ", count, ", got #", index));
  }
  return {static_cast<ValueId>(first + index), name.offset};
}

std::vector<Parser::Use> Parser::parse_uses_until(char closing) {
  std::vector<Use> uses;
  if (take(closing)) return uses;
  do {
    uses.push_back(parse_use());
  } while (take(','));
  expect(closing);
  return uses;
}

// Modules.

std::vector<Module> Parser::parse_part() {
  std::vector<Module> modules;
  Module loose;
  loose.position = lexer_.position(token().offset);
  while (token().kind != TokenKind::end) {
    if (at_module()) {
      modules.push_back(parse_module());
    } else {
      parse_module_item(loose);
    }
  }
  if (!loose.functions.empty() || !loose.operations.empty()) modules.insert(modules.begin(), std::move(loose));
  return modules;
}

bool Parser::at_module() const {
  return token().is_word("module") || token().is_word("builtin.module") ||
         (token().kind == TokenKind::string && token().text == "\"builtin.module\"");
}

bool Parser::at_function() const {
  return token().is_word("func.func") || token().is_word("func") ||
         (token().kind == TokenKind::string && token().text == "\"func.func\"");
}

void Parser::parse_module_item(Module& module) {
  if (token().kind == TokenKind::hash || token().kind == TokenKind::bang) return parse_alias_definition();
  if (lexer_.text().substr(token().offset, 3) == "{-#") {
    // Resources: rejected if dense_resource uses them, otherwise ignored.
    const std::size_t close = lexer_.text().find("#-}", token().offset);
    if (close == std::string_view::npos) fail(token().offset, "expected '#-}' after '{-#'");
    return lexer_.move_to(close + 3);
  }
  if (at_module()) fail(token().offset, "expected a function or an operation, got a module inside a module");
  if (!at_function()) return parse_operation(module.operations);
  Function function = parse_function();
  module.functions.push_back(std::move(function));
}

void Parser::parse_module_body(Module& module, char closing) {
  expect('{');
  while (!token().is(closing)) {
    if (token().kind == TokenKind::end) fail_expected("'}'");
    parse_module_item(module);
  }
  expect(closing);
}

Module Parser::parse_module() {
  Module module;
  const std::size_t offset = token().offset;
  module.position = lexer_.position(offset);
  Entries attributes;
  const bool is_generic = token().kind == TokenKind::string;
  advance();
  if (is_generic) {
    expect('(');
    expect(')');
    if (take('<')) {
      parse_dictionary(attributes);
      expect('>');
    }
    expect('(');
    parse_module_body(module, '}');
    expect(')');
    if (token().is('{')) parse_dictionary(attributes);
    expect(':');
    parse_function_type();
    const auto named = std::find_if(attributes.begin(), attributes.end(),
                                    [](const Dictionary::Entry& entry) { return entry.first == "sym_name"; });
    if (named != attributes.end()) {
      const String* name = named->second.as<String>();
      if (!name) fail(offset, "builtin.module: expected a string as sym_name");
      module.name = name->value;
      attributes.erase(named);
    }
  } else {
    if (token().kind == TokenKind::symbol) module.name = expect_symbol();
    if (take_word("attributes")) parse_dictionary(attributes);
    parse_module_body(module, '}');
  }
  module.attributes = make_dictionary(std::move(attributes), offset);
  module.location = parse_optional_location();
  return module;
}

// Operations.

void Parser::parse_operation(std::vector<Operation>& into) {
  const NestingGuard guard(*this);
  std::vector<Definition> definitions;
  if (token().kind == TokenKind::value) {
    do {
      Definition definition = parse_value_name();
      if (take(':')) {
        definition.count = expect_integer();
        if (definition.count < 1 || definition.count > result_limit) {
          fail(definition.offset, concat("expected 1 to ", result_limit, " results, got ", definition.count));
        }
      }
      definitions.push_back(definition);
    } while (take(','));
    expect('=');
  }
  Draft draft;
  draft.offset = token().offset;
  draft.operation.position = lexer_.position(draft.offset);
  if (token().kind == TokenKind::string) {
    draft.operation.name = expect_string();
    parse_generic_operation(draft);
  } else if (token().kind == TokenKind::identifier) {
    draft.operation.name = token().text;
    advance();
    parse_pretty_operation(draft);
  } else {
    fail_expected("an operation");
  }
  draft.operation.location = parse_optional_location();
  finish(draft, definitions, into);
}

// "name"(operands) <{properties}> ({regions}) {attributes} : (types) -> types
void Parser::parse_generic_operation(Draft& draft) {
  expect('(');
  draft.uses = parse_uses_until(')');
  if (token().is('[')) fail_expected("an operation without successor blocks");
  if (take('<')) {
    parse_dictionary(draft.attributes);
    expect('>');
  }
  if (take('(')) {
    do {
      draft.operation.regions.push_back(parse_region());
    } while (take(','));
    expect(')');
  }
  if (token().is('{')) parse_dictionary(draft.attributes);
  expect(':');
  parse_functional_signature(draft);
}

Region Parser::parse_region() { return parse_region({}); }

// { operations }, or { ^block(arguments): operations ... }; `arguments` are those of a first block without a label.
Region Parser::parse_region(const std::vector<Argument>& arguments) {
  const NestingGuard guard(*this);
  Region region;
  expect('{');
  enter_scope();
  if (!arguments.empty() || (!token().is('}') && token().kind != TokenKind::block)) {
    Block& block = region.blocks.emplace_back();
    define_arguments(block, arguments);
    parse_block_operations(block);
  }
  while (token().kind == TokenKind::block) {
    advance();
    std::vector<Argument> labelled;
    if (take('(') && !take(')')) {
      do {
        labelled.push_back(parse_argument());
      } while (take(','));
      expect(')');
    }
    expect(':');
    Block& block = region.blocks.emplace_back();
    define_arguments(block, labelled);
    parse_block_operations(block);
  }
  expect('}');
  leave_scope();
  return region;
}

void Parser::parse_block_operations(Block& block) {
  while (!token().is('}') && token().kind != TokenKind::block) {
    if (token().kind == TokenKind::end) fail_expected("'}'");
    parse_operation(block.operations);
  }
}

void Parser::set_types(Draft& draft, const std::vector<Type>& operands, std::vector<Type> results) {
  Operation& operation = draft.operation;
  if (operands.size() != draft.uses.size()) {
    fail(draft.offset,
         concat(operation.name, ": expected ", draft.uses.size(), " operand types, got ", operands.size()));
  }
  operation.operands.reserve(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Use& use = draft.uses[i];
    const Type& defined = value_types_[static_cast<std::size_t>(use.id)];
    if (!(defined == operands[i])) {
      fail(use.offset, concat(operation.name, ": expected operand ", i, " of type ", defined.text(),
                              " as it was defined, got ", operands[i].text()));
    }
    operation.operands.push_back({use.id, defined});
  }
  operation.results.reserve(results.size());
  for (Type& type : results) operation.results.push_back({-1, std::move(type)});
}

// Numbers the results, which become visible to later operations, and stores the operation.
void Parser::finish(Draft& draft, const std::vector<Definition>& definitions, std::vector<Operation>& into) {
  Operation& operation = draft.operation;
  operation.attributes = make_dictionary(std::move(draft.attributes), draft.offset);
  std::int64_t named = 0;
  for (const Definition& definition : definitions) named += definition.count;
  const auto count = static_cast<std::int64_t>(operation.results.size());
  if (!definitions.empty() && named != count) {
    fail(draft.offset, concat(operation.name, ": expected names for ", count, " results, got ", named));
  }
  std::size_t next = 0;
  const auto define_next = [&](const Definition& definition) {
    std::vector<Type> types;
    for (std::int64_t i = 0; i < definition.count; ++i) {
      types.push_back(operation.results[next + static_cast<std::size_t>(i)].type);
    }
    ValueId id = define(definition, types);
    for (std::int64_t i = 0; i < definition.count; ++i) operation.results[next++].id = id++;
  };
  for (const Definition& definition : definitions) define_next(definition);
  if (definitions.empty() && count > 0) define_next(Definition{{}, count, draft.offset});
  into.push_back(std::move(operation));
}

// Entry points.

namespace {

bool is_divider(std::string_view line) { return line.starts_with("// -----"); }

}  // namespace

std::vector<Module> parse_modules(std::string_view text) {
  const LineTable lines(text);
  std::vector<Module> modules;
  std::size_t begin = 0;
  const auto parse_part = [&](std::size_t end) {
    for (Module& module : Parser(text, lines, begin, end).parse_part()) modules.push_back(std::move(module));
  };
  std::size_t line = 0;
  while (line < text.size()) {
    const std::size_t newline = std::min(text.find('\n', line), text.size());
    if (is_divider(text.substr(line, 8))) {
      parse_part(line);
      begin = newline;
    }
    line = newline + 1;
  }
  parse_part(text.size());
  return modules;
}

Module parse_module(std::string_view text) {
  std::vector<Module> modules = parse_modules(text);
  if (modules.size() != 1) throw ParseError(concat("1:1: expected one module, got ", modules.size()));
  return std::move(modules.front());
}

}  // namespace capibara::stablehlo
