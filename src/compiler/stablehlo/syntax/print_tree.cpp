// Prints a syntax tree in one canonical text, so that tests can compare trees and people can read them.
#include <charconv>

#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::stablehlo {

std::string quoted_text(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || byte < 0x20 || byte >= 0x7F) {
      out += '\\';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

namespace {

std::string number(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}

std::string print_dictionary(const Dictionary& dictionary) {
  std::string out = "{";
  for (const auto& [name, value] : dictionary) {
    if (out.size() > 1) out += ", ";
    out += name;
    if (!value.as<Unit>()) out += " = " + print_attribute(value);
  }
  return out + "}";
}

std::string print_bytes(const DenseElements& dense) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out = dense.splat ? "splat \"0x" : "\"0x";
  for (std::uint8_t byte : *dense.bytes) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return "dense<" + out + "\"> : " + dense.type.text();
}

struct AttributePrinter {
  std::string operator()(const Unit&) const { return "unit"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const Integer& integer) const {
    return std::to_string(integer.value) + " : " + integer.type.text();
  }
  std::string operator()(const Float& value) const { return number(value.value) + " : " + value.type.text(); }
  std::string operator()(const String& string) const { return quoted_text(string.value); }
  std::string operator()(const Type& type) const { return type.text(); }
  std::string operator()(const Array& array) const {
    std::string out = "[";
    for (const Attribute& element : array.elements) {
      if (out.size() > 1) out += ", ";
      out += print_attribute(element);
    }
    return out + "]";
  }
  std::string operator()(const DenseArray& array) const {
    std::string out;
    for (std::int64_t value : array.integers) out += (out.empty() ? ": " : ", ") + std::to_string(value);
    for (double value : array.floats) out += (out.empty() ? ": " : ", ") + number(value);
    return "array<" + array.element + out + ">";
  }
  std::string operator()(const DenseElements& dense) const { return print_bytes(dense); }
  std::string operator()(const SymbolReference& symbol) const {
    std::string out = "@" + quoted_text(symbol.name);
    for (const std::string& name : symbol.nested) out += "::@" + quoted_text(name);
    return out;
  }
  std::string operator()(const Dictionary& dictionary) const { return print_dictionary(dictionary); }
  std::string operator()(const DialectAttribute& attribute) const {
    std::string out = "#" + attribute.dialect + "." + attribute.kind + "<";
    if (!attribute.text.empty()) return out + attribute.text + ">";
    return out + (attribute.value.empty() ? print_dictionary(attribute.fields) : attribute.value) + ">";
  }
  std::string operator()(const Location& location) const {
    std::string out = "loc(" + quoted_text(location.name);
    if (location.kind == Location::Kind::file) {
      out += ":" + std::to_string(location.line) + ":" + std::to_string(location.column);
    }
    return out + ")";
  }
  std::string operator()(const OpaqueAttribute& attribute) const { return attribute.text; }
};

class TreePrinter {
 public:
  std::string print(const Module& module) {
    out_ += "module @" + quoted_text(module.name) + " " + print_dictionary(module.attributes) + "\n";
    for (const Operation& operation : module.operations) print(operation, 1);
    for (const Function& function : module.functions) print(function);
    return std::move(out_);
  }

 private:
  void indent(int level) { out_.append(static_cast<std::size_t>(level) * 2, ' '); }

  void print(const Function& function) {
    out_ += "  func " + function.visibility + " @" + quoted_text(function.name) + "(";
    for (const FunctionArgument& argument : function.arguments) {
      out_ += " %" + std::to_string(argument.id) + ": " + argument.type.text();
      if (!argument.attributes.empty()) out_ += " " + print_dictionary(argument.attributes);
    }
    out_ += ") -> (";
    for (const FunctionResult& result : function.results) {
      out_ += " " + result.type.text();
      if (!result.attributes.empty()) out_ += " " + print_dictionary(result.attributes);
    }
    out_ += ") " + print_dictionary(function.attributes) + (function.is_declaration ? "\n" : " {\n");
    for (const Operation& operation : function.body.operations) print(operation, 2);
    if (!function.is_declaration) out_ += "  }\n";
  }

  void print(const Operation& operation, int level) {
    indent(level);
    for (const Value& result : operation.results) out_ += "%" + std::to_string(result.id) + " ";
    if (!operation.results.empty()) out_ += "= ";
    out_ += operation.name + "(";
    for (const Value& operand : operation.operands) out_ += " %" + std::to_string(operand.id);
    out_ += ") " + print_dictionary(operation.attributes) + " : (";
    for (const Value& operand : operation.operands) out_ += " " + operand.type.text();
    out_ += ") -> (";
    for (const Value& result : operation.results) out_ += " " + result.type.text();
    out_ += ")\n";
    for (const Region& region : operation.regions) {
      indent(level);
      out_ += "region\n";
      for (const Block& block : region.blocks) print(block, level + 1);
    }
  }

  void print(const Block& block, int level) {
    indent(level);
    out_ += "block(";
    for (const BlockArgument& argument : block.arguments) {
      out_ += " %" + std::to_string(argument.id) + ": " + argument.type.text();
    }
    out_ += ")\n";
    for (const Operation& operation : block.operations) print(operation, level + 1);
  }

  std::string out_;
};

}  // namespace

std::string print_attribute(const Attribute& attribute) {
  return attribute ? std::visit(AttributePrinter(), attribute.node()->value) : "";
}

std::string print_tree(const Module& module) { return TreePrinter().print(module); }

}  // namespace capibara::stablehlo
