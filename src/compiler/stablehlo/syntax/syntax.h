// The syntax tree of StableHLO text: types, attributes, operations, regions, functions, modules.
//
// The tree is the same for text in generic form and in an operation's own pretty form: pretty arguments become the
// attributes that the generic form spells out. It carries no semantics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <capibara/dtype.h>

namespace capibara::stablehlo {

// Both count from 1; line 0 means that the node has no position in the text.
struct SourcePosition {
  std::int32_t line = 0;
  std::int32_t column = 0;
};

class Attribute;
struct TypeNode;
struct AttributeNode;

// The size of a dimension written `?`.
inline constexpr std::int64_t dynamic_size = -1;

// The type of a value. Cheap to copy, immutable; equal if the text is equal.
class Type {
 public:
  enum class Kind {
    none,      // `none`, and the default
    tensor,    // tensor<2x?xf32, encoding>, tensor<*xf32>
    token,     // !stablehlo.token
    tuple,     // tuple<tensor<f32>, !stablehlo.token>
    function,  // (a, b) -> c
    scalar,    // f32, ui8, index, complex<f64>
    opaque,    // any other: vector<..>, !dialect.name<..>, kept as text
  };

  Type();
  static Type tensor(std::vector<std::int64_t> dims, std::string element);
  static Type tensor(std::vector<std::int64_t> dims, std::string element, Attribute encoding);
  static Type unranked_tensor(std::string element);
  static Type token();
  static Type tuple(std::vector<Type> elements);
  static Type function(std::vector<Type> inputs, std::vector<Type> results);
  static Type scalar(std::string name);
  static Type opaque(std::string text);

  Kind kind() const;
  bool is_tensor() const { return kind() == Kind::tensor; }
  bool is_token() const { return kind() == Kind::token; }
  bool is_tuple() const { return kind() == Kind::tuple; }
  bool is_function() const { return kind() == Kind::function; }

  // Of a tensor. `dims` is empty when the rank is unknown; an unknown size is `dynamic_size`.
  bool is_ranked() const;
  const std::vector<std::int64_t>& dims() const;
  bool has_static_shape() const;
  // Of a tensor of static shape; the parser guarantees that the product fits.
  std::int64_t element_count() const;
  // The element type's name ("f32", "complex<f64>", "!quant.uniform<...>") of a tensor; the name of a
  // scalar; the whole text of an opaque type; else empty.
  const std::string& element() const;
  // The dtype that `element` names, if it is one.
  std::optional<DType> dtype() const;
  // A tensor's encoding; absent for nearly all.
  const Attribute& encoding() const;

  const std::vector<Type>& elements() const;  // of a tuple
  const std::vector<Type>& inputs() const;    // of a function
  const std::vector<Type>& results() const;   // of a function

  std::string text() const;
  bool operator==(const Type& other) const;

  // The node's nesting depth, and its number of nodes when expanded; the parser limits both.
  int depth() const;
  std::size_t weight() const;

 private:
  explicit Type(std::shared_ptr<const TypeNode> node);
  std::shared_ptr<const TypeNode> node_;
};

// An attribute's value, or nothing. Cheap to copy, immutable. `as<T>` reads one of the kinds below:
//   if (const Integer* k = operation.attributes.find("k").as<Integer>()) ...
class Attribute {
 public:
  Attribute() = default;
  template <class Value>
  static Attribute of(Value value);

  explicit operator bool() const { return node_ != nullptr; }
  template <class Value>
  const Value* as() const;
  // The value of any kind, for visitors; null if absent.
  const AttributeNode* node() const { return node_.get(); }
  bool operator==(const Attribute& other) const;

  int depth() const;
  std::size_t weight() const;

 private:
  std::shared_ptr<const AttributeNode> node_;
};

struct Unit {
  bool operator==(const Unit&) const = default;
};

// `true` and `false` are bool, not Integer.
struct Integer {
  std::int64_t value = 0;  // ui64 values above the maximum of int64 keep their bits
  Type type;               // i64 when the text names none
  bool operator==(const Integer&) const = default;
};

struct Float {
  double value = 0;
  Type type;  // f64 when the text names none
  bool operator==(const Float& other) const;
};

struct String {
  std::string value;
  bool operator==(const String&) const = default;
};

struct Array {
  std::vector<Attribute> elements;
  bool operator==(const Array& other) const;
};

// array<i64: 1, 2>: `integers` for integers and i1, `floats` for floating element types.
struct DenseArray {
  std::string element;
  std::vector<std::int64_t> integers;
  std::vector<double> floats;
  bool operator==(const DenseArray& other) const;
};

// dense<...> : tensor<...>: the elements in row-major order, little-endian, as an array's buffer stores them:
// bool and types below a byte take one byte each (signed ones with their sign extended), complex is the pair
// (re, im). A splat keeps the bytes of one element only; a tensor without elements keeps none.
struct DenseElements {
  Type type;
  bool splat = false;
  std::shared_ptr<const std::vector<std::uint8_t>> bytes;
  bool operator==(const DenseElements& other) const;
};

// @name, or @outer::@name.
struct SymbolReference {
  std::string name;
  std::vector<std::string> nested;
  bool operator==(const SymbolReference&) const = default;
};

// Names with attributes, sorted by name, each name once.
class Dictionary {
 public:
  using Entry = std::pair<std::string, Attribute>;

