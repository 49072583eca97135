// The recursive-descent parser behind parse_module: one member function per grammar rule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/stablehlo/syntax/lexer.h"
#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::stablehlo {

// Limits that keep hostile text from exhausting stack or memory. No real program comes near them.
inline constexpr int nesting_limit = 200;
inline constexpr int node_depth_limit = 500;                    // through aliases
inline constexpr std::size_t type_weight_limit = 1 << 14;       // of one type, with aliases expanded
inline constexpr std::size_t attribute_weight_limit = 1 << 22;  // of one attribute
inline constexpr std::size_t rank_limit = 64;                   // as in NumPy
inline constexpr std::int64_t element_limit = 1LL << 56;        // of one tensor
inline constexpr std::int64_t result_limit = 1LL << 20;         // of one operation

class Parser {
 public:
  // Reads the part of `text` between two offsets.
  Parser(std::string_view text, const LineTable& lines, std::size_t begin, std::size_t end);

  // The modules of the part; functions and operations outside any module form another one, the first.
  std::vector<Module> parse_part();

 private:
  using Entries = std::vector<Dictionary::Entry>;

  // `%name` as an operand, before its type is known.
  struct Use {
    ValueId id;
    std::size_t offset;
  };

  // `%name:2` as a result of an operation or as an argument.
  struct Definition {
    std::string_view name;
    std::int64_t count = 1;
    std::size_t offset = 0;
  };

  // An operation that is being parsed.
  struct Draft {
    Operation operation;
    std::vector<Use> uses;
    Entries attributes;
    std::size_t offset = 0;
  };

  struct Argument {
    Definition definition;
    Type type;
    Entries attributes;
    Attribute location;
  };

  struct Alias {
    std::size_t name_offset = 0;
    std::size_t begin = 0;  // of the definition
    std::size_t end = 0;    // known once resolved
    bool is_resolved = false;
    bool is_being_resolved = false;
    Attribute attribute;
    Type type;
  };

  class NestingGuard {
   public:
    explicit NestingGuard(Parser& parser);
    ~NestingGuard() { --parser_.nesting_; }
    NestingGuard(const NestingGuard&) = delete;
    NestingGuard& operator=(const NestingGuard&) = delete;

   private:
    Parser& parser_;
  };

  // Tokens.
  const Token& token() const { return lexer_.current(); }
  void advance() { lexer_.advance(); }
  bool take(char character);
  void expect(char character);
  bool take_word(std::string_view word);
  void expect_word(std::string_view word);
  void expect_arrow();
  std::string_view expect_identifier(std::string_view what);
  std::string expect_string();
  std::string expect_symbol();
  std::int64_t expect_integer();
  std::uint64_t expect_magnitude(bool negative);
  // Consumes everything from an opening bracket, the current token, to its closing one; returns the text between them.
  std::string take_bracketed_text(char closing);
  [[noreturn]] void fail(std::size_t offset, std::string_view message) const { lexer_.fail(offset, message); }
  [[noreturn]] void fail_expected(std::string_view what) const { lexer_.fail_expected(what); }

  // Types (type_rules.cpp).
  Type parse_type();
  Type parse_tensor_type();
  std::vector<std::int64_t> parse_dimensions(std::size_t& at, bool& ranked);
  Type parse_function_type();
  std::vector<Type> parse_result_types();
  std::vector<Type> parse_types_until(char closing);
  Type checked(Type type, std::size_t offset) const;
  static bool is_scalar_name(std::string_view name);

  // Attributes (attribute_rules.cpp).
  Attribute parse_attribute(bool may_have_type = true);
  Attribute parse_number(bool may_have_type);
  Attribute parse_dense();
  Attribute parse_dense_array();
  Attribute parse_array();
  Attribute parse_symbol_reference();
  void parse_dictionary(Entries& entries);
  Attribute parse_dialect_attribute();
  Attribute parse_dialect_body(std::string dialect, std::string kind, std::size_t begin, std::size_t close);
  Attribute parse_convolution_numbers();
  Attribute parse_field_value();
  Entries parse_fields();
  Attribute checked(Attribute attribute, std::size_t offset) const;
  Dictionary make_dictionary(Entries entries, std::size_t offset) const;

