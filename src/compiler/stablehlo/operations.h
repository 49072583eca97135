// The table between primitives and StableHLO operations: one row per pair, used by both the writer and the reader.
#pragma once

#include <capibara/primitive.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::stablehlo {

using NdArray = capibara::Array;  // `Array` is an attribute in this namespace

// An attribute of an operation, as text.
struct AttributeText {
  std::string name, value;
};

struct WriteArgs {
  const Attrs& attrs;
  std::span<const ArrayType> inputs;
  std::span<const ArrayType> outputs;
};

struct ReadArgs {
  const Operation& operation;
  std::span<const ArrayType> inputs;
  std::span<const ArrayType> outputs;  // as declared in the text
};

// The form in which an operation is written: name %a, %b : type if all types are equal; name %a, %b : (types) -> type;
// or generic, "name"(%a, %b) <{attributes}> ({regions}) : (types) -> type.
enum class Form { elementwise, functional, generic };

struct OperationRow {
  std::string_view operation;  // "stablehlo.add"
  std::string_view primitive;  // "add"
  Form form = Form::generic;
  // Operand i of the operation is input order[i] of the equation; empty: in the same order.
  std::vector<std::size_t> order = {};
  // Attributes of the equation that hold programs, in the order of the operation's regions.
  std::vector<std::string_view> regions = {};
  std::vector<AttributeText> (*write)(const WriteArgs&) = nullptr;
  Attrs (*read)(const ReadArgs&) = nullptr;  // without the regions
  // Where several rows share a primitive or an operation: true if this row applies.
  bool (*is_equation)(const Attrs&) = nullptr;
  bool (*is_operation)(const Operation&) = nullptr;
  bool read_only = false;  // another row writes the primitive
};

// All rows; those with the same primitive or operation are adjacent.
const std::vector<OperationRow>& operation_rows();
const OperationRow* find_row(const Primitive& primitive, const Attrs& attrs);
const OperationRow* find_row(const Operation& operation);

// ---- attributes of operations ------------------------------------------------------------------------------------

// Each raises ParseError, naming the operation, the attribute and the expected value.
int64_t integer_attribute(const Operation& operation, std::string_view name);
int64_t integer_attribute(const Operation& operation, std::string_view name, int64_t otherwise);
bool flag_attribute(const Operation& operation, std::string_view name, bool otherwise = false);
Ints integers_attribute(const Operation& operation, std::string_view name);
Ints integers_attribute(const Operation& operation, std::string_view name, Ints otherwise);
// The member of an enumeration; `otherwise` if the attribute is absent.
std::string word_attribute(const Operation& operation, std::string_view name, const std::string& otherwise = "");
std::string string_attribute(const Operation& operation, std::string_view name);
// A structure's list of integers, empty if absent.
Ints field_integers(const Attribute& structure, std::string_view name);
int64_t field_integer(const Attribute& structure, std::string_view name, int64_t otherwise);
// Rows of an n x 2 list of integers.
std::vector<std::pair<int64_t, int64_t>> pairs_attribute(const Operation& operation, std::string_view name,
                                                         std::size_t count);

[[noreturn]] void fail(const Operation& operation, const std::string& message);
// "line:column: stablehlo.op".
std::string place_of(const Operation& operation);

// A feature that a text uses and this library lacks: dynamic shapes, quantized types. `check` skips such files.
class UnsupportedError : public NotImplementedError {
 public:
  using NotImplementedError::NotImplementedError;
};

// ---- pieces of text ----------------------------------------------------------------------------------------------

std::string type_text(const ArrayType& type);              // tensor<2x3xf32>
std::string types_text(std::span<const ArrayType> types);  // without parentheses
std::string signature_text(std::span<const ArrayType> inputs, std::span<const ArrayType> outputs);
std::string array_text(const Ints& values);                                     // array<i64: 1, 2>
std::string bool_array_text(const std::vector<bool>& values);                   // array<i1: true, false>
std::string list_text(const Ints& values);                                      // [1, 2]
std::string integer_text(int64_t value);                                        // 3 : i64
std::string pairs_text(const std::vector<std::pair<int64_t, int64_t>>& pairs);  // dense<[[0, 1]]> : tensor<1x2xi64>
NdArray widened(const NdArray& narrow);        // numbers of fewer than 8 bits as int8, uint8 or float32
std::string dense_text(const NdArray& array);  // dense<...> : tensor<...>

// The array of dense<...>; sub-byte and 64-bit types are kept.
NdArray dense_array(const Operation& operation, const DenseElements& dense);
// The type of a tensor of static shape; raises UnsupportedError for others.
ArrayType array_type(const Operation& operation, const Type& type);

// ---- expectations ------------------------------------------------------------------------------------------------

// The primitive behind check.expect_*: compares two arrays, returns nothing. Attributes: kind ("eq", "almost_eq",
// "close"), tolerance, min_ulp, max_ulp, place.
const Primitive& expect_primitive();
// The first records its operand under an id, the second compares its operand with that record.
const Primitive& probe_primitive();
const Primitive& expect_probe_primitive();

}  // namespace capibara::stablehlo