  Dictionary() = default;
  // Sorts; among entries with the same name the first is kept. `repeated_name` returns such a name, if there is one.
  explicit Dictionary(std::vector<Entry> entries);
  static std::optional<std::string> repeated_name(const std::vector<Entry>& entries);

  // The attribute called `name`, or an absent one.
  const Attribute& find(std::string_view name) const;
  bool contains(std::string_view name) const { return static_cast<bool>(find(name)); }
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  bool operator==(const Dictionary& other) const;

 private:
  std::vector<Entry> entries_;
};

// An attribute of a dialect: #stablehlo<comparison_direction GT>, #stablehlo.dot<lhs_batching_dimensions = [0]>.
// An enumeration has `value`; a structure has `fields` (numbers are Integer, lists Array, other words String or
// Type). #stablehlo.conv<..> has the fields of its raw form: input_batch_dimension, input_feature_dimension,
// input_spatial_dimensions, kernel_*, output_*. Of an unknown attribute only `text` is set.
struct DialectAttribute {
  std::string dialect;  // "stablehlo"
  std::string kind;     // "comparison_direction", "dot"
  std::string value;    // "GT"
  Dictionary fields;
  std::string text;  // the body of an unknown attribute, without its brackets
  bool operator==(const DialectAttribute& other) const = default;
};

// loc(...). The children are locations too: a name's child, callee and caller of a call site, the parts of a fused
// location.
struct Location {
  enum class Kind { unknown, name, file, call_site, fused };
  Kind kind = Kind::unknown;
  std::string name;  // of a name, or the file's path
  std::int64_t line = 0;
  std::int64_t column = 0;
  std::vector<Attribute> children;
  bool operator==(const Location& other) const = default;
};

// Any other text in place of an attribute, such as affine_map<(d0) -> (d0)>.
struct OpaqueAttribute {
  std::string text;
  bool operator==(const OpaqueAttribute&) const = default;
};

using AttributeValue = std::variant<Unit, bool, Integer, Float, String, Type, Array, DenseArray, DenseElements,
                                    SymbolReference, Dictionary, DialectAttribute, Location, OpaqueAttribute>;

struct AttributeNode {
  explicit AttributeNode(AttributeValue value);
  AttributeValue value;
  int depth = 1;
  std::size_t weight = 1;
};

template <class Value>
Attribute Attribute::of(Value value) {
  Attribute attribute;
  attribute.node_ = std::make_shared<const AttributeNode>(AttributeValue(std::move(value)));
  return attribute;
}

template <class Value>
const Value* Attribute::as() const {
  return node_ ? std::get_if<Value>(&node_->value) : nullptr;
}

// The integers of an attribute, in whichever form: array<i64: ..>, dense<..> : tensor<NxiW> (a splat expanded, up to
// `dense_integers_limit`), or [1, 2]. nullopt for other attributes.
inline constexpr std::int64_t dense_integers_limit = 1 << 20;
std::optional<std::vector<std::int64_t>> integers_of(const Attribute& attribute);
// The outermost name in a location: where jax puts the name stack. Empty if there is none.
std::string name_of_location(const Attribute& location);

// Values are numbered from 0 within a function, in the order of their definitions; an operation's results come after
// the values of its regions.
using ValueId = std::int32_t;

struct Value {
  ValueId id = -1;
  Type type;
};

struct Operation;

struct BlockArgument {
  ValueId id = -1;
  Type type;
  Attribute location;
};

struct Block {
  std::vector<BlockArgument> arguments;
  std::vector<Operation> operations;
};

struct Region {
  std::vector<Block> blocks;  // empty for `{}`
};

struct Operation {
  std::string name;  // with its dialect: "stablehlo.add", "func.return"
  std::vector<Value> operands;
  std::vector<Value> results;
  Dictionary attributes;  // properties and other attributes together
  std::vector<Region> regions;
  Attribute location;
  SourcePosition position;
};

struct FunctionArgument {
  ValueId id = -1;
  Type type;
  Dictionary attributes;
  Attribute location;
};

struct FunctionResult {
  Type type;
  Dictionary attributes;
};

struct Function {
  std::string name;
  std::string visibility;  // "public", "private", "nested"; empty when the text says none
  std::vector<FunctionArgument> arguments;
  std::vector<FunctionResult> results;
  Dictionary attributes;
  bool is_declaration = false;  // without a body
  Block body;                   // its `arguments` stay empty: they belong to the function
  ValueId value_count = 0;      // every id of the function is below this
  Attribute location;
  SourcePosition position;
};

struct Module {
  std::string name;  // empty if the text gives none
  Dictionary attributes;
  std::vector<Function> functions;
  std::vector<Operation> operations;  // operations outside functions, such as sdy.mesh
  Attribute location;
  SourcePosition position;

  const Function* find_function(std::string_view function_name) const;
};

// One canonical text per tree: attributes sorted, values numbered, locations omitted.
std::string print_tree(const Module& module);
std::string print_attribute(const Attribute& attribute);
std::string quoted_text(std::string_view text);  // "a\09b"

}  // namespace capibara::stablehlo
