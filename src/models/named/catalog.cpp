// The catalog: finds records by name, parses their signatures, and makes models from them.
#include "models/named/catalog.h"

#include <algorithm>
#include <cctype>

namespace capibara::models {

namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Splits at commas outside brackets and quotes.
std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  for (char c : text) {
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == ',' && depth == 0) {
      parts.push_back(part);
      part.clear();
    } else if (c != ' ' || depth > 0) {
      part += c;
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

// A Python literal: None, True, 1e-5, 'text', (0, 0).
Value literal(std::string text) {
  if (text == "None") return None{};
  if (text == "True") return true;
  if (text == "False") return false;
  if (text == "TBD") return {};
  for (char& c : text) {
    if (c == '\'') c = '"';
    if (c == '(') c = '[';
    if (c == ')') c = ']';
  }
  return parse_json(text);
}

const std::vector<Record>& records() {
  static const std::vector<Record> all = [] {
    std::vector<Record> list;
    for (auto family : {operator_records, reduction_records, activation_records, loss_records, window_records,
                        shaping_records, creation_records, analysis_records, layer_records, norm_records,
                        kernel_method_records, recurrent_records, distance_records, metric_records}) {
      for (Record& record : family()) list.push_back(std::move(record));
    }
    return list;
  }();
  return all;
}

std::string plain_constant(const std::string& name) { return name.substr(name.rfind('.') + 1); }

void fill(const Value& value, std::vector<double>& numbers, Shape& shape, std::size_t depth, bool& integer,
          bool& boolean) {
  if (value.is_list()) {
    if (depth == shape.size()) shape.push_back(static_cast<int64_t>(value.list().size()));
    if (depth >= shape.size() || shape[depth] != static_cast<int64_t>(value.list().size())) {
      throw ValueError("models: a nested list is an array only where all lists of a level have one length");
    }
    for (const Value& entry : value.list()) fill(entry, numbers, shape, depth + 1, integer, boolean);
    return;
  }
  if (depth != shape.size())
    throw ValueError("models: a nested list is an array only where all numbers have one depth");
  numbers.push_back(value.number());
  boolean = boolean && value.is<bool>();
  integer = integer && !value.is<double>();
}

}  // namespace

const Value& Arguments::operator[](const std::string& name) const {
  static const Value nothing;
  for (const auto& [key, value] : entries_) {
    if (key == name) return value;
  }
  return nothing;
}

std::optional<double> named_constant(const std::string& text, DType dtype) {
  std::string name = plain_constant(text);
  bool wide = dtype == DType::float64;
  bool narrow = dtype == DType::float16;
  // The smallest numbers with safe arithmetic in IEEE 754 binary64, binary32 and binary16.
  if (name == "EPSILON") return wide ? 0x1p-52 : (narrow ? 0x1p-10 : 0x1p-23);
  if (name == "LEFT_EPSILON") return wide ? 0x1p-53 : (narrow ? 0x1p-11 : 0x1p-24);
  if (name == "MIN_POSITIVE_NORMAL") return wide ? 0x1p-1022 : (narrow ? 0x1p-14 : 0x1p-126);
  if (name == "MIN_POSITIVE_SUBNORMAL") return wide ? 0x1p-1074 : (narrow ? 0x1p-24 : 0x1p-149);
  if (name == "STABLE_RECIPROCAL_THRESHOLD") {
    // 1 / threshold^2 is still finite.
    return wide ? 1.4916681462400413e-153 : (narrow ? 0.007812809993849843 : 1.0842021951e-19);
  }
  if (name == "ZEROS") return 0.0;
  if (name == "ONES") return 1.0;
  return std::nullopt;
}

Array to_array(const Value& value, DType dtype) {
  if (value.is_array()) return value.array();
  if (value.is_tensor()) return to_array(value.tensor().value, dtype);
  if (value.is_text()) {
    std::optional<double> number = named_constant(value.text(), dtype);
    if (!number) throw ValueError(concat("models: ", value.to_string(), " is not a number"));
    return to_array(*number, dtype);
  }
  std::vector<double> numbers;
  Shape shape;
  bool integer = true, boolean = true;
  fill(value, numbers, shape, 0, integer, boolean);
  if (numbers.empty()) integer = boolean = false;
  if (boolean) {
    return array<bool>(std::vector<bool>(numbers.begin(), numbers.end()), shape);
  }
  if (integer) {
    std::vector<int64_t> whole(numbers.begin(), numbers.end());
    return Array::from_host(DType::int64, shape, whole.data());
  }
  Array wide = Array::from_host(DType::float64, shape, numbers.data());
  return wide.dtype() == dtype ? wide : wide.astype(dtype);
}

const Value& Operands::operator[](const std::string& key) const {
  static const Value nothing;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (ports_[i].key == key) return values_[i];
  }
  return nothing;
}

