// Attributes in MLIR's syntax; print_tree.cpp prints them for comparison only.
#include "compiler/stablehlo/attribute_text.h"

#include <algorithm>
#include <cctype>

#include <capibara/error.h>

#include "core/array/element.h"

namespace capibara::stablehlo {

namespace {

// A name that needs no quotes.
bool is_bare(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '$' || c == '.'; });
}

std::string name_text(const std::string& name) { return is_bare(name) ? name : quoted_text(name); }

class AttributeWriter {
 public:
  explicit AttributeWriter(const Operation& operation) : operation_(operation) {}

  std::string text(const Attribute& attribute) {
    if (!attribute) refuse();
    return std::visit(*this, attribute.node()->value);
  }
  std::string entry(const std::string& name, const Attribute& attribute) {
    name_ = name;
    return attribute.as<Unit>() ? name_text(name) : name_text(name) + " = " + text(attribute);
  }

  std::string operator()(const Unit&) { return "unit"; }
  std::string operator()(bool value) { return value ? "true" : "false"; }
  std::string operator()(const Integer& integer) { return concat(integer.value, " : ", integer.type.text()); }
  std::string operator()(const Float& number) {
    return number_text(number.value, number.type.dtype()) + " : " + number.type.text();
  }
  std::string operator()(const String& string) { return quoted_text(string.value); }
  std::string operator()(const Type& type) { return type.text(); }
  std::string operator()(const Array& array) {
    return "[" + joined(array.elements, [this](const Attribute& element) { return text(element); }) + "]";
  }
  std::string operator()(const DenseArray& array) {
    const std::optional<DType> dtype = Type::tensor({}, array.element).dtype();
    const bool bits = array.element == "i1";
    std::string values = joined(array.integers, [&](int64_t value) {
      return bits ? std::string(value ? "true" : "false") : std::to_string(value);
    });
    values += joined(array.floats, [&](double value) { return number_text(value, dtype); });
    return concat("array<", array.element, values.empty() ? "" : ": ", values, ">");
  }
  std::string operator()(const DenseElements& dense) {
    if (!dense.type.has_static_shape() || dense.type.element_count() > dense_integers_limit) refuse();
    if (dense.type.element() != "index") return dense_text(dense_array(operation_, dense));
    const std::optional<Ints> values = integers_of(Attribute::of(dense));
    if (!values || dense.type.dims().size() != 1) refuse();
    return concat("dense<", values->empty() ? "" : list_text(*values), "> : ", dense.type.text());
  }
  std::string operator()(const SymbolReference& symbol) {
    std::string out = "@" + name_text(symbol.name);
    for (const std::string& name : symbol.nested) out += "::@" + name_text(name);
    return out;
  }
  std::string operator()(const Dictionary& dictionary) {
    return "{" + joined(dictionary, [this](const auto& part) { return entry(part.first, part.second); }) + "}";
  }
  std::string operator()(const DialectAttribute& attribute) {
    const std::string head = concat("#", attribute.dialect, ".", attribute.kind);
    if (!attribute.text.empty()) return concat(head, "<", attribute.text, ">");
    if (!attribute.value.empty()) return concat("#", attribute.dialect, "<", attribute.kind, " ", attribute.value, ">");
    if (attribute.fields.empty()) return head;
    if (attribute.kind != "output_operand_alias") refuse();
    static constexpr const char* fields[] = {"output_tuple_indices", "operand_index", "operand_tuple_indices"};
    return concat(
        head, "<",
        joined(fields,
               [&](const char* field) { return concat(field, " = ", field_text(attribute.fields.find(field))); }),
        ">");
  }
  std::string operator()(const Location&) { refuse(); }
  std::string operator()(const OpaqueAttribute& attribute) { return attribute.text; }

 private:
  [[noreturn]] void refuse() const {
    throw UnsupportedError(concat(place_of(operation_), ": attribute '", name_, "' has no text to pass it on by"));
  }

  // Inside a structure, numbers have no type.
  std::string field_text(const Attribute& field) {
    if (const auto* integer = field.as<Integer>()) return std::to_string(integer->value);
    const std::optional<Ints> list = integers_of(field);
    if (!list) refuse();
    return list_text(*list);
  }

  // In MLIR's syntax: with a decimal point, or as bits if there are no digits (infinities, NaN).
  std::string number_text(double value, std::optional<DType> dtype) const {
    if (!dtype || !is_floating(*dtype)) refuse();
    ArrayType type;
    type.dtype = *dtype;
    Buffer buffer = Buffer::allocate(static_cast<std::size_t>(storage_size(*dtype)));
    convert_elements(DType::float64, reinterpret_cast<const std::byte*>(&value), *dtype, buffer.mutable_data(), 1);
    const std::string dense = dense_text(NdArray::from_buffer(type, std::move(buffer)));
    const std::size_t begin = dense.find('<') + 1;
    return dense.substr(begin, dense.find('>') - begin);
  }

  template <class Range, class F>
  static std::string joined(const Range& range, F&& text_of) {
    std::string out;
    for (const auto& part : range) out += (out.empty() ? "" : ", ") + text_of(part);
    return out;
  }

  const Operation& operation_;
  std::string name_;  // of the current attribute
};

}  // namespace

std::string attributes_text(const Operation& operation, std::span<const std::string_view> left_out) {
  AttributeWriter writer(operation);
  std::string out;
  for (const auto& [name, attribute] : operation.attributes) {
    if (std::find(left_out.begin(), left_out.end(), name) != left_out.end()) continue;
    out += (out.empty() ? "" : ", ") + writer.entry(name, attribute);
  }
  return out;
}

}  // namespace capibara::stablehlo
