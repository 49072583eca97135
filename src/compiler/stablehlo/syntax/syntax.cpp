// The nodes behind types and attributes, and their accessors.
#include "compiler/stablehlo/syntax/syntax.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace capibara::stablehlo {

struct TypeNode {
  Type::Kind kind = Type::Kind::none;
  bool ranked = true;
  std::vector<std::int64_t> dims;
  std::string element;
  Attribute encoding;
  std::vector<Type> types;    // a tuple's elements, a function's inputs
  std::vector<Type> results;  // of a function
  int depth = 1;
  std::size_t weight = 1;
};

namespace {

template <class Child>
void absorb(const Child& child, int& depth, std::size_t& weight) {
  depth = std::max(depth, child.depth() + 1);
  const std::size_t room = std::numeric_limits<std::size_t>::max() - weight;
  weight += std::min(room, child.weight());
}

std::shared_ptr<const TypeNode> finish(TypeNode node) {
  if (node.encoding) absorb(node.encoding, node.depth, node.weight);
  for (const Type& type : node.types) absorb(type, node.depth, node.weight);
  for (const Type& type : node.results) absorb(type, node.depth, node.weight);
  return std::make_shared<const TypeNode>(std::move(node));
}

const std::shared_ptr<const TypeNode>& none_node() {
  static const std::shared_ptr<const TypeNode> node = std::make_shared<const TypeNode>();
  return node;
}

void append_list(std::string& out, const std::vector<Type>& types) {
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (i > 0) out += ", ";
    out += types[i].text();
  }
}

}  // namespace

Type::Type() : node_(none_node()) {}
Type::Type(std::shared_ptr<const TypeNode> node) : node_(std::move(node)) {}

Type Type::tensor(std::vector<std::int64_t> dims, std::string element) {
  return tensor(std::move(dims), std::move(element), Attribute());
}

Type Type::tensor(std::vector<std::int64_t> dims, std::string element, Attribute encoding) {
  TypeNode node;
  node.kind = Kind::tensor;
  node.dims = std::move(dims);
  node.element = std::move(element);
  node.encoding = std::move(encoding);
  return Type(finish(std::move(node)));
}

Type Type::unranked_tensor(std::string element) {
  TypeNode node;
  node.kind = Kind::tensor;
  node.ranked = false;
  node.element = std::move(element);
  return Type(finish(std::move(node)));
}

Type Type::token() {
  TypeNode node;
  node.kind = Kind::token;
  return Type(finish(std::move(node)));
}

Type Type::tuple(std::vector<Type> elements) {
  TypeNode node;
  node.kind = Kind::tuple;
  node.types = std::move(elements);
  return Type(finish(std::move(node)));
}

Type Type::function(std::vector<Type> inputs, std::vector<Type> results) {
  TypeNode node;
  node.kind = Kind::function;
  node.types = std::move(inputs);
  node.results = std::move(results);
  return Type(finish(std::move(node)));
}

Type Type::scalar(std::string name) {
  TypeNode node;
  node.kind = Kind::scalar;
  node.element = std::move(name);
  return Type(finish(std::move(node)));
}

Type Type::opaque(std::string text) {
  TypeNode node;
  node.kind = Kind::opaque;
  node.element = std::move(text);
  return Type(finish(std::move(node)));
}

Type::Kind Type::kind() const { return node_->kind; }
bool Type::is_ranked() const { return node_->ranked; }
const std::vector<std::int64_t>& Type::dims() const { return node_->dims; }
const std::string& Type::element() const { return node_->element; }
const Attribute& Type::encoding() const { return node_->encoding; }
const std::vector<Type>& Type::elements() const { return node_->types; }
const std::vector<Type>& Type::inputs() const { return node_->types; }
const std::vector<Type>& Type::results() const { return node_->results; }
int Type::depth() const { return node_->depth; }
std::size_t Type::weight() const { return node_->weight; }

bool Type::has_static_shape() const {
  return is_tensor() && is_ranked() &&
         std::none_of(dims().begin(), dims().end(), [](std::int64_t size) { return size == dynamic_size; });
}

std::int64_t Type::element_count() const {
  std::int64_t count = 1;
  for (std::int64_t size : dims()) count *= size;
  return count;
}

std::optional<DType> Type::dtype() const {
  if (kind() == Kind::token) return DType::token;
  // The first row of each name is the one that StableHLO uses: bool for i1, uint32 for ui32.
  for (const DTypeRow& row : dtype_table)
    if (row.stablehlo == element()) return row.dtype;
  return std::nullopt;
}

std::string Type::text() const {
  switch (kind()) {
    case Kind::none:
      return "none";
    case Kind::token:
      return "!stablehlo.token";
    case Kind::scalar:
    case Kind::opaque:
      return element();
    case Kind::tuple: {
      std::string out = "tuple<";
      append_list(out, elements());
      return out + ">";
    }
    case Kind::function: {
      std::string out = "(";
      append_list(out, inputs());
      out += ") -> (";
      append_list(out, results());
      return out + ")";
    }
    case Kind::tensor:
      break;
  }
  std::string out = "tensor<";
  if (!is_ranked()) out += "*x";
  for (std::int64_t size : dims()) out += (size == dynamic_size ? "?" : std::to_string(size)) + "x";
  out += element();
  if (encoding()) out += ", " + print_attribute(encoding());
  return out + ">";
}