Array Operands::array(const std::string& key) const {
  const Value& value = (*this)[key];
  if (!value.given()) throw KeyError(concat("models: '", key, "' has no value"));
  return to_array(value, dtype_);
}
Array Operands::array(std::size_t index) const { return to_array(values_[index], dtype_); }

const Value& Operands::argument(const std::string& name) const {
  static const Value nothing;
  for (const auto& [key, value] : arguments_) {
    if (key == name) return value;
  }
  return nothing;
}

bool Operands::flag(const std::string& name) const {
  const Value& value = (*this)[name];
  return value.given() ? value.boolean() : argument(name).boolean();
}

double Operands::threshold(const std::string& key) const {
  const Value& value = (*this)[key].given() ? (*this)[key] : argument(key);
  if (value.is_text()) {
    if (std::optional<double> number = named_constant(value.text(), dtype_)) return *number;
    throw ValueError(concat("models: ", value.to_string(), " is not a known constant"));
  }
  if (value.is_array()) return value.array().item<double>();
  if (value.is_tensor()) return to_array(value, dtype_).item<double>();
  return value.number();
}

std::vector<Parameter> Record::parameters() const {
  std::vector<Parameter> result;
  for (const std::string& part : split_list(constructor)) {
    std::size_t equals = part.find('=');
    if (equals == std::string::npos)
      result.push_back({part, {}});
    else
      result.push_back({part.substr(0, equals), literal(part.substr(equals + 1))});
  }
  return result;
}

Ports parse_ports(const std::string& keys) {
  Ports ports;
  std::size_t arrow = keys.find("->");
  auto read = [&](const std::string& side) {
    for (std::string part : split_list(side)) {
      Port port;
      if (part.ends_with("*")) {
        port.trainable = true;
        part.pop_back();
      }
      if (std::size_t bang = part.find('!'); bang != std::string::npos) {
        std::string kinds = part.substr(bang + 1);
        port.types = {kinds.find('b') != std::string::npos, kinds.find('i') != std::string::npos,
                      kinds.find('f') != std::string::npos};
        part = part.substr(0, bang);
      }
      if (std::size_t equals = part.find('='); equals != std::string::npos) {
        port.value = literal(part.substr(equals + 1));
        part = part.substr(0, equals);
      }
      if (std::size_t open = part.find('['); open != std::string::npos) {
        port.shape = ShapeTemplate(part.substr(open + 1, part.size() - open - 2));
        port.tensor = true;
        if (port.shape->dims.size() == 1 && port.shape->dims[0].name == "?")
          port.shape.reset();  // a tensor of any shape
        part = part.substr(0, open);
      }
      port.key = part;
      ports.all.push_back(std::move(port));
    }
  };
  read(keys.substr(0, arrow));
  ports.inputs = ports.all.size();
  read(keys.substr(arrow + 2));
  return ports;
}

const Record* find_record(const std::string& name) {
  static const std::map<std::string, const Record*> by_name = [] {
    std::map<std::string, const Record*> map;
    for (const Record& record : records()) map[lower(record.name)] = &record;
    return map;
  }();
  auto found = by_name.find(lower(name));
  return found == by_name.end() ? nullptr : found->second;
}

