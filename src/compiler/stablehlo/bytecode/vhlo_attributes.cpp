// Translates the attributes of an operation according to its row.
#include "compiler/stablehlo/bytecode/vhlo_attributes.h"

#include <algorithm>
#include <map>

#include <capibara/error.h>

#include "compiler/stablehlo/bytecode/enumerations.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/syntax/dense.h"
#include "compiler/stablehlo/syntax/parser_rules.h"

namespace capibara::stablehlo {

namespace {

constexpr std::int64_t list_limit = 1024;  // dimensions; no list with one entry per dimension is longer

Attribute tensor_of(std::vector<std::int64_t> dims, const std::vector<std::int64_t>& values, std::string element,
                    std::size_t width) {
  std::vector<std::uint8_t> bytes;
  for (const std::int64_t value : values) {
    for (std::size_t i = 0; i < width; ++i)
      bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
  return Attribute::of(make_dense(Type::tensor(std::move(dims), std::move(element)), std::move(bytes), width));
}

Attribute flag_tensor(const std::vector<std::int64_t>& values) {
  return tensor_of({static_cast<std::int64_t>(values.size())}, values, "i1", 1);
}

Attribute standard_accuracy() {
  DialectAttribute accuracy;
  accuracy.dialect = "stablehlo";
  accuracy.kind = "result_accuracy";
  accuracy.fields = Dictionary({{"atol", Attribute::of(Float{0, Type::scalar("f64")})},
                                {"rtol", Attribute::of(Float{0, Type::scalar("f64")})},
                                {"ulps", make_integer(0)},
                                {"mode", make_enumeration("result_accuracy_mode", "DEFAULT")}});
  return Attribute::of(std::move(accuracy));
}

// The rank of an operation's window.
std::size_t window_rank(const Operation& operation) {
  if (const auto sizes = integers_of(operation.attributes.find("window_dimensions"))) return sizes->size();
  const std::size_t rank = operation.operands.empty() ? 0 : operation.operands[0].type.dims().size();
  return operation.name == "stablehlo.convolution" ? std::max<std::size_t>(rank, 2) - 2 : rank;
}

// Returns an absent attribute for VhloAbsence::error.
Attribute default_value(const VhloAttribute& row, const Operation& operation) {
  switch (row.absence) {
    case VhloAbsence::error:
      return {};
    case VhloAbsence::no:
      return Attribute::of(false);
    case VhloAbsence::zero:
      return row.name == "version" ? make_integer(0, "i32") : make_integer(0);
    case VhloAbsence::minus_one:
      return make_integer(-1);
    case VhloAbsence::one:
      return make_enumeration("custom_call_api_version", "API_VERSION_ORIGINAL");
    case VhloAbsence::empty_text:
      return Attribute::of(String{});
    case VhloAbsence::empty_list:
      return Attribute::of(Array{});
    case VhloAbsence::empty_dictionary:
      return Attribute::of(Dictionary());
    case VhloAbsence::empty_numbers:
      return integer_tensor({});
    case VhloAbsence::nothing:
      return Attribute::of(Type());
    case VhloAbsence::no_type:
      return make_enumeration("comparison_type", "NOTYPE");
    case VhloAbsence::standard_precision: {
      const Attribute standard = make_enumeration("precision", "DEFAULT");
      return Attribute::of(Array{{standard, standard}});
    }
    case VhloAbsence::standard_accuracy:
      return standard_accuracy();
    case VhloAbsence::ones:
      return integer_tensor(std::vector<std::int64_t>(window_rank(operation), 1));
    case VhloAbsence::falses:
      return flag_tensor(std::vector<std::int64_t>(window_rank(operation), 0));
    case VhloAbsence::zero_padding: {
      const std::size_t rank = window_rank(operation);
      return tensor_of({static_cast<std::int64_t>(rank), 2}, std::vector<std::int64_t>(2 * rank, 0), "i64", 8);
    }
  }
  return {};
}

// True if VHLO uses this value only to encode an absent attribute.
bool stands_for_nothing(const VhloAttribute& row, const Attribute& value, const Operation& place) {
  switch (row.absence) {
    case VhloAbsence::error:
    case VhloAbsence::standard_precision:
    case VhloAbsence::ones:
    case VhloAbsence::falses:
    case VhloAbsence::zero_padding:
      return false;
    default:
      return value == default_value(row, place);
  }
}

std::vector<std::int64_t> list_of(const VhloAttribute& row, const Attribute& value, const Operation& place) {
  const auto* dense = value.as<DenseElements>();
  if (dense && dense->type.dims().size() == 1 && dense->type.dims()[0] <= list_limit) {
    if (const auto values = integers_of(value)) return *values;
  }
  fail(place, concat("expected a tensor of numbers as attribute '", row.name, "'"));
}

// ---- reading -----------------------------------------------------------------------------------------------------

Attribute stablehlo_form(const VhloAttribute& row, const Attribute& value, const Operation& place) {
  const auto refuse = [&](const char* expected) {
    fail(place, concat("expected ", expected, " as attribute '", row.name, "', got ", print_attribute(value)));
  };
  switch (row.form) {
    case VhloForm::same:
      return value;
    case VhloForm::integers:
      return make_integers(list_of(row, value, place));
    case VhloForm::flags: {
      DenseArray array;
      array.element = "i1";
      array.integers = list_of(row, value, place);
      return Attribute::of(std::move(array));
    }
    case VhloForm::unit:
      if (!value.as<bool>()) refuse("true or false");
      return Attribute::of(Unit{});
    case VhloForm::symbol:
      if (!value.as<String>()) refuse("the name of a function");
      return Attribute::of(SymbolReference{value.as<String>()->value, {}});
    case VhloForm::symbols: {
      const auto* names = value.as<Array>();
      if (!names) refuse("names of functions");
      Array symbols;
      for (const Attribute& name : names->elements) {
        if (!name.as<String>()) refuse("names of functions");
        symbols.elements.push_back(Attribute::of(SymbolReference{name.as<String>()->value, {}}));
      }
      return Attribute::of(std::move(symbols));
    }
    case VhloForm::list: {
      Array numbers;
      for (const std::int64_t number : list_of(row, value, place)) numbers.elements.push_back(make_integer(number));
      return Attribute::of(std::move(numbers));
    }
    case VhloForm::word:
      if (!value.as<Type>()) refuse("a type");
      return Attribute::of(String{value.as<Type>()->text()});
    case VhloForm::interface: {
      const auto* word = value.as<DialectAttribute>();
      const VhloEnumeration* versions = find_vhlo_enumeration("custom_call_api_version");
      for (std::size_t i = 0; word && i < versions->words.size(); ++i) {
        if (versions->words[i] == word->value) return make_integer(static_cast<std::int64_t>(i), "i32");
      }
      refuse("an interface of custom calls");
    }
  }
  return value;
}

// ---- writing -----------------------------------------------------------------------------------------------------

Attribute vhlo_form(const VhloAttribute& row, const Attribute& value, const Operation& place) {
  const auto refuse = [&](const char* expected) {
    fail(place, concat("expected ", expected, " as attribute '", row.name, "', got ", print_attribute(value)));
  };
  switch (row.form) {
    case VhloForm::same:
      return value;
    case VhloForm::integers:
    case VhloForm::flags:
    case VhloForm::list: {
      const std::optional<std::vector<std::int64_t>> values = integers_of(value);
      if (!values) refuse("a list of integers");
      return row.form == VhloForm::flags ? flag_tensor(*values) : integer_tensor(*values);
    }
    case VhloForm::unit: {
      const bool* flag = value.as<bool>();
      if (!flag && !value.as<Unit>()) refuse("true, false or unit");
      return Attribute::of(!flag || *flag);
    }
    case VhloForm::symbol:
      if (!value.as<SymbolReference>()) refuse("the name of a function");
      return Attribute::of(String{value.as<SymbolReference>()->name});
    case VhloForm::symbols: {
      const auto* symbols = value.as<Array>();
      if (!symbols) refuse("names of functions");
      Array names;
      for (const Attribute& symbol : symbols->elements) {
        if (!symbol.as<SymbolReference>()) refuse("names of functions");
        names.elements.push_back(Attribute::of(String{symbol.as<SymbolReference>()->name}));
      }
      return Attribute::of(std::move(names));
    }
    case VhloForm::word: {
      if (value.as<Type>()) return value;
      if (!value.as<String>()) refuse("the name of a type");
      return Attribute::of(Type::scalar(value.as<String>()->value));
    }
    case VhloForm::interface: {
      const auto* number = value.as<Integer>();
      const VhloEnumeration* versions = find_vhlo_enumeration("custom_call_api_version");
      if (!number || number->value < 0 || static_cast<std::size_t>(number->value) >= versions->words.size() ||
          versions->words[static_cast<std::size_t>(number->value)].empty())
        refuse("an interface of custom calls");
      return make_enumeration(versions->kind, versions->words[static_cast<std::size_t>(number->value)]);
    }
  }
  return value;
}

}  // namespace

Attribute integer_tensor(const std::vector<std::int64_t>& values) {
  return tensor_of({static_cast<std::int64_t>(values.size())}, values, "i64", 8);
}

void add_stablehlo_attributes(const VhloOperation& row, const std::vector<Attribute>& values, const Operation& place,
                              std::vector<Dictionary::Entry>& entries) {
  struct Structure {
    std::string_view kind;
    std::vector<Dictionary::Entry> fields;
    bool says_something = false;
  };
  std::map<std::string_view, Structure> structures;
  for (std::size_t i = 0; i < row.attributes.size(); ++i) {
    const VhloAttribute& attribute = row.attributes[i];
    const bool nothing = stands_for_nothing(attribute, values[i], place);
    if (attribute.structure.empty()) {
      if (!nothing) entries.emplace_back(attribute.name, stablehlo_form(attribute, values[i], place));
      continue;
    }
    Structure& structure = structures[attribute.structure];
    structure.kind = attribute.kind;
    structure.says_something = structure.says_something || !nothing;
    if (!nothing || attribute.absence == VhloAbsence::zero)
      structure.fields.emplace_back(attribute.field, stablehlo_form(attribute, values[i], place));
  }
  for (auto& [name, structure] : structures) {
    if (!structure.says_something) continue;
    DialectAttribute attribute;
    attribute.dialect = "stablehlo";
    attribute.kind = structure.kind;
    attribute.fields = Dictionary(std::move(structure.fields));
    entries.emplace_back(name, Attribute::of(std::move(attribute)));
  }
}

VhloValues vhlo_values(const VhloOperation& row, const Operation& operation) {
  VhloValues out;
  for (const VhloAttribute& attribute : row.attributes) {
    Attribute value;
    if (attribute.structure.empty()) {
      value = operation.attributes.find(attribute.name);
    } else {
      const Attribute structure = operation.attributes.find(attribute.structure);
      if (const auto* fields = structure.as<DialectAttribute>()) value = fields->fields.find(attribute.field);
    }
    Attribute own = value ? vhlo_form(attribute, value, operation) : default_value(attribute, operation);
    if (!own) fail(operation, concat("expected an attribute '", attribute.name, "'"));
    out.values.push_back(std::move(own));
  }
  for (const Dictionary::Entry& entry : operation.attributes) {
    const auto is_own = [&](const VhloAttribute& attribute) {
      return entry.first == (attribute.structure.empty() ? attribute.name : attribute.structure);
    };
    if (std::none_of(row.attributes.begin(), row.attributes.end(), is_own)) out.others.push_back(entry);
  }
  return out;
}

}  // namespace capibara::stablehlo