bool Type::operator==(const Type& other) const {
  if (node_ == other.node_) return true;
  const TypeNode& a = *node_;
  const TypeNode& b = *other.node_;
  return a.kind == b.kind && a.ranked == b.ranked && a.dims == b.dims && a.element == b.element &&
         a.encoding == b.encoding && a.types == b.types && a.results == b.results;
}

bool Attribute::operator==(const Attribute& other) const {
  if (node_ == other.node_) return true;
  return node_ && other.node_ && node_->value == other.node_->value;
}

int Attribute::depth() const { return node_ ? node_->depth : 0; }
std::size_t Attribute::weight() const { return node_ ? node_->weight : 0; }

AttributeNode::AttributeNode(AttributeValue given) : value(std::move(given)) {
  const auto absorb_entries = [this](const Dictionary& dictionary) {
    for (const Dictionary::Entry& entry : dictionary) absorb(entry.second, depth, weight);
  };
  if (const auto* array = std::get_if<Array>(&value)) {
    for (const Attribute& element : array->elements) absorb(element, depth, weight);
  } else if (const auto* dictionary = std::get_if<Dictionary>(&value)) {
    absorb_entries(*dictionary);
  } else if (const auto* dialect = std::get_if<DialectAttribute>(&value)) {
    absorb_entries(dialect->fields);
  } else if (const auto* type = std::get_if<Type>(&value)) {
    absorb(*type, depth, weight);
  } else if (const auto* location = std::get_if<Location>(&value)) {
    // Locations share most of their parts and are never printed in full, so only their depth counts.
    for (const Attribute& child : location->children) depth = std::max(depth, child.depth() + 1);
  }
}

bool Float::operator==(const Float& other) const {
  return std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(other.value) && type == other.type;
}

bool Array::operator==(const Array& other) const { return elements == other.elements; }

bool DenseArray::operator==(const DenseArray& other) const {
  return element == other.element && integers == other.integers && floats == other.floats;
}

bool DenseElements::operator==(const DenseElements& other) const {
  return type == other.type && splat == other.splat && *bytes == *other.bytes;
}

Dictionary::Dictionary(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.first < b.first; });
  entries_.erase(
      std::unique(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.first == b.first; }),
      entries_.end());
}

std::optional<std::string> Dictionary::repeated_name(const std::vector<Entry>& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.push_back(entry.first);
  std::sort(names.begin(), names.end());
  const auto repeated = std::adjacent_find(names.begin(), names.end());
  return repeated == names.end() ? std::nullopt : std::optional<std::string>(*repeated);
}

const Attribute& Dictionary::find(std::string_view name) const {
  static const Attribute absent;
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                                   [](const Entry& entry, std::string_view wanted) { return entry.first < wanted; });
  return at != entries_.end() && at->first == name ? at->second : absent;
}

bool Dictionary::operator==(const Dictionary& other) const { return entries_ == other.entries_; }

namespace {

std::int64_t read_integer(const std::uint8_t* bytes, int width, bool is_signed) {
  std::uint64_t value = 0;
  for (int i = 0; i < width; ++i) value |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  const int unused = 64 - 8 * width;
  if (is_signed) return static_cast<std::int64_t>(value << unused) >> unused;
  return static_cast<std::int64_t>(value);
}

}  // namespace

std::optional<std::vector<std::int64_t>> integers_of(const Attribute& attribute) {
  if (const auto* dense = attribute.as<DenseArray>()) {
    return dense->floats.empty() ? std::optional(dense->integers) : std::nullopt;
  }
  if (const auto* array = attribute.as<Array>()) {
    std::vector<std::int64_t> values;
    for (const Attribute& element : array->elements) {
      const auto* integer = element.as<Integer>();
      if (!integer) return std::nullopt;
      values.push_back(integer->value);
    }
    return values;
  }
  const auto* dense = attribute.as<DenseElements>();
  if (!dense) return std::nullopt;
  const bool is_index = dense->type.element() == "index";
  const std::optional<DType> dtype = dense->type.dtype();
  if (!is_index && (!dtype || !(is_integer(*dtype) || is_bool(*dtype)))) return std::nullopt;
  const int width = is_index ? 8 : static_cast<int>(storage_size(*dtype));
  const bool has_sign = is_index || is_signed(*dtype);
  const std::int64_t count = dense->type.element_count();
  if (dense->splat && count > dense_integers_limit) return std::nullopt;
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = dense->splat ? 0 : i * width;
    values.push_back(read_integer(dense->bytes->data() + at, width, has_sign));
  }
  return values;
}

std::string name_of_location(const Attribute& attribute) {
  const Location* location = attribute.as<Location>();
  while (location) {
    if (location->kind == Location::Kind::name) return location->name;
    location = location->children.empty() ? nullptr : location->children.front().as<Location>();
  }
  return "";
}

const Function* Module::find_function(std::string_view function_name) const {
  for (const Function& function : functions)
    if (function.name == function_name) return &function;
  return nullptr;
}

}  // namespace capibara::stablehlo