  // Locations and aliases, #name = attribute and !name = type, which may follow their uses (location_rules.cpp).
  Attribute parse_location();
  Attribute parse_location_body();
  Attribute parse_optional_location();
  void find_aliases(std::size_t begin, std::size_t end);
  Alias* find_alias(std::string_view name);
  const Alias& resolve_alias(Alias& alias);
  void parse_alias_definition();

  // Values.
  void enter_scope() { scopes_.emplace_back(); }
  void leave_scope();
  ValueId define(const Definition& definition, const std::vector<Type>& types);
  Use parse_use();
  Definition parse_value_name();
  std::vector<Use> parse_uses_until(char closing);

  // Functions (function_rules.cpp).
  bool at_function() const;
  Function parse_function();
  void parse_pretty_function(Function& function);
  void parse_generic_function(Function& function);
  void parse_function_arguments(Function& function, std::vector<Argument>& arguments);
  void parse_function_results(Function& function);
  void apply_function_properties(Function& function, Entries entries, std::size_t offset);
  Argument parse_argument();
  void define_arguments(Block& block, const std::vector<Argument>& arguments);

  // Modules, operations, regions (parser.cpp).
  void parse_module_body(Module& module, char closing);
  void parse_module_item(Module& module);
  bool at_module() const;
  Module parse_module();
  void parse_operation(std::vector<Operation>& into);
  void parse_generic_operation(Draft& draft);
  Region parse_region();
  Region parse_region(const std::vector<Argument>& arguments);
  void parse_block_operations(Block& block);
  void set_types(Draft& draft, const std::vector<Type>& operands, std::vector<Type> results);
  void finish(Draft& draft, const std::vector<Definition>& definitions, std::vector<Operation>& into);

  // Pretty forms (pretty_forms.cpp, pretty_regions.cpp).
  void parse_pretty_operation(Draft& draft);
  void parse_table_form(Draft& draft);
  void parse_pretty_item(Draft& draft);
  void parse_keyword_argument(Draft& draft, std::string_view keyword);
  void parse_optional_attributes(Draft& draft);
  void parse_signature(Draft& draft);
  void parse_functional_signature(Draft& draft);
  void apply_short_signature(Draft& draft, const std::vector<Type>& types, std::size_t offset);
  Attribute parse_integer_list();
  Attribute parse_enumeration_list(std::string_view kind);
  void parse_constant(Draft& draft);
  void parse_compare(Draft& draft);
  void parse_slice(Draft& draft);
  void parse_dot_general(Draft& draft);
  void parse_call(Draft& draft);
  void parse_custom_call(Draft& draft);
  void parse_composite(Draft& draft);
  void parse_get_tuple_element(Draft& draft);
  void parse_expect_constant(Draft& draft);
  void parse_convolution(Draft& draft);
  void parse_convolution_window(Draft& draft);
  void parse_mesh(Draft& draft);
  void parse_sharding_constraint(Draft& draft);
  void parse_manual_computation(Draft& draft);
  void parse_reduce(Draft& draft);
  Region make_reducer(std::string_view name, const std::vector<Type>& operands, std::size_t offset);
  Region parse_reducer();
  void parse_while(Draft& draft);

  Lexer lexer_;
  int nesting_ = 0;
  std::unordered_map<std::string_view, Alias> aliases_;
  std::unordered_map<std::string_view, Type> tensor_types_;  // by the text between the brackets
  // Visible values: the id of each name's first result, and the number of results.
  std::unordered_map<std::string_view, std::pair<ValueId, std::int64_t>> values_;
  std::vector<std::vector<std::string_view>> scopes_;  // the names that each open region defined
  std::vector<Type> value_types_;                      // by id
};

Attribute make_integer(std::int64_t value, std::string type = "i64");
Attribute make_enumeration(std::string_view kind, std::string_view value);
Attribute make_integers(std::vector<std::int64_t> values);

}  // namespace capibara::stablehlo
