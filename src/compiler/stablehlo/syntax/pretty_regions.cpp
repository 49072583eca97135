// The pretty forms of operations with regions, and those of the sharding dialect.
#include <capibara/error.h>

#include "compiler/stablehlo/syntax/parser_rules.h"

namespace capibara::stablehlo {
namespace {

Attribute sharding_attribute(std::string_view kind, std::string text) {
  DialectAttribute attribute;
  attribute.dialect = "sdy";
  attribute.kind = kind;
  attribute.text = std::move(text);
  return Attribute::of(std::move(attribute));
}

}  // namespace

// reduce(%a init: %z), (%b init: %y) applies stablehlo.add across dimensions = [0] {attributes} : signature
// reduce(%a init: %z) across dimensions = [0] : signature reducer(%p: type, %q: type) { ... }
void Parser::parse_reduce(Draft& draft) {
  std::vector<Use> initial;
  do {
    expect('(');
    draft.uses.push_back(parse_use());
    expect_word("init");
    expect(':');
    initial.push_back(parse_use());
    expect(')');
  } while (take(','));
  draft.uses.insert(draft.uses.end(), initial.begin(), initial.end());
  std::string_view reducer;
  const std::size_t reducer_offset = token().offset;
  if (take_word("applies")) reducer = expect_identifier("an operation's name");
  expect_word("across");
  expect_word("dimensions");
  expect('=');
  draft.attributes.emplace_back("dimensions", parse_integer_list());
  parse_optional_attributes(draft);
  expect(':');
  parse_functional_signature(draft);
  if (reducer.empty()) {
    draft.operation.regions.push_back(parse_reducer());
  } else {
    std::vector<Type> types;
    for (const Use& use : initial) types.push_back(value_types_[static_cast<std::size_t>(use.id)]);
    draft.operation.regions.push_back(make_reducer(reducer, types, reducer_offset));
  }
}

// The region that `applies name` abbreviates: two scalars of the initial value's type, the operation, a return.
Region Parser::make_reducer(std::string_view name, const std::vector<Type>& types, std::size_t offset) {
  if (types.size() != 1) fail(offset, "stablehlo.reduce: expected one operand with 'applies'");
  const Type& type = types.front();
  enter_scope();
  Region region;
  Block& block = region.blocks.emplace_back();
  const ValueId left = define({}, {type});
  const ValueId right = define({}, {type});
  const ValueId sum = define({}, {type});
  block.arguments = {{left, type, {}}, {right, type, {}}};
  Operation apply;
  apply.name = name;
  apply.operands = {{left, type}, {right, type}};
  apply.results = {{sum, type}};
  apply.position = lexer_.position(offset);
  Operation yield;
  yield.name = "stablehlo.return";
  yield.operands = {{sum, type}};
  yield.position = apply.position;
  block.operations.push_back(std::move(apply));
  block.operations.push_back(std::move(yield));
  leave_scope();
  return region;
}

// reducer(%a: t, %b: t) (%c: u, %d: u) { ... }: a pair per operand; the block takes all firsts, then all seconds.
Region Parser::parse_reducer() {
  expect_word("reducer");
  std::vector<Argument> firsts;
  std::vector<Argument> seconds;
  while (take('(')) {
    firsts.push_back(parse_argument());
    expect(',');
    seconds.push_back(parse_argument());
    expect(')');
  }
  if (firsts.empty()) fail_expected("'('");
  firsts.insert(firsts.end(), seconds.begin(), seconds.end());
  return parse_region(firsts);
}

// while(%i = %a, %j = %b) : types attributes {..} cond { ... } do { ... }
void Parser::parse_while(Draft& draft) {
  std::vector<Argument> arguments;
  expect('(');
  if (!take(')')) {
    do {
      Argument argument;
      argument.definition = parse_value_name();
      expect('=');
      draft.uses.push_back(parse_use());
      arguments.push_back(std::move(argument));
    } while (take(','));
    expect(')');
  }
  std::vector<Type> types;
  if (take(':')) {
    do {
      types.push_back(parse_type());
    } while (take(','));
  }
  set_types(draft, types, types);
  for (std::size_t i = 0; i < arguments.size(); ++i) arguments[i].type = types[i];
  if (take_word("attributes")) parse_dictionary(draft.attributes);
  expect_word("cond");
  draft.operation.regions.push_back(parse_region(arguments));
  expect_word("do");
  draft.operation.regions.push_back(parse_region(arguments));
}

// sdy.mesh @name = <["x"=2, "y"=2]> {attributes}
void Parser::parse_mesh(Draft& draft) {
  draft.attributes.emplace_back("sym_name", Attribute::of(String{expect_symbol()}));
  expect('=');
  if (!token().is('<')) fail_expected("'<'");
  draft.attributes.emplace_back("mesh", sharding_attribute("mesh", take_bracketed_text('>')));
  parse_optional_attributes(draft);
}

// sdy.sharding_constraint %x <@mesh, [{"x"}, {}]> : type
void Parser::parse_sharding_constraint(Draft& draft) {
  draft.uses.push_back(parse_use());
  if (!token().is('<')) fail_expected("'<'");
  draft.attributes.emplace_back("sharding", sharding_attribute("sharding", take_bracketed_text('>')));
  parse_optional_attributes(draft);
  parse_signature(draft);
}

// sdy.manual_computation(%a) in_shardings=[..] out_shardings=[..] manual_axes={..} (%b: type) { ... } : signature
void Parser::parse_manual_computation(Draft& draft) {
  expect('(');
  draft.uses = parse_uses_until(')');
  for (const char* name : {"in_shardings", "out_shardings"}) {
    expect_word(name);
    expect('=');
    if (!token().is('[')) fail_expected("'['");
    draft.attributes.emplace_back(name, sharding_attribute("sharding_per_value", "[" + take_bracketed_text(']') + "]"));
  }
  expect_word("manual_axes");
  expect('=');
  if (!token().is('{')) fail_expected("'{'");
  draft.attributes.emplace_back("manual_axes", sharding_attribute("manual_axes", "{" + take_bracketed_text('}') + "}"));
  std::vector<Argument> arguments;
  expect('(');
  if (!take(')')) {
    do {
      arguments.push_back(parse_argument());
    } while (take(','));
    expect(')');
  }
  draft.operation.regions.push_back(parse_region(arguments));
  parse_optional_attributes(draft);
  parse_signature(draft);
}

}  // namespace capibara::stablehlo