Model make_primitive(const Record& record, const Arguments& arguments) {
  auto body = std::make_shared<ModelBody>();
  body->type = record.name;
  body->record = &record;
  body->arguments = arguments.entries();
  Ports ports = parse_ports(record.keys_for ? record.keys_for(arguments) : record.keys);
  std::vector<std::string> free;
  for (std::size_t i = 0; i < ports.all.size(); ++i) {
    const Port& port = ports.all[i];
    EdgePointer edge = body->edge(body->add_key(port.key));
    edge->types = port.types;
    if (port.tensor) edge->tensor = true;
    if (port.trainable) edge->differentiable = true;
    edge->value = port.value;
    edge->soft = port.value.given();
    if (i >= ports.inputs) {
      edge->writer = concat(record.name, ".", port.key);
      body->written.insert(port.key);
      continue;
    }
    for (const auto& [name, value] : arguments.entries()) {
      if (name != port.key) continue;
      std::vector<Parameter> parameters = record.parameters();
      auto declared = std::find_if(parameters.begin(), parameters.end(),
                                   [&wanted = name](const Parameter& p) { return p.name == wanted; });
      edge->soft = declared != parameters.end() && declared->value == value;
      edge->value = value;
      if (value.is_tensor()) {
        edge->tensor = true;
        edge->types = value.tensor().types;
        edge->differentiable = value.tensor().differentiable;
        if (!value.tensor().value.given()) edge->value = {};
      }
    }
    if (!edge->value.given()) free.push_back(port.key);
  }
  if (std::find(free.begin(), free.end(), "input") != free.end()) free = {"input"};
  body->cins = free;
  body->couts = std::vector<std::string>(body->written.begin(), body->written.end());
  body->frozen = true;
  return Model(body);
}

Model make(const std::string& name, const std::vector<Value>& positional, const Entries& named) {
  const Record* record = find_record(name);
  if (lower(name) == "model") {
    Model model;
    for (const auto& [key, value] : named) {
      if (key == "name" && value.is_text()) model.body()->name = value.text();
    }
    return model;
  }
  if (!record) {
    std::vector<std::string> names;
    for (const Record& entry : records()) names.push_back(entry.name);
    throw KeyError(concat("models: there is no model '", name, "'", hint(name, names)));
  }
  std::vector<Parameter> parameters = record->parameters();
  if (positional.size() > parameters.size()) {
    throw TypeError(concat("models: ", record->name, "(", record->constructor, ") takes at most ", parameters.size(),
                           " arguments by position, got ", positional.size()));
  }
  Entries entries;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    entries.emplace_back(parameters[i].name, i < positional.size() ? positional[i] : parameters[i].value);
  }
  std::string own_name;
  NamedShapes shapes;
  for (const auto& [key, value] : named) {
    if (key == "name") {
      if (value.is_text()) own_name = value.text();
      continue;
    }
    if (key == "shapes") {  // shape templates of its keys
      for (const auto& [port, shape] : value.entries()) shapes.emplace_back(port, ShapeTemplate(shape));
      continue;
    }
    auto found = std::find_if(entries.begin(), entries.end(),
                              [&wanted = key](const auto& entry) { return entry.first == wanted; });
    if (found == entries.end()) {
      std::vector<std::string> names;
      for (const auto& entry : entries) names.push_back(entry.first);
      throw TypeError(concat("models: ", record->name, "(", record->constructor, ") has no argument '", key, "'",
                             hint(key, names)));
    }
    found->second = value;
  }
  Arguments arguments(record->name, entries);
  Model model = record->build ? record->build(arguments) : make_primitive(*record, arguments);
  ModelBody& body = *model.body();
  body.type = record->name;
  body.name = own_name;
  Entries changed;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (record->build && entries[i].second == parameters[i].value) continue;
    changed.push_back(entries[i]);
  }
  body.arguments = changed;
  if (!shapes.empty()) {
    for (auto& shape : shapes) {
      // Older versions of specifications name the operands of arithmetic input and rhs.
      if (!body.has(shape.first) && shape.first == "input" && body.has("left")) shape.first = "left";
      if (!body.has(shape.first) && shape.first == "rhs" && body.has("right")) shape.first = "right";
    }
    model.set_shapes(shapes);
  }
  return model;
}

Model make(const std::string& name, const Entries& arguments) { return make(name, {}, arguments); }

std::vector<ModelEntry> catalog() {
  std::vector<ModelEntry> result;
  for (const Record& record : records()) {
    result.push_back({record.name, record.constructor, record.sentence, record.build == nullptr});
  }
  return result;
}

Model custom_model(const std::string& name, const std::vector<std::string>& inputs, ArrayFunction function) {
  auto record = std::make_shared<Record>();
  record->name = name;
  record->sentence = "A function of the user.";
  for (const std::string& key : inputs) record->keys += (record->keys.empty() ? "" : ", ") + key + "[?]";
  record->keys += " -> output[?]";
  record->compute = [function = std::move(function)](const Operands& operands) -> Value {
    std::vector<Array> arrays;
    for (std::size_t i = 0; i < operands.size(); ++i) arrays.push_back(operands.array(i));
    return function(arrays);
  };
  Model model = make_primitive(*record, Arguments(name, {}));
  model.body()->own = record;
  return model;
}

}  // namespace capibara::models
